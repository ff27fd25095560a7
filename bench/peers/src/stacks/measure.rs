//! A row's measurements: a download and objects, each through a hop of its own.

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::roster::{Contender, Place, Wanted};
use crate::fetch::Fetched;
use crate::hop::{self, Hop, Ran};
use crate::page::Measurement;
use crate::work::percentile;

/// Seconds after which a client is ended.
const LIMIT_S: &str = "90";

/// A download.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bulk {
    pub mbps: f64,
    /// Packets up per 100 packets down, as the hop counts them.
    pub acks_per_100: f64,
    /// The client's part of the airtime that stations used.
    pub ack_airtime: Option<f64>,
    pub cpu_s_per_gb: Option<f64>,
}

/// A row's results in one round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Round {
    pub bulk: Measurement<Bulk>,
    /// Seconds that each transfer took, in the order of [`Wanted::ALL`].
    pub times_s: Vec<Measurement<Vec<f64>>>,
}

/// Commands of both ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Programs {
    pub server: Vec<String>,
    pub client: Vec<String>,
}

/// Who makes the commands of a job.
pub trait Ends {
    /// For transfers of `objects` objects of `bytes` bytes; nothing where the stack cannot.
    fn programs(&self, bytes: u64, objects: u32, times: u32) -> Result<Option<Programs>>;
}

/// A program that speaks this one's words.
pub struct Peer<'a> {
    pub contender: &'a Contender,
    /// Before `serve` or `fetch`.
    pub words: &'a [String],
}

impl Ends for Peer<'_> {
    fn programs(&self, bytes: u64, objects: u32, times: u32) -> Result<Option<Programs>> {
        let end = |job: &str, address: &str| {
            let mut all = self.words.to_vec();
            all.extend([job, address].map(str::to_owned));
            all.extend(self.contender.words.iter().map(|word| (*word).to_owned()));
            all
        };
        // quic-go's flags of `fetch` come after the address.
        let mut client = end("fetch", hop::SERVER);
        for (flag, value) in [("--bytes", bytes), ("--objects", objects.into()), ("--times", times.into())] {
            client.extend([flag.to_owned(), value.to_string()]);
        }
        Ok(Some(Programs { server: end("serve", hop::ANY), client }))
    }
}

/// The hop of a place.
pub fn hop_at(place: &Place, congestion: Option<&str>) -> Hop {
    Hop {
        scenario: place.scenario.to_owned(),
        assignments: place.assignments.iter().map(|word| (*word).to_owned()).collect(),
        background: place.background,
        congestion: congestion.map(str::to_owned),
    }
}

/// Measures once, and repeats once what was not valid.
pub fn round(hop: &Hop, place: &Place, ends: &impl Ends, less: u64) -> Result<Round> {
    let bytes = place.bulk_bytes / less;
    let bulk = twice(|| job(hop, ends, bytes, 1, 1, bulk))?;
    let times_s = Wanted::ALL.map(|wanted| {
        let (bytes, objects) = wanted.objects();
        twice(|| job(hop, ends, bytes, objects, place.times, |_, fetched| Some(fetched.times_s.clone())))
    });
    Ok(Round { bulk, times_s: times_s.into_iter().collect::<Result<_>>()? })
}

fn twice<T>(job: impl Fn() -> Result<Measurement<T>>) -> Result<Measurement<T>> {
    match job()? {
        Measurement::Skipped(_) => job(),
        measured => Ok(measured),
    }
}

/// One run of a hop.
fn job<T>(
    hop: &Hop,
    ends: &impl Ends,
    bytes: u64,
    objects: u32,
    times: u32,
    value: impl Fn(&Ran, &Fetched) -> Option<T>,
) -> Result<Measurement<T>> {
    let Some(Programs { server, client }) = ends.programs(bytes, objects, times)? else {
        return Ok(Measurement::Skipped("no such transfer".to_owned()));
    };
    let limited = ["timeout", "--kill-after=1", LIMIT_S].map(str::to_owned);
    let ran = hop.run(&[&limited[..], &client].concat(), &server)?;
    Ok(judged(&ran, value))
}

/// Statuses of `timeout` for a command that was ended (timeout(1)).
const ENDED: [u64; 2] = [124, 137];

