//! The result of a comparison in a sentence per count of clients.

use tacit_link::wifi::AirtimeUse;
use tacit_scenario::scheme::{Role, Scheme};
use tacit_scenario::table::{count, number};

use super::text::adopters;
use super::{Comparison, Row};

/// From this share of data sent again on, the headline names it beside a gain.
const RETRANSMITTED_TOLD: f64 = 0.02;

/// A sentence or two for each count of clients, the least first.
pub(super) fn headlines(comparison: &Comparison) -> Vec<String> {
    comparison.client_counts().into_iter().filter_map(|clients| headline(comparison, clients)).collect()
}

fn headline(comparison: &Comparison, clients: u32) -> Option<String> {
    let rows: Vec<&Row> = comparison.rows_of(clients).collect();
    if let Some(adopters) = adopters(&rows) {
        return adoption(&rows, clients, adopters);
    }
    let known: Vec<(&Row, &Scheme)> =
        rows.iter().filter_map(|row| Some((*row, Scheme::known(&row.scheme)?))).collect();
    let stock = known.iter().find(|(_, scheme)| scheme.role == Role::Baseline).map(|(row, _)| *row);
    let judged = |chips: bool| {
        let is_judged = move |scheme: &Scheme| {
            matches!(scheme.role, Role::Candidate | Role::Transport) && scheme.needs_chips() == chips
        };
        known.iter().filter(move |(_, scheme)| is_judged(scheme)).map(|(row, _)| *row)
    };
    let best = |chips: bool| {
        let better = judged(chips)
            .filter_map(|row| Some((row, Merit::new(row, stock)?)))
            .filter(|(_, merit)| merit.is_better);
        // The first of those that are equal to a tenth of a per cent: some rules of TCP/HACK differ by less.
        let tenths = |merit: &Merit| (merit.gain * 1e3).round();
        better.reduce(|best, next| if tenths(&next.1) > tenths(&best.1) { next } else { best })
    };
    let found = [best(false), best(true)];
    let tried = [false, true].map(|chips| judged(chips).next().is_some());
    let mut sentences: Vec<String> = stock.and_then(cost).into_iter().collect();
    let words = |(row, merit): (&Row, Merit)| format!("{}, {}{}", row.scheme, merit.text, price(row, stock));
    match (found, tried) {
        ([None, None], [false, false]) => {}
        ([None, None], _) => sentences.push("No scheme here is better than stock beyond chance.".to_owned()),
        ([Some(soft), Some(hard)], _) => {
            sentences.push(format!("Best without new hardware: {}; with: {}.", words(soft), words(hard)));
        }
        ([Some(soft), None], _) => sentences.push(format!("Best: {}, without new hardware.", words(soft))),
        ([None, Some(hard)], [is_tried, _]) => {
            let others = if is_tried { "; none without" } else { "" };
            sentences.push(format!("Best: {}, with new hardware{others}.", words(hard)));
        }
    }
    (!sentences.is_empty()).then(|| format!("{}: {}", count(clients.into(), "client"), sentences.join(" ")))
}

/// What the clients gain that switch, by the scheme with which they gain most, and what the others lose.
fn adoption(rows: &[&Row], clients: u32, adopters: u64) -> Option<String> {
    let is_candidate = |row: &&&Row| {
        matches!(
            Scheme::known(&row.scheme).map(|scheme| scheme.role),
            Some(Role::Candidate | Role::Transport)
        )
    };
    let gain = |row: &Row| row.adopter_gain_over_stock.or(row.other_gain_over_stock).unwrap_or(f64::MIN);
    let tried: Vec<&&Row> = rows.iter().filter(is_candidate).collect();
    let best = tried.iter().copied().reduce(|best, row| if gain(row) > gain(best) { row } else { best })?;
    let adopters_have =
        best.adopter_gain_over_stock.map(|gain| change(gain, best.adopter_gain_over_stock_ci95, true));
    let others = best
        .other_gain_over_stock
        .map(|gain| change(gain, best.other_gain_over_stock_ci95, adopters_have.is_none()));
    let those = if adopters == 1 { "it has" } else { "each has" };
    let changes = match (adopters_have, others) {
        (Some(adopters), Some(others)) => format!("{those} {adopters}, each other client {others}"),
        (Some(adopters), None) => format!("{those} {adopters}"),
        (None, Some(others)) => format!("each client has {others}"),
        (None, None) => return None,
    };
    let most = if tried.len() > 1 { ", which gain most with it" } else { "" };
    let clients = count(clients.into(), "client");
    Some(format!("{clients}, {adopters} of them with {}{most}: {changes}.", best.scheme))
}

