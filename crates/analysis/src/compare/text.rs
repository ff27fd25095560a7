//! A comparison as tables of text.

use tacit_link::wifi::AirtimeUse;

use super::{Comparison, Row};
use tacit_scenario::scheme::{self, Role, Scheme};
use tacit_scenario::table::{TextTable, count, number, number_or_dash, percent, signed_percent, wrapped};

pub(super) fn tables(comparison: &Comparison, width: Option<usize>) -> String {
    let mut text = String::new();
    for line in comparison.headlines() {
        text.push_str(&format!("{line}\n"));
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(&format!("{}: {}\n", comparison.scenario, comparison.provenance.description));
    let seeds = comparison.rows.iter().map(|row| row.seeds).max().unwrap_or(0);
    text.push_str(&format!(
        "{}, {} s measured in each, the same draws for every scheme; ± is the 95 % confidence interval\n",
        count(seeds as u64, "seed"),
        number(comparison.measured_s, if comparison.measured_s < 10.0 { 1 } else { 0 }),
    ));
    if !comparison.conditions.is_empty() {
        text.push_str(&format!("with {}\n", comparison.conditions.join(", ")));
    }
    for warning in &comparison.warnings {
        text.push_str(&format!("warning: {warning}\n"));
    }
    let mut missing: Vec<String> = Vec::new();
    for clients in comparison.client_counts() {
        let rows: Vec<&Row> = comparison.rows_of(clients).collect();
        text.push_str(&format!("\n{}\n", count(clients.into(), "client")));
        let airtime = rows.iter().any(|row| row.airtime.is_some()).then(|| airtime_table(&rows));
        let adoption = rows.iter().any(|row| row.means.adopters.is_some()).then(|| adoption_table(&rows));
        if let Some(line) = who_switches(&rows) {
            text.push_str(&format!("{line}\n\n"));
        }
        let completions =
            rows.iter().any(|row| row.means.flow_completion_p50_s.is_some()).then(|| completion_table(&rows));
        let tables = [adoption, Some(main_table(&rows)), airtime, completions];
        let tables = tables.into_iter().flatten().map(|table| {
            let (text, dropped) = table.render_within(width);
            missing.extend(dropped);
            text
        });
        text.push_str(&tables.collect::<Vec<_>>().join("\n"));
        if let Some(line) = beside(comparison, clients) {
            text.push_str(&format!("\n{line}\n"));
        }
    }
    let shown = |scheme: &&Scheme| comparison.rows.iter().any(|row| row.scheme == scheme.name);
    let replacing = scheme::ALL.iter().filter(|scheme| scheme.role == Role::Transport).filter(shown);
    for (number, scheme) in replacing.enumerate() {
        let gap = if number == 0 { "\n" } else { "" };
        text.push_str(&format!("{gap}{}: {}\n", scheme.name, scheme.summary));
    }
    missing.sort();
    missing.dedup();
    if !missing.is_empty() {
        text.push_str(&format!("\n--wide has also: {}\n", missing.join(", ")));
    }
    wrapped(&text, width)
}

/// One table with the goodput of every scheme at every sweep point.
pub fn overview(comparisons: &[&Comparison]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for row in comparisons.iter().flat_map(|comparison| &comparison.rows) {
        if !names.contains(&row.scheme.as_str()) {
            names.push(&row.scheme);
        }
    }
    let mut heads = vec![["goodput, Mb/s"], ["clients"]];
    heads.extend(names.iter().map(|name| [*name]));
    let mut table = TextTable::new(&heads);
    for comparison in comparisons {
        for clients in comparison.client_counts() {
            let mut cells = vec![
                [std::slice::from_ref(&comparison.scenario), &comparison.at].concat().join(", "),
                clients.to_string(),
            ];
            cells.extend(names.iter().map(|name| {
                let row = comparison.rows_of(clients).find(|row| row.scheme == *name);
                row.map_or_else(|| number_or_dash(None, 0), goodput)
            }));
            table.push(cells);
        }
    }
    table.render()
}

/// The gain of TCP/HACK with the receiver of 2014, if it was run.
pub(crate) fn beside(comparison: &Comparison, clients: u32) -> Option<String> {
    let mut rows = comparison.receiver_of_2014.iter().filter(|row| row.clients == clients);
    let (stock, hack) = (rows.next()?, rows.next()?);
    let mean = |row: &Row| format!("{} {}", row.scheme, mbps(row, row.goodput_bps_mean));
    Some(format!(
        "with the receiver of 2014 (tcp.profile = \"classic\", one ACK per 2 segments): {}, {}, {}",
        mean(stock),
        mean(hack),
        gain(hack)
    ))
}

fn main_table(rows: &[&Row]) -> TextTable {
    let mut table = TextTable::new(&[
        ["", "scheme"],
        ["goodput", "Mb/s"],
        ["gain over", "stock"],
        ["of UDP", "bound"],
        ["sent", "again"],
        ["ACKs", "on air/s"],
        ["collisions", "/s"],
        ["retries", "of MPDUs"],
        ["A-MPDU", "MPDUs"],
        ["queueing delay", "p50 / p95 ms"],
    ])
    .dropping([8, 7, 6, 3, 9, 5]);
    for row in rows {
        let ms = |us: Option<f64>| number_or_dash(us.map(|us| us / 1e3), 1);
        table.push(vec![
            row.scheme.clone(),
            goodput(row),
            gain(row),
            percent(row.share_of_udp, 1),
            percent(row.means.tcp_retransmitted_share, 1),
            number_or_dash(row.means.tcp_acks_on_air_per_s, 0),
            number_or_dash(row.means.collisions_per_s, 1),
            percent(row.means.retry_share, 1),
            number_or_dash(row.means.ampdu_mean, 1),
            format!("{} / {}", ms(row.means.queue_delay_p50_us), ms(row.means.queue_delay_p95_us)),
        ]);
    }
    table
}

/// Number of clients that use the schemes, if only some do.
pub(super) fn adopters(rows: &[&Row]) -> Option<u64> {
    rows.iter().find_map(|row| row.means.adopters).map(|adopters| adopters as u64)
}

fn who_switches(rows: &[&Row]) -> Option<String> {
    let adopters = adopters(rows)?;
    let clients = rows.first()?.clients;
    let verb = if adopters == 1 { "switches" } else { "switch" };
    Some(format!(
        "{adopters} of {} {verb}, the others keep stock; each, and in % of what it had before",
        count(clients.into(), "client")
    ))
}

/// What clients that switch gain, and what the others lose.
fn adoption_table(rows: &[&Row]) -> TextTable {
    let mut table = TextTable::new(&[
        ["", "scheme"],
        ["who switches", "Mb/s each"],
        ["has of", "before"],
        ["others", "Mb/s each"],
        ["have of", "before"],
        ["least of", "others"],
        ["sent again", "switched / others"],
        ["queueing", "p95 ms"],
    ])
    .dropping([6, 7, 5]);
    for row in rows.iter().filter(|row| row.means.adopters.is_some()) {
        let each = |bps: Option<f64>| bps.map_or_else(|| number_or_dash(None, 0), |bps| megabits(bps, bps));
        let again = |share: Option<f64>| number_or_dash(share.map(|share| share * 100.0), 1);
        let of_before = |gain: Option<f64>, ci: Option<f64>| match (gain, ci.filter(|ci| *ci > 0.0)) {
            (Some(0.0) | None, _) => number_or_dash(None, 0),
            (Some(gain), Some(ci)) => format!("{:.1} ± {:.1} %", (1.0 + gain) * 100.0, ci * 100.0),
            (Some(gain), None) => percent(Some(1.0 + gain), 1),
        };
        table.push(vec![
            row.scheme.clone(),
            each(row.means.adopter_goodput_bps),
            of_before(row.adopter_gain_over_stock, row.adopter_gain_over_stock_ci95),
            each(row.means.other_goodput_bps),
            of_before(row.other_gain_over_stock, row.other_gain_over_stock_ci95),
            each(row.means.other_least_goodput_bps),
            format!(
                "{} / {} %",
                again(row.means.adopter_retransmitted_share),
                again(row.means.other_retransmitted_share)
            ),
            number_or_dash(wait_us(row).map(|us| us / 1e3), 1),
        ]);
    }
    table
}

/// 95th percentile of the wait in the queue of data.
fn wait_us(row: &Row) -> Option<f64> {
    row.means.queue_delay_p95_us.or(row.means.one_way_delay_p95_us)
}

/// Completion times of fixed-size flows, as means over the runs.
fn completion_table(rows: &[&Row]) -> TextTable {
    let mut table = TextTable::new(&[
        ["flow completion", "scheme"],
        ["flows", "completed"],
        ["p50", "s"],
        ["p95", "s"],
        ["p99", "s"],
    ]);
    for row in rows {
        let mut cells = vec![row.scheme.clone(), number_or_dash(row.means.flows_completed, 1)];
        let times = [
            row.means.flow_completion_p50_s,
            row.means.flow_completion_p95_s,
            row.means.flow_completion_p99_s,
        ];
        cells.extend(times.map(|time| number_or_dash(time, 3)));
        table.push(cells);
    }
    table
}

/// Mean and interval in Mb/s.
pub(crate) fn goodput(row: &Row) -> String {
    let mean = mbps(row, row.goodput_bps_mean);
    row.goodput_bps_ci95.map_or_else(|| mean.clone(), |ci| format!("{mean} ± {}", mbps(row, ci)))
}

/// `bps` of `row` in Mb/s, with two decimals if the rate is low.
fn mbps(row: &Row, bps: f64) -> String {
    megabits(bps, row.goodput_bps_mean)
}

/// `bps` in Mb/s, with two decimals if `scale_bps` is low.
fn megabits(bps: f64, scale_bps: f64) -> String {
    number(bps / 1e6, if scale_bps < 2e7 { 2 } else { 1 })
}

/// Gain over the baseline with its interval; empty for the baseline itself.
pub(crate) fn gain(row: &Row) -> String {
    match (row.gain_over_stock, row.gain_over_stock_ci95) {
        (Some(gain), Some(ci)) if ci > 0.0 => format!("{:+.1} ± {:.1} %", gain * 100.0, ci * 100.0),
        (gain, _) => signed_percent(gain.filter(|gain| *gain != 0.0), 1),
    }
}

fn airtime_table(rows: &[&Row]) -> TextTable {
    let mut heads = vec![["airtime, %"]];
    heads.extend(AirtimeUse::ALL.map(|what| [airtime_label(what)]));
    // From the least of them to the largest, as a rule.
    let all = AirtimeUse::ALL;
    let place = |what: AirtimeUse| all.iter().position(|known| *known == what).map(|at| at + 1);
    let droppable = [
        AirtimeUse::Beacon,
        AirtimeUse::Protection,
        AirtimeUse::CompressedAck,
        AirtimeUse::LinkAck,
        AirtimeUse::Retransmission,
        AirtimeUse::Acquisition,
    ];
    let mut table = TextTable::new(&heads).dropping(droppable.into_iter().filter_map(place));
    for row in rows {
        let Some(shares) = row.airtime else { continue };
        let mut cells = vec![row.scheme.clone()];
        cells.extend(shares.0.map(|share| number(share * 100.0, 1)));
        table.push(cells);
    }
    table
}

/// Label of a use of airtime.
pub(crate) const fn airtime_label(what: AirtimeUse) -> &'static str {
    match what {
        AirtimeUse::Data => "data",
        AirtimeUse::TcpAck => "ACKs",
        AirtimeUse::Retransmission => "retransmissions",
        AirtimeUse::LinkAck => "link ACKs",
        AirtimeUse::Protection => "protection",
        AirtimeUse::CompressedAck => "compressed ACKs",
        AirtimeUse::Acquisition => "acquisition",
        AirtimeUse::Collision => "collisions",
        AirtimeUse::Beacon => "beacons",
        AirtimeUse::Idle => "idle",
    }
}
