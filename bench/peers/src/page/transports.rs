//! TACK beside the kernel's TCP and two stacks of QUIC, over loopback, over a wire that cuts and through a hop.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::lateness::no_hops;
use super::spread::{Spread, ratios};
use super::table::{Table, filled, middle, whole};
use super::{Measurement, Name, Part, Plan};
use crate::Stack;
use crate::compare::{self, Cpu, Round, Row};
use crate::stack::name_of;
use crate::wire::Wire;

const SCENARIO: &str = "wlan-11n-300";
const BYTES: u64 = 10_000_000_000;
const REQUESTS: u32 = 5_000;
const CONNECTIONS: u32 = 10_000;
const HOP_SECONDS: u32 = 6;
const HOP_REQUESTS: u32 = 500;
/// A try is this much shorter.
const QUICK: u32 = 10;

/// Which versions there are.
const LOCK: &str = include_str!("../../Cargo.lock");

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Transports {
    quinn_version: String,
    s2n_version: String,
    loopback: Vec<Row>,
    veth: Measurement<Vec<Row>>,
    hop: Measurement<Vec<Row>>,
}

impl Part for Transports {
    const NAME: Name = Name::Transports;
    const HEADING: &'static str = "TACK beside TCP and QUIC";

    fn measure(plan: &Plan) -> Result<Measurement<Self>> {
        let less = if plan.quick() { QUICK } else { 1 };
        let over_loopback = compare::Arguments {
            rounds: plan.pairs,
            bytes: BYTES / u64::from(less),
            requests: REQUESTS / less,
            connections: CONNECTIONS / less,
            through: None,
            veth: false,
            assignments: Vec::new(),
            seconds: (HOP_SECONDS / less).max(1),
            stacks: Vec::new(),
        };
        let loopback = compare::measure(&over_loopback)?;
        let over_wire = compare::Arguments { veth: true, connections: 0, ..over_loopback.clone() };
        let veth = match no_wire() {
            Some(why) => Measurement::Skipped(why),
            None => Measurement::Measured(compare::measure(&over_wire)?),
        };
        let through_hop = compare::Arguments {
            through: Some(SCENARIO.to_owned()),
            requests: HOP_REQUESTS / less,
            connections: 0,
            ..over_loopback
        };
        let hop = match no_hops() {
            Some(why) => Measurement::Skipped(why),
            None => Measurement::Measured(compare::measure(&through_hop)?),
        };
        let [quinn_version, s2n_version] = ["quinn", "s2n-quic"].map(|package| version(package).to_owned());
        Ok(Measurement::Measured(Self { quinn_version, s2n_version, loopback, veth, hop }))
    }

    fn text(&self) -> String {
        let how = format!(
            "quinn {}, s2n-quic {} and the others by one program, [`tacit-peers`](../../bench/peers): one thread and \
             congestion control of the stack's own choice at each end, windows of 64 MiB. `tcp` is the kernel's, without \
             encryption. Processor time is user and system of both ends, and of each; a request is 1 kB that is answered with 1 kB.",
            self.quinn_version, self.s2n_version
        );
        let loopback = format!(
            "{} MB, then {REQUESTS} requests; memory is that of a server with {CONNECTIONS} connections at rest. The kernel \
             carries up to 64 datagrams of one call over loopback in one piece: TACK hands it 44, quinn 10, and that is most of the difference here.",
            BYTES / 1_000_000
        );
        let wire = match &self.veth {
            Measurement::Skipped(why) => format!("**Skipped: {why}.**\n"),
            Measurement::Measured(rows) => format!(
                "{}\n{}\n{}",
                filled(
                    "The same through a pair of virtual network cards between two namespaces, which take one packet at a time \
                     (`gso_max_segs 1`): the kernel cuts the batches that it gets, TCP's too."
                ),
                table(rows),
                filled(&goal(rows))
            ),
        };
        let hop = match &self.hop {
            Measurement::Skipped(why) => format!("**Skipped: {why}.**\n"),
            Measurement::Measured(rows) => {
                format!("{}\n{}{}", filled(&through_hop()), table(rows), why_not(rows))
            }
        };
        format!(
            "{}\n{}\n### Over loopback\n\n{}\n{}\n### Over a wire that cuts\n\n{wire}\n### Through a hop\n\n{hop}",
            filled(&how),
            filled(CIPHERS),
            filled(&loopback),
            table(&self.loopback)
        )
    }
}

/// Ciphers of the stacks. quinn takes the first suite of rustls' own order, s2n-quic the first of its own.
const CIPHERS: &str = "All but TCP seal packets with AES-GCM by AWS-LC: TACK and quinn with keys of 256 bits, s2n-quic with 128. QUIC hides \
    packet numbers, too (header protection, RFC 9001 section 5.4), for another block of AES per packet at each end; TACK does not.";

/// The goal over a wire that cuts: this part of quinn's processor time.
const GOAL: f64 = 0.5;

/// Where TACK's processor time goes over such a wire: samples of both ends of 3 GB by perf, on the machine of this page.
const PROFILE: &str = "A profile of TACK's ends (perf, 2026-11-25) has 58 % in the kernel, 19 % in the cipher, 11 % in TACK and 8 % in copies: \
    kernel and cipher alone take more than half of quinn's time, so that nothing saved in TACK itself \
    reaches the goal. The next idea is fewer packets: `tacit cp` and `tacit proxy` try packets of up to \
    16 KiB, which this wire does not take.";

