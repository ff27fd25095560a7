//! Tables of rows, claims on them, and the page.

use std::collections::{BTreeMap, BTreeSet};

use super::measure::{Bulk, Round, measured, times_ms};
use super::roster::{LEFT_OUT, PLACES, Place, Wanted};
use super::{Row, Stored};
use crate::page::Measurement;
use crate::page::spread::{Spread, ratios};
use crate::page::table::{Table, dash, filled, middle, whole};

/// The page of all results.
pub fn page(stored: &Stored) -> String {
    let mut text = format!(
        "# QUIC stacks over a live hop\n\nWritten by `tacit-peers stacks`; text typed here is lost. {AGAIN}\n{}\n## Machine\n\n{}",
        filled(HOW),
        stored.machine
    );
    for place in PLACES {
        let rows: Vec<Row> = stored.rows.iter().filter(|row| row.place == place.name).cloned().collect();
        if !rows.is_empty() {
            text += &format!(
                "\n## {}\n\n{}\n{}{}{}",
                place.name,
                filled(&meaning(place)),
                runs(&rows),
                table(place, &rows),
                claims(&rows)
            );
        }
    }
    text + "\n" + &settings(&stored.rows) + &left_out(stored)
}

const AGAIN: &str = "One command makes a row again, one all of them, and one a row of your own programs:\n\n```sh\n./ci.sh stacks quic-go\n\
    ./ci.sh stacks --rounds 3 --json bench/peers/stacks.json --page docs/validation/quic-stacks.md\n\
    target/release/tacit-peers stack wlan-11n-300 -- ./client {address} {bytes} --server -- ./server\n```\n";

const HOW: &str = "Each row is a client and a server of one stack at the ends of a hop of [`tacit shell`](../use/shell.md), in real time: a download, \
    then objects, each over a connection of its own. Times are in ms, from the attempt to connect to the last byte, the median and the 95th \
    percentile (nearest rank); goodput counts from there, too. ACKs are packets up per 100 packets down, counted by the hop. ACK airtime is the \
    client's part of the airtime that stations used. A page is ten objects of 20 kB: the first, then nine at once. Processor time is that of both \
    ends. A run that was late has a dash, after a second try. In programs of your own (the last form) the start of a process counts. Each place has \
    the time (UTC), the load average after its rows and the share of the processors that other programs had; the JSON has those of each row, its \
    rounds and the version. Ratios (of times: medians) in bold are beyond their limit.";

fn meaning(place: &Place) -> String {
    let Place { meaning, scenario, assignments, background, bulk_bytes, times, .. } = place;
    let set: String = assignments.iter().map(|word| format!(" --set \"{word}\"")).collect();
    let beside = if *background > 0 { format!(" --background {background}") } else { String::new() };
    format!(
        "{meaning}: `tacit shell {scenario}{beside}{set}`. A download of {} MB, {times} transfers of each size in a round.",
        bulk_bytes / 1_000_000
    )
}

/// When the rows were measured, and the least and the largest of what else ran. The results have each.
fn runs(rows: &[Row]) -> String {
    let began: BTreeSet<&str> = rows.iter().map(|row| row.run.began.as_str()).collect();
    let (first, last) = (began.first().unwrap_or(&""), began.last().unwrap_or(&""));
    let range = |spread: Option<Spread>| {
        spread.map_or_else(dash, |Spread { least, largest, .. }| format!("{least:.0} to {largest:.0}"))
    };
    let load = range(Spread::from_values(rows.iter().map(|row| row.run.load[1])));
    let others = rows.iter().filter_map(|row| row.run.others).map(|share| share * 100.0);
    let others = range(Spread::from_values(others));
    format!("Measured {first} to {last}, load {load}, others {others} %.\n\n")
}

/// The rows of a place.
pub fn table(place: &Place, rows: &[Row]) -> String {
    // Without Wi-Fi there is none.
    let has_airtime = rows.iter().any(|row| spread(&row.rounds, |bulk| bulk.ack_airtime).is_some());
    let mut heads = vec![place.name.to_owned()];
    heads.extend(["Mb/s", "ACKs per 100"].map(str::to_owned));
    heads.extend(has_airtime.then(|| "ACK airtime, %".to_owned()));
    heads.push("CPU s per GB".to_owned());
    heads.extend(Wanted::ALL.map(|wanted| format!("{}, p50/p95", wanted.name())));
    let mut table = Table::new(&heads);
    let mut why = Vec::new();
    for row in rows {
        let column = |value: fn(&Bulk) -> Option<f64>, decimals| middle(spread(&row.rounds, value), decimals);
        let mut cells = vec![row.name.clone()];
        cells.push(column(|bulk| Some(bulk.mbps), 1));
        cells.push(column(|bulk| Some(bulk.acks_per_100), 2));
        if has_airtime {
            cells.push(column(|bulk| bulk.ack_airtime.map(|share| share * 100.0), 2));
        }
        cells.push(column(|bulk| bulk.cpu_s_per_gb, 2));
        for wanted in 0..Wanted::ALL.len() {
            let times = times_ms(&row.rounds, wanted);
            cells.push(times.map_or_else(dash, |[p50, p95]| format!("{p50:.0}/{p95:.0}")));
        }
        table.push(&cells);
        why.extend(lost(row));
    }
    let reasons: String = why.iter().map(|why| format!("* {why}\n")).collect();
    if reasons.is_empty() { table.text() } else { format!("{}\n**No numbers:**\n\n{reasons}", table.text()) }
}

