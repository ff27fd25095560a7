//! A comparison as tables of text.

use tacit_link::wifi::AirtimeUse;

use super::{Comparison, Row};
use crate::first_seen;
use tacit_scenario::scheme::{self, Role, Scheme};
use tacit_scenario::table::{Page, TextTable, count, number, number_or_dash, percent, signed_percent};

pub(super) fn tables(comparison: &Comparison, width: Option<usize>) -> String {
    let mut page = Page::new(width);
    for line in comparison.headlines() {
        page.line(line);
    }
    page.gap();
    page.line(format!("{}: {}", comparison.scenario, comparison.provenance.description));
    let seeds = comparison.rows.iter().map(|row| row.seeds).max().unwrap_or(0);
    page.line(format!(
        "{}, {} s measured in each, the same draws for every scheme; ± is the 95 % confidence interval",
        count(seeds as u64, "seed"),
        number(comparison.measured_s, if comparison.measured_s < 10.0 { 1 } else { 0 }),
    ));
    if !comparison.conditions.is_empty() {
        page.line(format!("with {}", comparison.conditions.join(", ")));
    }
    for warning in &comparison.warnings {
        page.line(format!("warning: {warning}"));
    }
    for clients in comparison.client_counts() {
        let rows: Vec<&Row> = comparison.rows_of(clients).collect();
        page.gap();
        page.line(count(clients.into(), "client"));
        if let Some(line) = who_switches(&rows) {
            page.line(line);
            page.table(&adoption_table(&rows));
            page.gap();
        }
        page.table(&main_table(&rows));
        if rows.iter().any(|row| row.airtime.is_some()) {
            page.gap();
            page.table(&airtime_table(&rows));
        }
        if rows.iter().any(|row| row.means.flow_completion_p50_s.is_some()) {
            page.gap();
            page.table(&completion_table(&rows));
        }
        if let Some(line) = beside(comparison, clients) {
            page.gap();
            page.line(line);
        }
    }
    let shown = |scheme: &&Scheme| comparison.rows.iter().any(|row| row.scheme == scheme.name);
    let replacing = scheme::ALL.iter().filter(|scheme| scheme.role == Role::Transport).filter(shown);
    for (number, scheme) in replacing.enumerate() {
        if number == 0 {
            page.gap();
        }
        page.line(format!("{}: {}", scheme.name, scheme.summary));
    }
    page.finish()
}

