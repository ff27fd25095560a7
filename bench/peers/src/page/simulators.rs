//! The simulator beside ns-3: the same cell in both, goodput and processor time.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use clap::Args;
use serde::{Deserialize, Serialize};
use tacit_runs::bench::processor_time;
use tacit_runs::single::{Options, prepare};

use super::spread::{Spread, ratios};
use super::table::{Table, filled, middle, whole};
use super::tools::{compile, json, stdout_of};
use super::{Measurement, Name, Part, Plan};

/// Modules with which the source in bench/ns3 is linked.
const MODULES: [&str; 10] = [
    "ns3-core",
    "ns3-network",
    "ns3-internet",
    "ns3-applications",
    "ns3-point-to-point",
    "ns3-propagation",
    "ns3-spectrum",
    "ns3-mobility",
    "ns3-traffic-control",
    "ns3-wifi",
];

const COMPILER: [&str; 3] = ["c++", "-O2", "-std=c++17"];

/// Goodput that differs by more is to be explained.
const DIFFERENCE_EXPLAINED_FROM: f64 = 0.03;

/// Both simulators get these settings in all set-ups.
const MEASURE_FROM_S: u32 = 4;
const QUICK_MEASURED_S: u32 = 1;
const MEASURED_S: u32 = 10;
/// With 802.11ax, ns-3 takes up to 17 s per simulated second.
const HE_MEASURED_S: u32 = 2;

/// A set-up in the words of both simulators.
struct SetUp {
    name: &'static str,
    what: &'static str,
    scenario: &'static str,
    clients: u32,
    measured_s: u32,
    set: &'static [&'static str],
    ns3: &'static [&'static str],
}

/// As ns-3 counts HE: the set-ups of the figure `validation/ns3-11ax`, whose reasons stand there.
macro_rules! high_efficiency {
    ($($more:literal),*) => {
        &[
            "wifi.coding=bcc",
            "wifi.packet-extension=0 us",
            "wifi.ap-scheduler=fcfs",
            "wifi.ap-queue=768 packets",
            "wired.rate=5Gbps",
            "tcp.profile=classic",
            "tcp.slow-start=linux",
            "tcp.ack-every=2",
            "tcp.ack-delay=40 ms",
            $($more),*
        ]
    };
}

/// The same in ns-3's words.
macro_rules! high_efficiency_in_ns3 {
    ($($more:literal),*) => {
        &["--standard=11ax", "--wireRate=5Gbps", "--apQueue=1024", "--payload=1448", $($more),*]
    };
}