fn spread(rounds: &[Round], value: impl Fn(&Bulk) -> Option<f64>) -> Option<Spread> {
    Spread::from_values(rounds.iter().filter_map(|round| value(measured(&round.bulk)?)))
}

/// What has no number, in how many rounds, and the first reason.
fn lost(row: &Row) -> Vec<String> {
    let mut all: BTreeMap<&str, Vec<&String>> = BTreeMap::new();
    let mut add = |what, why| {
        if let Some(why) = why {
            all.entry(what).or_default().push(why);
        }
    };
    for round in &row.rounds {
        add("download", skipped(&round.bulk));
        for (wanted, times) in Wanted::ALL.iter().zip(&round.times_s) {
            add(wanted.name(), skipped(times));
        }
    }
    let line = |(what, why): (&str, Vec<&String>)| {
        let rounds = if why.len() > 1 { format!(", {} rounds", why.len()) } else { String::new() };
        why.first().map(|why| format!("{}, {what}{rounds}: {why}", row.name))
    };
    all.into_iter().filter_map(line).collect()
}

const fn skipped<T>(measurement: &Measurement<T>) -> Option<&String> {
    match measurement {
        Measurement::Skipped(why) => Some(why),
        Measurement::Measured(_) => None,
    }
}

/// What must not get worse with our law, and how far chance may carry a ratio of medians.
const LAW: &str = "tacit-quinn";
/// Plain quinn, and quinn with the law's sockets alone.
const PLAIN: [&str; 2] = ["quinn", "quinn-socket"];

/// A quantity of a round, its limit as a ratio of the law's to plain quinn's, and whether less is better.
struct Claim {
    what: &'static str,
    value: fn(&Round) -> Option<f64>,
    limit: f64,
    less_is_better: bool,
}

/// The median of a round's times.
fn p50(round: &Round, wanted: usize) -> Option<f64> {
    times_ms(std::slice::from_ref(round), wanted).map(|[p50, _]| p50)
}

const CLAIMS: [Claim; 5] = [
    Claim {
        what: "goodput",
        value: |round| measured(&round.bulk).map(|bulk| bulk.mbps),
        limit: 0.95,
        less_is_better: false,
    },
    Claim {
        what: "CPU",
        value: |round| measured(&round.bulk)?.cpu_s_per_gb,
        limit: 1.1,
        less_is_better: true,
    },
    Claim { what: "100 kB", value: |round| p50(round, 0), limit: 1.05, less_is_better: true },
    Claim { what: "1 MB", value: |round| p50(round, 1), limit: 1.05, less_is_better: true },
    Claim { what: "page", value: |round| p50(round, 2), limit: 1.05, less_is_better: true },
];

/// Whether quinn is no worse with our law than without, where both were measured.
pub fn claims(rows: &[Row]) -> String {
    let compared: Vec<_> = PLAIN.into_iter().filter_map(|plain| ratios_over(plain, rows)).collect();
    if compared.is_empty() {
        return String::new();
    }
    let head = |Claim { what, limit, less_is_better, .. }: &Claim| {
        format!("{what} {} {limit}", if *less_is_better { "≤" } else { "≥" })
    };
    let heads: Vec<String> =
        std::iter::once(format!("`{LAW}` over")).chain(CLAIMS.iter().map(head)).collect();
    let mut table = Table::new(&heads);
    for cells in &compared {
        table.push(cells);
    }
    format!("\n{}", table.text())
}

/// The ratios of the law's rounds to those of `plain`, in bold beyond their limit.
fn ratios_over(plain: &str, rows: &[Row]) -> Option<Vec<String>> {
    let rounds = |name: &str| rows.iter().find(|row| row.name == name).map(|row| &row.rounds);
    let (ours, theirs) = rounds(LAW).zip(rounds(plain))?;
    let cell =
        |Claim { value, limit, less_is_better, .. }: &Claim| {
            let ratio = ratios(ours, theirs, *value);
            let text = whole(ratio, 2);
            let holds = ratio.is_none_or(|ratio| {
                if *less_is_better { ratio.median <= *limit } else { ratio.median >= *limit }
            });
            if holds { text } else { format!("**{text}**") }
        };
    Some(std::iter::once(format!("`{plain}`")).chain(CLAIMS.iter().map(cell)).collect())
}

/// Versions and settings of all rows.
fn settings(rows: &[Row]) -> String {
    let mut table = Table::new(&["row", "version", "set"]);
    let mut seen = BTreeSet::new();
    for row in rows {
        if seen.insert((&row.name, &row.version)) {
            table.push(&[&row.name, &row.version, &row.setting]);
        }
    }
    format!("## Versions and settings\n\n{}", table.text())
}

/// Stacks without rows.
fn left_out(stored: &Stored) -> String {
    let known = LEFT_OUT.iter().map(|(name, why)| ((*name).to_owned(), (*why).to_owned()));
    let here = stored.left_out.iter().map(|(name, why)| (name.clone(), why.clone()));
    let lines: String = known.chain(here).map(|(name, why)| format!("* {name}: {why}\n")).collect();
    format!("\n## Left out\n\n{lines}")
}