/// How far the goal is.
fn goal(rows: &[Row]) -> String {
    let rounds = |stack: Stack| rows.iter().find(|row| row.stack == name_of(&stack)).map(|row| &row.rounds);
    let cpu = |round: &Round| round.cpu_s_per_gb.map(Cpu::both);
    let ratio =
        rounds(Stack::Tack).zip(rounds(Stack::Quinn)).and_then(|(ours, theirs)| ratios(ours, theirs, cpu));
    let Some(ratio) = ratio else { return PROFILE.to_owned() };
    let outcome = if ratio.median <= GOAL { "reached" } else { "missed" };
    format!(
        "The goal, {GOAL} of quinn's processor time, is {outcome}: TACK takes {} of it. {PROFILE}",
        ratio.text(2)
    )
}

/// Why no wire can be laid here.
fn no_wire() -> Option<String> {
    Wire::new().err().map(|error| format!("{error:#}"))
}

fn through_hop() -> String {
    format!(
        "{HOP_SECONDS} s of download, then {HOP_REQUESTS} requests, through `tacit shell {SCENARIO}`: the hop is the limit, and \
         the stacks differ in their cost. Only rounds with a valid hop count."
    )
}

/// A column: its head, its value in a round, and digits behind the point.
type Column = (&'static str, fn(&Round) -> Option<f64>, usize);

const COLUMNS: [Column; 7] = [
    ("Mb/s", |round| Some(round.mbps), 0),
    ("CPU s per GB", |round| round.cpu_s_per_gb.map(Cpu::both), 2),
    ("sender", |round| round.cpu_s_per_gb.map(|cpu| cpu.sender), 2),
    ("receiver", |round| round.cpu_s_per_gb.map(|cpu| cpu.receiver), 2),
    ("ACKs per 100 packets", |round| round.acks_per_100, 2),
    ("request p50, us", |round| round.request_p50_us, 0),
    ("p99, us", |round| round.request_p99_us, 0),
];

/// Those whose ratio to TACK's is shown.
const RATIOS: [(&str, usize); 3] = [("Mb/s over TACK's", 0), ("CPU over TACK's", 1), ("p50 over TACK's", 5)];

fn table(rows: &[Row]) -> String {
    let mut heads = vec![""];
    heads.extend(COLUMNS.map(|(head, ..)| head).iter().chain(&RATIOS.map(|(head, _)| head)));
    let memory = rows.iter().any(|row| row.resident_mb.is_some());
    // A hop's rounds may be lost, a loopback's may not.
    heads.push(if memory { "MB" } else { "valid" });
    let mut table = Table::new(&heads);
    let tack_name = name_of(&Stack::Tack);
    let tack = rows.iter().find(|row| row.stack == tack_name);
    for row in rows {
        let mut cells = vec![row.stack.clone()];
        for (_, value, decimals) in COLUMNS {
            let values = row.rounds.iter().filter_map(|round| valid(round, value));
            cells.push(middle(Spread::from_values(values), decimals));
        }
        for (_, column) in RATIOS {
            let (_, value, _) = COLUMNS[column];
            let of_tack = tack.filter(|tack| tack.stack != row.stack);
            let ratio =
                of_tack.and_then(|tack| ratios(&row.rounds, &tack.rounds, |round| valid(round, value)));
            cells.push(whole(ratio, 2));
        }
        let count = row.rounds.iter().filter(|round| round.not_valid.is_empty()).count();
        cells.push(match memory {
            true => middle(Spread::from_values(row.resident_mb), 0),
            false => format!("{count} of {}", row.rounds.len()),
        });
        table.push(&cells);
    }
    table.text()
}

/// A value of a round that says something about the stack.
fn valid(round: &Round, value: fn(&Round) -> Option<f64>) -> Option<f64> {
    if round.not_valid.is_empty() { value(round) } else { None }
}

/// Why rounds are not valid.
fn why_not(rows: &[Row]) -> String {
    let reasons = rows.iter().flat_map(|row| {
        let reasons = row.rounds.iter().flat_map(|round| &round.not_valid);
        reasons.map(|reason| format!("* {}: {reason}\n", row.stack))
    });
    let lines: String = reasons.collect();
    if lines.is_empty() { lines } else { format!("\n**Not valid, twice:**\n\n{lines}") }
}

/// The version of a package that this program is built with.
pub fn version(package: &str) -> &'static str {
    let named = format!("name = \"{package}\"\nversion = \"");
    let after = LOCK.split_once(&named).and_then(|(_, rest)| rest.split_once('"'));
    after.map_or("of unknown version", |(version, _)| version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_goal_is_told_as_reached_or_missed() {
        let row = |stack: Stack, cpu_s: f64| {
            let cpu_s_per_gb = Some(Cpu { sender: cpu_s, receiver: cpu_s });
            let round = Round { cpu_s_per_gb, ..Round::default() };
            Row { stack: name_of(&stack), rounds: vec![round], resident_mb: None }
        };
        let goal_for = |tack_cpu_s: f64| goal(&[row(Stack::Tack, tack_cpu_s), row(Stack::Quinn, 3.0)]);
        assert!(
            goal_for(2.1).starts_with("The goal, 0.5 of quinn's processor time, is missed: TACK takes 0.70"),
            "{}",
            goal_for(2.1)
        );
        assert!(goal_for(1.5).contains("is reached: TACK takes 0.50 (0.50–0.50) of it."));
        // Without quinn there is nothing to compare.
        assert_eq!(goal(&[row(Stack::Tack, 1.0)]), PROFILE);
    }

    #[test]
    fn versions_are_those_of_the_lock_file() {
        assert!(version("quinn").starts_with("0."), "{}", version("quinn"));
        assert_eq!(version("no-such-package"), "of unknown version");
    }
}