/// ns-3's access point serves `first come, first served`; datagrams come at a rate, as the source that fills a wire
/// would cost ns-3 the most and say nothing more. The other settings are in the source in bench/ns3.
const SETUPS: &[SetUp] = &[
    SetUp {
        name: "11n-150-tcp-1",
        what: "802.11n at 150 Mb/s, one TCP download",
        scenario: "ns3-11n-150",
        clients: 1,
        measured_s: MEASURED_S,
        set: &["wifi.ap-scheduler=fcfs"],
        ns3: &["--standard=11n", "--transport=tcp"],
    },
    SetUp {
        name: "11n-150-tcp-10",
        what: "the same, ten clients",
        scenario: "ns3-11n-150",
        clients: 10,
        measured_s: MEASURED_S,
        // One A-MPDU is in the air at a time, for any client: it takes 3 packets of each client's 126, not 29.
        set: &["wifi.ap-scheduler=fcfs", "wifi.ap-queue=123 packets"],
        ns3: &["--standard=11n", "--transport=tcp"],
    },
    SetUp {
        name: "11n-150-udp-1",
        what: "datagrams at 150 Mb/s",
        scenario: "ns3-11n-150",
        clients: 1,
        measured_s: MEASURED_S,
        set: &["wifi.ap-scheduler=fcfs", "traffic.transport=udp", "traffic.udp-rate=150Mbps"],
        ns3: &["--standard=11n", "--transport=udp", "--udpRate=150Mbps"],
    },
    SetUp {
        name: "11n-150-udp-10",
        what: "datagrams at 15 Mb/s to each of ten clients",
        scenario: "ns3-11n-150",
        clients: 10,
        measured_s: MEASURED_S,
        set: &["wifi.ap-scheduler=fcfs", "traffic.transport=udp", "traffic.udp-rate=15Mbps"],
        ns3: &["--standard=11n", "--transport=udp", "--udpRate=150Mbps"],
    },
    SetUp {
        name: "11a-54-tcp-1",
        what: "802.11a at 54 Mb/s, one TCP download",
        scenario: "wlan-11a-54",
        clients: 1,
        measured_s: MEASURED_S,
        set: &["tcp.profile=classic", "tcp.mtu=1512 B"],
        ns3: &["--standard=11a", "--transport=tcp", "--wireRate=100Mbps"],
    },
    SetUp {
        name: "11a-54-udp-1",
        what: "datagrams at 40 Mb/s",
        scenario: "wlan-11a-54",
        clients: 1,
        measured_s: MEASURED_S,
        set: &["traffic.udp-payload=1460 B", "traffic.transport=udp", "traffic.udp-rate=40Mbps"],
        ns3: &["--standard=11a", "--transport=udp", "--wireRate=100Mbps", "--udpRate=40Mbps"],
    },
    SetUp {
        name: "11ax-600-tcp-1",
        what: "802.11ax at 600.5 Mb/s, one TCP download",
        scenario: "wlan-11ax-1200",
        clients: 1,
        measured_s: HE_MEASURED_S,
        set: high_efficiency!("wifi.rate=600.5Mbps"),
        ns3: high_efficiency_in_ns3!("--transport=tcp"),
    },
    SetUp {
        name: "11ax-600-tcp-10",
        what: "the same, ten clients",
        scenario: "wlan-11ax-1200",
        clients: 10,
        measured_s: HE_MEASURED_S,
        set: high_efficiency!("wifi.rate=600.5Mbps"),
        ns3: high_efficiency_in_ns3!("--transport=tcp"),
    },
    SetUp {
        name: "11ax-600-udp-1",
        what: "datagrams at 700 Mb/s",
        scenario: "wlan-11ax-1200",
        clients: 1,
        measured_s: HE_MEASURED_S,
        set: high_efficiency!(
            "wifi.rate=600.5Mbps",
            "traffic.udp-payload=1448 B",
            "traffic.transport=udp",
            "traffic.udp-rate=700Mbps"
        ),
        ns3: high_efficiency_in_ns3!("--transport=udp", "--udpRate=700Mbps"),
    },
    SetUp {
        name: "11ax-2402-tcp-1",
        what: "802.11ax at 2402 Mb/s, one TCP download",
        scenario: "wlan-11ax-2402",
        clients: 1,
        measured_s: HE_MEASURED_S,
        set: high_efficiency!(),
        ns3: high_efficiency_in_ns3!("--transport=tcp", "--width=160", "--streams=2"),
    },
];

/// Results of one run of either simulator.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    goodput_bps: f64,
    simulated_s: f64,
    /// User and system, of the run alone.
    cpu_s: f64,
}

impl Sample {
    fn cpu_ms_per_s(&self) -> f64 {
        self.cpu_s * 1e3 / self.simulated_s
    }
}

/// All runs of a set-up: those of ns-3 and tacit at the same place ran next to each other.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    name: String,
    what: String,
    tacit: Vec<Sample>,
    ns3: Vec<Sample>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Simulators {
    ns3_version: String,
    rows: Vec<Row>,
}

impl Part for Simulators {
    const NAME: Name = Name::Simulators;
    const HEADING: &'static str = "The simulator beside ns-3";

    fn measure(plan: &Plan) -> Result<Measurement<Self>> {
        let Some(ns3_version) = stdout_of("pkg-config", &["--modversion", "ns3-wifi"]) else {
            return Ok(Measurement::Skipped("no ns-3 here (libns3-dev, pkg-config ns3-wifi)".to_owned()));
        };
        let source = plan.arguments.sources.join("ns3/wlan.cc");
        let wlan = compile(&COMPILER, &source, &MODULES, &plan.arguments.results.join("ns3-wlan"))?;
        let mut rows: Vec<Row> = SETUPS.iter().map(Row::new).collect();
        for seed in 1..=plan.pairs {
            for (set_up, row) in SETUPS.iter().zip(&mut rows) {
                let measured_s = if plan.quick() { QUICK_MEASURED_S } else { set_up.measured_s };
                let duration_s = MEASURE_FROM_S + measured_s;
                row.ns3.push(json(&mut set_up.in_ns3(&wlan, seed, duration_s))?);
                row.tacit.push(json(&mut set_up.in_tacit(seed, duration_s)?)?);
            }
        }
        Ok(Measurement::Measured(Self { ns3_version, rows }))
    }