/// The value of a run that was in time.
fn judged<T>(ran: &Ran, value: impl Fn(&Ran, &Fetched) -> Option<T>) -> Measurement<T> {
    let status = ran.report["exit_status"].as_u64();
    if status.is_some_and(|status| ENDED.contains(&status)) {
        return Measurement::Skipped(format!("more than {LIMIT_S} s"));
    }
    if let Some(why) = ran.not_valid() {
        return Measurement::Skipped(why);
    }
    let fetched = ran.line().and_then(|line| serde_json::from_value(line).context("the client's line"));
    match fetched.map(|fetched| value(ran, &fetched)) {
        Ok(Some(value)) => Measurement::Measured(value),
        Ok(None) => Measurement::Skipped("the hop counted nothing".to_owned()),
        Err(error) => Measurement::Skipped(first_line(&format!("{error:#}"))),
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

fn bulk(ran: &Ran, fetched: &Fetched) -> Option<Bulk> {
    let [data, acks] = ran.packets()?;
    let bytes = fetched.bytes as f64;
    Some(Bulk {
        mbps: bytes * 8e-6 / fetched.duration_s,
        acks_per_100: acks / data * 100.0,
        ack_airtime: ran.client_airtime(),
        cpu_s_per_gb: ran.cpu_s().map(|both| both.iter().sum::<f64>() / (bytes / 1e9)),
    })
}

/// The median and the 95th percentile of all rounds' times of a kind, in ms.
pub fn times_ms(rounds: &[Round], wanted: usize) -> Option<[f64; 2]> {
    let mut all: Vec<f64> =
        rounds.iter().filter_map(|round| measured(round.times_s.get(wanted)?)).flatten().copied().collect();
    all.sort_by(f64::total_cmp);
    let ms = |percent| percentile(&all, percent).map(|seconds| seconds * 1e3);
    Some([ms(50)?, ms(95)?])
}

pub const fn measured<T>(measurement: &Measurement<T>) -> Option<&T> {
    match measurement {
        Measurement::Measured(value) => Some(value),
        Measurement::Skipped(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::stacks::roster::ROSTER;

    fn ran(valid: bool, status: u64, output: &str) -> Ran {
        let end = |sent: u64, received: u64| json!({ "end": { "packets_sent": sent, "packets_received": received } });
        let report = json!({
            "valid": valid, "reasons": if valid { vec![] } else { vec!["it was late"] }, "exit_status": status,
            "transfer": { "down": end(1_010, 1_000), "up": end(20, 20) },
            "station_airtime": [[0.6, 0.2]],
            "waits": { "command": { "ran_s": 0.5 }, "server": { "ran_s": 1.5 } },
        });
        Ran { output: output.to_owned(), report }
    }

    const LINE: &str = r#"{"bytes":1000000000,"duration_s":40.0,"times_s":[40.0]}"#;

    #[test]
    fn a_download_has_packets_airtime_and_processor_of_the_hops_report() {
        let Measurement::Measured(bulk) = judged(&ran(true, 0, LINE), bulk) else { panic!("skipped") };
        let expected =
            Bulk { mbps: 200.0, acks_per_100: 2.0, ack_airtime: Some(0.25), cpu_s_per_gb: Some(2.0) };
        assert!((bulk.ack_airtime.unwrap() - 0.25).abs() < 1e-9);
        assert_eq!(Bulk { ack_airtime: Some(0.25), ..bulk }, expected);
    }

    #[test]
    fn a_run_that_was_late_or_ended_is_no_number() {
        let why = |ran: &Ran| match judged(ran, bulk) {
            Measurement::Skipped(why) => why,
            Measurement::Measured(bulk) => panic!("{bulk:?}"),
        };
        assert_eq!(why(&ran(false, 0, LINE)), "it was late");
        assert_eq!(why(&ran(true, 124, "")), "more than 90 s");
        assert_eq!(why(&ran(true, 0, "it broke")), "no line of JSON in: it broke");
    }

    #[test]
    fn percentiles_are_of_all_rounds_together() {
        let round = |times: &[f64]| Round {
            bulk: Measurement::Skipped(String::new()),
            times_s: vec![Measurement::Measured(times.to_vec())],
        };
        let rounds = [
            round(&[0.3, 0.1]),
            round(&[0.2]),
            Round { times_s: vec![Measurement::Skipped(String::new())], ..round(&[]) },
        ];
        let [p50, p95] = times_ms(&rounds, 0).unwrap();
        assert!((p50 - 200.0).abs() < 1e-9 && (p95 - 300.0).abs() < 1e-9, "{p50} {p95}");
        assert_eq!(times_ms(&rounds, 1), None);
    }

    #[test]
    fn both_ends_have_the_settings_of_their_row() {
        let contender = ROSTER.iter().find(|contender| contender.name == "s2n-bbr").unwrap();
        let words = ["tacit-peers".to_owned(), "s2n".to_owned()];
        let Programs { server, client } =
            Peer { contender, words: &words }.programs(7, 2, 3).unwrap().unwrap();
        assert_eq!(server.join(" "), "tacit-peers s2n serve 0.0.0.0:4433 --windows own --congestion bbr");
        assert_eq!(
            client.join(" "),
            "tacit-peers s2n fetch 198.18.0.1:4433 --windows own --congestion bbr --bytes 7 --objects 2 --times 3"
        );
    }
}