/// A gain in words, with its interval, and with stock named if that is wanted.
fn change(gain: f64, ci: Option<f64>, names_stock: bool) -> String {
    let (ci, percent) = (ci.unwrap_or(0.0), gain * 100.0);
    if gain.abs() <= ci {
        let stock = if names_stock { " as with stock" } else { "" };
        return format!("as much{stock} within chance ({percent:+.1} ± {:.1} %)", ci * 100.0);
    }
    let interval = if ci > 0.0 { format!(" ± {:.1}", ci * 100.0) } else { String::new() };
    let direction = if gain < 0.0 { "less" } else { "more" };
    let stock = if names_stock { " than with stock" } else { "" };
    format!("{:.1}{interval} % {direction}{stock}", percent.abs())
}

/// What ACKs cost, by the bound; or how long files take.
fn cost(stock: &Row) -> Option<String> {
    if let Some(seconds) = stock.means.flow_completion_p50_s {
        return Some(format!("Half of the files end within {} s with stock.", number(seconds, 2)));
    }
    let share = stock.share_of_udp?;
    let lost = 1.0 - share;
    // On a wire losses and queues cost more than ACKs do, and nothing tells them apart.
    let Some(airtime) = stock.airtime else {
        return Some(format!("Stock has {} % of what UDP carries.", number(share * 100.0, 1)));
    };
    let idle = airtime.get(AirtimeUse::Idle);
    // A channel that idles is short of data: a window, a queue or a wire, and not ACKs.
    if idle > lost / 2.0 && lost > 0.05 {
        let [has, idles] = [share, idle].map(|share| number(share * 100.0, 1));
        return Some(format!(
            "Stock has {has} % of what UDP carries, and the channel idles {idles} %: not for ACKs alone."
        ));
    }
    Some(if lost < 0.005 {
        format!("ACKs cost nothing: stock has {} % of what UDP carries.", number(share * 100.0, 1))
    } else {
        format!("ACKs cost {} % of what UDP carries.", number(lost * 100.0, 1))
    })
}

/// By how much a row is better than stock.
struct Merit {
    gain: f64,
    is_better: bool,
    text: String,
}

impl Merit {
    /// By completion times where files end, by goodput elsewhere.
    fn new(row: &Row, stock: Option<&Row>) -> Option<Self> {
        let times =
            stock.and_then(|stock| stock.means.flow_completion_p50_s).zip(row.means.flow_completion_p50_s);
        if let Some((before, after)) = times {
            let gain = before / after - 1.0;
            return Some(Self { gain, is_better: gain > 0.01, text: format!("{} s", number(after, 2)) });
        }
        let gain = row.gain_over_stock?;
        let is_better = gain > row.gain_over_stock_ci95.unwrap_or(0.0);
        Some(Self { gain, is_better, text: format!("{:+.1} %", gain * 100.0) })
    }
}

/// What a gain costs others: data that is sent again.
fn price(row: &Row, stock: Option<&Row>) -> String {
    let again = row.means.tcp_retransmitted_share.unwrap_or(0.0);
    let before = stock.and_then(|stock| stock.means.tcp_retransmitted_share).unwrap_or(0.0);
    if again < RETRANSMITTED_TOLD || again < 1.5 * before {
        return String::new();
    }
    format!(" ({} % sent again, stock {} %)", number(again * 100.0, 1), number(before * 100.0, 1))
}

#[cfg(test)]
mod tests {
    use super::super::Means;
    use super::*;
    use tacit_runs::metric::AirtimeShares;
    use tacit_runs::store::Provenance;