/// One table with the goodput of every scheme at every sweep point.
pub fn overview(comparisons: &[&Comparison]) -> String {
    let rows = comparisons.iter().flat_map(|comparison| &comparison.rows);
    let names = first_seen(rows.map(|row| row.scheme.as_str()));
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

/// A column of the main table.
struct Head {
    head: [&'static str; 2],
    cell: fn(&Row) -> String,
    /// Columns with a larger number leave a narrow terminal first; those with 0 stay.
    leaves: u8,
}

const fn column(leaves: u8, head: [&'static str; 2], cell: fn(&Row) -> String) -> Head {
    Head { head, cell, leaves }
}

fn ms(us: Option<f64>) -> String {
    number_or_dash(us.map(|us| us / 1e3), 1)
}

const GOODPUT: [Head; 2] = [column(0, ["goodput", "Mb/s"], goodput), column(0, ["gain over", "stock"], gain)];
/// Where data goes both ways.
const DIRECTIONS: Head = column(0, ["down / up", "Mb/s"], |row| {
    let each = |bps: Option<f64>| bps.map_or_else(|| number_or_dash(None, 0), |bps| mbps(row, bps));
    format!("{} / {}", each(row.means.download_goodput_bps), each(row.means.upload_goodput_bps))
});
/// With several clients.
const CLIENTS: Head = column(2, ["a client, mean", "/ least, Mb/s"], |row| {
    let mean = row.goodput_bps_mean / f64::from(row.clients.max(1));
    let least = row.means.least_client_goodput_bps;
    let least = least.map_or_else(|| number_or_dash(None, 0), |bps| megabits(bps, mean));
    format!("{} / {least}", megabits(mean, mean))
});
const REST: [Head; 7] = [
    column(4, ["of UDP", "bound"], |row| percent(row.share_of_udp, 1)),
    column(1, ["sent", "again"], |row| percent(row.means.tcp_retransmitted_share, 1)),
    column(5, ["ACKs", "on air/s"], |row| number_or_dash(row.means.tcp_acks_on_air_per_s, 0)),
    column(6, ["collisions", "/s"], |row| number_or_dash(row.means.collisions_per_s, 1)),
    column(7, ["retries", "of MPDUs"], |row| percent(row.means.retry_share, 1)),
    column(8, ["A-MPDU", "MPDUs"], |row| number_or_dash(row.means.ampdu_mean, 1)),
    column(3, ["queueing delay", "p50 / p95 ms"], |row| {
        format!("{} / {}", ms(row.means.queue_delay_p50_us), ms(row.means.queue_delay_p95_us))
    }),
];

fn main_table(rows: &[&Row]) -> TextTable {
    columns_table(rows, [], [])
}

/// The rows of several client counts.
pub(crate) fn numbers_table(rows: &[&Row]) -> TextTable {
    let clients = column(0, ["", "clients"], |row| row.clients.to_string());
    let fairness = column(0, ["fairness", "Jain"], |row| number_or_dash(row.means.fairness, 3));
    columns_table(rows, [&clients], [&fairness])
}

/// The main columns, between those in front and behind.
fn columns_table<'a>(
    rows: &[&Row],
    in_front: impl IntoIterator<Item = &'a Head>,
    behind: impl IntoIterator<Item = &'a Head>,
) -> TextTable {
    let is_both_ways =
        |row: &&Row| row.means.download_goodput_bps.is_some() && row.means.upload_goodput_bps.is_some();
    let directions = rows.iter().any(is_both_ways).then_some(&DIRECTIONS);
    let clients = rows.iter().any(|row| row.clients > 1).then_some(&CLIENTS);
    let usual = GOODPUT.iter().chain(directions).chain(clients).chain(&REST);
    let columns: Vec<&Head> = in_front.into_iter().chain(usual).chain(behind).collect();
    let heads: Vec<[&str; 2]> =
        std::iter::once(["", "scheme"]).chain(columns.iter().map(|column| column.head)).collect();
    // The scheme is the first column of the table.
    let mut leaving: Vec<(u8, usize)> = columns.iter().map(|column| column.leaves).zip(1..).collect();
    leaving.retain(|(leaves, _)| *leaves > 0);
    leaving.sort_by_key(|(leaves, _)| std::cmp::Reverse(*leaves));
    let mut table = TextTable::new(&heads).dropping(leaving.into_iter().map(|(_, column)| column));
    for row in rows {
        let cells = columns.iter().map(|column| (column.cell)(row));
        table.push(std::iter::once(row.scheme.clone()).chain(cells).collect());
    }
    table
}

/// Number of clients that use the schemes, if only some do.
pub(super) fn adopters(rows: &[&Row]) -> Option<u64> {
    rows.iter().find_map(|row| row.means.adopters).map(|adopters| adopters as u64)
}

/// How many clients switch, if only some do.
pub(crate) fn who_switches(rows: &[&Row]) -> Option<String> {
    let adopters = adopters(rows)?;
    let clients = rows.first()?.clients;
    let verb = if adopters == 1 { "switches" } else { "switch" };
    Some(format!("{adopters} of {} {verb}, the others keep stock", count(clients.into(), "client")))
}

/// What clients that switch gain, and what the others lose.
pub(crate) fn adoption_table(rows: &[&Row]) -> TextTable {
    let mut table = TextTable::new(&[
        ["", "scheme"],
        ["switched", "Mb/s each"],
        ["of what they", "had before"],
        ["others", "Mb/s each"],
        ["of what they", "had before"],
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