    fn text(&self) -> String {
        let mut table = Table::new(&[
            "",
            "ns-3, Mb/s",
            "tacit, Mb/s",
            "difference, %",
            "ns-3, CPU ms per simulated s",
            "tacit",
            "ns-3 over tacit",
        ]);
        for row in &self.rows {
            let column = |samples: &[Sample], value: fn(&Sample) -> f64| {
                Spread::from_values(samples.iter().map(value))
            };
            let goodput = |sample: &Sample| sample.goodput_bps / 1e6;
            table.push(&[
                format!("`{}`: {}", row.name, row.what),
                middle(column(&row.ns3, goodput), 1),
                middle(column(&row.tacit, goodput), 1),
                row.difference().map_or_else(String::new, |spread| spread.percent()),
                middle(column(&row.ns3, Sample::cpu_ms_per_s), 0),
                middle(column(&row.tacit, Sample::cpu_ms_per_s), 2),
                whole(ratios(&row.ns3, &row.tacit, |sample| Some(sample.cpu_ms_per_s())), 0),
            ]);
        }
        format!("{}\n{}\n{}", table.text(), filled(&self.verdict()), self.notes())
    }
}

impl Simulators {
    fn verdict(&self) -> String {
        let far = self.rows.iter().filter(|row| row.is_far()).map(|row| format!("`{}`", row.name));
        let far = far.collect::<Vec<_>>();
        let limit = format!("{:.0} %", DIFFERENCE_EXPLAINED_FROM * 100.0);
        if far.is_empty() {
            format!("No median of goodput is more than {limit} off.")
        } else {
            format!("**Medians of goodput more than {limit} off: {}.**", far.join(", "))
        }
    }

    fn notes(&self) -> String {
        let how = format!(
            "ns-3 {} as it is installed here, driven by a source of our own, [`bench/ns3/wlan.cc`](../../bench/ns3/wlan.cc), \
             which names each setting beside ours. The scenarios are `ns3-11n-150`, `wlan-11a-54`, `wlan-11ax-1200` and \
             `wlan-11ax-2402`, with the settings of [`simulators.rs`](../../bench/peers/src/page/simulators.rs): goodput of \
             {MEASURED_S} simulated seconds from second {MEASURE_FROM_S} on, of 802.11ax {HE_MEASURED_S}, a seed for each pair. Processor time is user and system of the run \
             alone, in a process of its own: neither starting nor setting up counts, on either side.",
            self.ns3_version
        );
        let differs = "Known differences: ns-3's queue has the MPDUs in the air, so its 126 packets per client are 97 here \
             (123 with ten clients); there an MPDU of an A-MPDU is sent until it is too old, here no more than 8 \
             times; and ns-3's stations of 802.11a draw one backoff for each frame, where ours draw another if \
             the channel was busy, so that ns-3 has some 2 % more. Seeds scatter by 2 %. Debian's ns-3 has its \
             logging compiled in: without it, it takes less time. [More on agreement](ns-3.md).";
        format!("{}\n{}", filled(&how), filled(differs))
    }
}

impl Row {
    fn new(set_up: &SetUp) -> Self {
        let (name, what) = (set_up.name.to_owned(), set_up.what.to_owned());
        Self { name, what, tacit: Vec::new(), ns3: Vec::new() }
    }

    /// By how much of ns-3's goodput ours is more.
    fn difference(&self) -> Option<Spread> {
        let ratio = ratios(&self.tacit, &self.ns3, |sample| Some(sample.goodput_bps))?;
        Some(ratio.map(|ratio| ratio - 1.0))
    }

    fn is_far(&self) -> bool {
        self.difference().is_none_or(|difference| difference.median.abs() > DIFFERENCE_EXPLAINED_FROM)
    }
}

impl SetUp {
    fn in_ns3(&self, program: &Path, seed: u32, duration_s: u32) -> Command {
        let mut command = Command::new(program);
        command.args(self.ns3).args([
            format!("--clients={}", self.clients),
            format!("--seed={seed}"),
            format!("--duration={duration_s}s"),
            format!("--measureFrom={MEASURE_FROM_S}s"),
        ]);
        command
    }