    fn row(scheme: &str, gain: f64, ci: f64, change: impl Fn(&mut Means)) -> Row {
        let mut means = Means::default();
        change(&mut means);
        let share = Some((1.0 + gain) / 1.134);
        Row {
            scheme: scheme.into(),
            clients: 1,
            gain_over_stock: Some(gain),
            gain_over_stock_ci95: Some(ci),
            share_of_udp: share,
            airtime: Some(AirtimeShares([0.0; AirtimeUse::ALL.len()])),
            means,
            ..Row::default()
        }
    }

    fn headlines_of(rows: Vec<Row>) -> Vec<String> {
        headlines(&Comparison { rows, ..Comparison::from_records(Provenance::default(), &[]) })
    }

    #[test]
    fn the_best_of_each_kind_is_named_with_its_gain() {
        let again = |share: f64| move |means: &mut Means| means.tcp_retransmitted_share = Some(share);
        let rows = || {
            vec![
                row("stock", 0.0, 0.0, again(0.01)),
                row("hack-batch", 0.115, 0.005, again(0.0)),
                row("tcp-l4", -0.02, 0.008, again(0.0)),
                row("tack", 0.06, 0.006, again(0.3)),
                row("udp", 0.134, 0.005, again(0.0)),
            ]
        };
        assert_eq!(
            headlines_of(rows()),
            [
                "1 client: ACKs cost 11.8 % of what UDP carries. Best without new hardware: tack, +6.0 % (30.0 % sent again, \
                 stock 1.0 %); with: hack-batch, +11.5 %."
            ]
        );
        let mut chance = rows();
        chance[1].gain_over_stock_ci95 = Some(0.2);
        chance[3].gain_over_stock = Some(-0.1);
        assert!(headlines_of(chance)[0].ends_with("No scheme here is better than stock beyond chance."));
        let mut hard = rows();
        hard.remove(3);
        assert!(
            headlines_of(hard)[0].ends_with("Best: hack-batch, +11.5 %, with new hardware; none without.")
        );
    }

    #[test]
    fn a_change_that_chance_explains_has_no_direction() {
        assert_eq!(change(-0.041, Some(0.105), true), "as much as with stock within chance (-4.1 ± 10.5 %)");
        assert_eq!(change(0.01, Some(0.04), false), "as much within chance (+1.0 ± 4.0 %)");
        assert_eq!(change(-0.041, Some(0.04), true), "4.1 ± 4.0 % less than with stock");
        assert_eq!(change(0.05, None, false), "5.0 % more");
    }

    /// Behind a short queue CUBIC leaves the channel idle, which no ACK causes.
    #[test]
    fn what_an_idle_channel_lacks_is_not_charged_to_acks() {
        let stock = |idle: f64| {
            let mut row = row("stock", 0.0, 0.0, |_| {});
            let mut shares = AirtimeShares([0.0; AirtimeUse::ALL.len()]);
            shares.0[AirtimeUse::ALL.iter().position(|what| *what == AirtimeUse::Idle).unwrap()] = idle;
            (row.share_of_udp, row.airtime) = (Some(0.33), Some(shares));
            headlines_of(vec![row])
        };
        assert_eq!(
            stock(0.56),
            [
                "1 client: Stock has 33.0 % of what UDP carries, and the channel idles 56.0 %: not for ACKs alone."
            ]
        );
        assert_eq!(stock(0.3), ["1 client: ACKs cost 67.0 % of what UDP carries."]);
        let mut wired = row("stock", 0.0, 0.0, |_| {});
        (wired.share_of_udp, wired.airtime) = (Some(0.33), None);
        assert_eq!(headlines_of(vec![wired]), ["1 client: Stock has 33.0 % of what UDP carries."]);
    }

    #[test]
    fn files_that_end_are_judged_by_their_times() {
        let takes = |seconds: f64| move |means: &mut Means| means.flow_completion_p50_s = Some(seconds);
        // Their goodput of a window in which most of them have ended says nothing.
        let rows = vec![row("stock", 0.0, 0.0, takes(6.4)), row("tack", -0.9, 0.001, takes(1.3))];
        assert_eq!(
            headlines_of(rows),
            [
                "1 client: Half of the files end within 6.40 s with stock. Best: tack, 1.30 s, without new hardware."
            ]
        );
    }
}