    fn in_tacit(&self, seed: u32, duration_s: u32) -> Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["simulate", self.scenario]);
        command.args([format!("--clients={}", self.clients), format!("--seed={seed}")]);
        let times = [format!("run.duration={duration_s} s"), format!("run.measure-from={MEASURE_FROM_S} s")];
        let times = times.iter().map(String::as_str);
        // ns-3 keeps no time series either.
        let set = self.set.iter().copied().chain(times).chain(["run.sample-interval=none"]);
        command.args(set.map(|assignment| format!("--set={assignment}")));
        Ok(command)
    }
}

/// A run to measure.
#[derive(Debug, Args)]
pub struct SimulateArguments {
    scenario: String,
    #[arg(long)]
    clients: u32,
    #[arg(long)]
    seed: u64,
    #[arg(long = "set")]
    assignments: Vec<String>,
}

/// Simulates in this process, and prints the time that it took.
pub fn simulate(arguments: &SimulateArguments) -> Result<()> {
    let prepared = prepare(&Options {
        scenario: arguments.scenario.clone(),
        assignments: arguments.assignments.clone(),
        clients: Some(arguments.clients),
        seed: arguments.seed,
        ..Options::default()
    })?;
    let before = processor_time();
    let outcome = prepared.simulate()?;
    let cpu_s = (processor_time() - before).as_secs_f64();
    let simulated_s = prepared.setup.duration.as_secs_f64();
    let sample = Sample { goodput_bps: outcome.goodput_bps(), simulated_s, cpu_s };
    println!("{}", serde_json::to_string(&sample).context("a sample")?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_set_up_is_a_scenario_with_as_many_flows_as_clients() {
        for set_up in SETUPS {
            let prepared = prepare(&Options {
                scenario: set_up.scenario.to_owned(),
                assignments: set_up.set.iter().map(|&text| text.to_owned()).collect(),
                clients: Some(set_up.clients),
                seed: 1,
                ..Options::default()
            });
            assert_eq!(prepared.unwrap().setup.flows.len(), set_up.clients as usize, "{}", set_up.name);
        }
    }

    #[test]
    fn other_output_of_ns3_is_ignored() {
        let line = r#"{"goodput_bps":113736336,"simulated_s":14,"measured_s":10,"cpu_s":3.5,"wall_s":3.6,"events":9}"#;
        let sample: Sample = serde_json::from_str(line).unwrap();
        assert_eq!(sample, Sample { goodput_bps: 113_736_336.0, simulated_s: 14.0, cpu_s: 3.5 });
        assert_eq!(
            Spread::from_values([sample.cpu_ms_per_s()]).map(|spread| spread.text(0)).as_deref(),
            Some("250 (250–250)")
        );
    }

    #[test]
    fn the_source_for_ns3_takes_what_it_is_told_and_prints_what_is_read() {
        let Some(directory) =
            stdout_of("pkg-config", &["--modversion", "ns3-wifi"]).map(|_| tempfile::tempdir().unwrap())
        else {
            eprintln!("SKIPPED: no ns-3 (libns3-dev, pkg-config ns3-wifi)");
            return;
        };
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/ns3/wlan.cc");
        let wlan = compile(&COMPILER, &source, &MODULES, &directory.path().join("wlan")).unwrap();
        for set_up in SETUPS {
            // Goodput counts from the fourth second on, and by then all of the air is used.
            let sample: Sample = json(&mut set_up.in_ns3(&wlan, 1, MEASURE_FROM_S + 1)).unwrap();
            let rate_mbps: f64 = set_up.name.split('-').nth(1).unwrap().parse().unwrap();
            let share = sample.goodput_bps / 1e6 / rate_mbps;
            assert!((0.4..1.0).contains(&share), "{}: {share}", set_up.name);
        }
    }

    #[test]
    fn goodput_more_than_three_per_cent_apart_is_said_to_be() {
        let samples = |goodput_bps: [f64; 3]| {
            goodput_bps.map(|goodput_bps| Sample { goodput_bps, simulated_s: 1.0, cpu_s: 1.0 }).to_vec()
        };
        let row = |tacit| Row { tacit: samples(tacit), ns3: samples([100.0; 3]), ..Row::new(&SETUPS[0]) };
        // It is the median that counts, to either side.
        assert!(!row([97.5, 90.0, 102.0]).is_far());
        assert!(row([96.0, 96.9, 100.0]).is_far());
        assert!(row([104.0, 103.1, 100.0]).is_far());
    }
}
