//! `transfers.downloads`: each arm downloads many files beside an upload, and the curves are how long they take.

use super::axis::Axis;
use super::draw::{distribution, distribution_chart};
use super::figure::Figure;
use super::live_runs::Download;
use super::measure::{Curve, Curves};
use super::transferred::{Row, Transferred, row};
use tacit_analysis::chart::{LineChart, Panel, Views, stacked};
use tacit_packet::units::Bytes;
use tacit_runs::RunsError;
use tacit_scenario::input::{Section, integer};
use tacit_scenario::scheme::Scheme;
use tacit_scenario::{InputError, Scenario};
use tacit_tcp::ReceiveAutotuning;

/// Time from the start of the upload to the first download.
const LEAD_MS: u32 = 5_000;
/// Maximum number of concurrent hops per arm.
const MAX_HOPS: u32 = 16;
/// Percentages of the downloads for which curves have points.
const SHARES: std::ops::RangeInclusive<u32> = 1..=20;
const SHARE_PERCENT: u32 = 5;

/// Columns of every curve: the seconds within which the given percentage of the downloads finished. The first one is
/// drawn. `transfer_s` excludes the client's handshake, because in the simulator the sender opens a connection.
pub(super) const COLUMNS: [&str; 2] = ["download_s", "transfer_s"];

/// Programs that the script on the client's side needs, and the server's.
pub(super) const PROGRAMS: [&str; 3] = ["iperf3", "nginx", "curl"];

/// `transfers.downloads`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Downloads {
    /// Interval between the starts of consecutive downloads.
    slot_s: u32,
    /// Number of concurrent hops per arm. They share the downloads and start them at different times.
    hops: u32,
}

/// The downloads through one hop, which start one after another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hop {
    count: u32,
    /// Start of the first download relative to the upload, and the interval between starts, in milliseconds.
    first_ms: u32,
    /// See `first_ms`.
    slot_ms: u32,
    /// Time limit of a download in seconds. One that does not finish counts with this duration.
    limit_s: u32,
}

/// The files that an arm downloads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Files {
    pub count: u32,
    pub bytes: u64,
    /// Longest duration of a download in seconds.
    pub limit_s: u32,
}

impl Downloads {
    pub fn read(section: Section<'_>) -> Result<Option<Self>, InputError> {
        if !section.is_present() {
            return Ok(None);
        }
        let downloads = Self {
            slot_s: section.required("slot-s", integer(1..=600))?,
            hops: section.required("hops", integer(1..=MAX_HOPS))?,
        };
        section.finish()?;
        Ok(Some(downloads))
    }

    /// The x axis of the curves.
    pub fn axis() -> Axis {
        let values = SHARES.map(|share| f64::from(share * SHARE_PERCENT)).collect();
        Axis { key: "share of the downloads (%)".to_owned(), values, ..Axis::default() }
    }

    /// The hops of each arm. Each starts its downloads at different positions in the traces.
    pub fn hops(self, Files { count, limit_s, .. }: Files) -> impl Iterator<Item = Hop> {
        let (hops, slot_ms) = (self.hops, self.slot_s * 1_000);
        let hop = move |number: u32| Hop {
            count: (count + number) / hops,
            first_ms: LEAD_MS + slot_ms * number / hops,
            slot_ms,
            limit_s,
        };
        (0..hops).map(hop).filter(|hop| hop.count > 0)
    }

    /// The rows of the simulated downloads over `scheme`, in `scenario` with these assignments.
    ///
    /// # Errors
    /// If a simulation fails.
    pub fn simulated(
        self,
        files: Files,
        (scenario, assignments): (&str, &[String]),
        scheme: &Scheme,
    ) -> Result<Vec<Row>, RunsError> {
        let mut downloads = Vec::new();
        for hop in self.hops(files) {
            downloads.extend(hop.simulated(files.bytes, (scenario, assignments), scheme)?);
        }
        Ok(rows(files, downloads))
    }
}

/// The rows of all `downloads`. Each unfinished one counts with the time limit.
pub(super) fn rows(files: Files, mut downloads: Vec<Download>) -> Vec<Row> {
    let limit_s = files.limit_s.into();
    downloads.resize(files.count as usize, Download { total_s: limit_s, connected_s: 0.0 });
    let to_row = |download: Download| {
        let seconds = [download.total_s, download.total_s - download.connected_s];
        row(&COLUMNS, seconds.map(|seconds| Some(seconds.min(limit_s))))
    };
    downloads.into_iter().map(to_row).collect()
}

impl Hop {
    /// Start of each download, in milliseconds after the upload.
    fn starts_ms(&self) -> impl Iterator<Item = u32> {
        let Self { first_ms, slot_ms, .. } = *self;
        (0..self.count).map(move |number| first_ms + number * slot_ms)
    }

    /// Time by which every download has finished or reached its limit, in seconds after the upload.
    pub fn end_s(&self) -> u32 {
        (self.first_ms + self.count * self.slot_ms) / 1_000 + self.limit_s
    }

    /// The simulated downloads, without those that do not finish.
    fn simulated(
        &self,
        bytes: u64,
        (scenario, assignments): (&str, &[String]),
        scheme: &Scheme,
    ) -> Result<Vec<Download>, RunsError> {
        let file = |(start_ms, number): (u32, u32)| {
            format!("{{name=\"download {number}\",size=\"{bytes} B\",start=\"{start_ms} ms\"}}")
        };
        let mut flows: Vec<String> = self.starts_ms().zip(1..).map(file).collect();
        flows.push("{name=\"upload\",kind=\"upload\",congestion=\"cubic\"}".to_owned());
        let mut assignments = assignments.to_vec();
        assignments.extend([
            format!("run.duration={} s", self.end_s()),
            "run.measure-from=0 s".to_owned(),
            format!("flow=[{}]", flows.join(",")),
        ]);
        let scenario = scheme.applied_to(&Scenario::load(scenario, &assignments)?);
        let outcome = tacit_sim::run(&scenario.setup(1, 1)?).map_err(|source| RunsError::Run {
            run: scenario.name.clone(),
            command: scenario.run_command(Some(scheme.name), scenario.clients, 1),
            source,
        })?;
        let downloads = outcome.flows.iter().take(self.count as usize);
        let ended = downloads.filter(|flow| flow.completed_at.is_some());
        let download = |total_s| Download { total_s, connected_s: 0.0 };
        Ok(ended.map(|flow| download(flow.lasted.as_secs_f64())).collect())
    }

    /// The shell script on the client's side, which replaces `{downloads}`. Each download prints a line as described
    /// for [`super::GoodputSource::Downloads`]. The kernel's receive buffer is that of the scenario, where it is fixed.
    ///
    /// # Errors
    /// If the scenario of `assignments` cannot be read.
    pub fn client_script(&self, scenario: &str, assignments: &[String]) -> Result<String, RunsError> {
        let tcp = Scenario::load(scenario, assignments)?.tcp;
        let receive_buffer = (tcp.receive_autotuning == ReceiveAutotuning::Off).then_some(tcp.receive_buffer);
        let (last_s, limit_s) = (self.end_s(), self.limit_s);
        let mut script = format!("iperf3 -c 198.18.0.1 -C cubic -t {last_s} >/dev/null 2>&1 & upload=$!; ");
        let mut before_ms = 0;
        for start_ms in self.starts_ms() {
            let pause_ms = start_ms - before_ms;
            before_ms = start_ms;
            script += &format!("sleep {}.{:03}; get & ", pause_ms / 1_000, pause_ms % 1_000);
        }
        let get = get(limit_s);
        // Half of the memory that the kernel assigns to a connection is for payload (`tcp_adv_win_scale`, ip-sysctl).
        let buffer = receive_buffer.map_or(String::new(), |Bytes(bytes)| {
            format!("echo 4096 {0} {0} >/proc/sys/net/ipv4/tcp_rmem; ", 2 * bytes)
        });
        Ok(format!("{buffer}{get}sleep 1; {script}sleep {limit_s}; kill $upload; true"))
    }
}

/// The shell function that downloads the file. curl writes its times also where it fails, such as without a server.
fn get(limit_s: u32) -> String {
    format!(
        "get() {{ took=$(curl -s -f -m {limit_s} -o /dev/null -w 'took %{{time_total}} %{{time_connect}}' http://198.18.0.1:8001/file) && echo \"$took\"; }}; "
    )
}

/// The curves `names` for claims: the time within which each percentage of the downloads finished, with the percentage
/// as x.
pub(super) fn ranked(results: &Transferred, names: Vec<String>) -> Curves {
    let curve = |name: String| {
        let sorted = COLUMNS.map(|column| {
            let mut seconds = results.column(&name, column);
            seconds.sort_by(f64::total_cmp);
            seconds
        });
        let at = |share: f64| {
            // The nearest-rank method.
            let ranked = |seconds: &Vec<f64>| {
                let rank = (seconds.len() * share as usize).div_ceil(100).saturating_sub(1);
                seconds.get(rank).copied()
            };
            (share, sorted.iter().map(ranked).collect())
        };
        let points = Downloads::axis().values.into_iter().map(at).collect();
        Curve { name, points, ..Curve::default() }
    };
    Curves { columns: COLUMNS.map(str::to_owned).to_vec(), curves: names.into_iter().map(curve).collect() }
}

/// The distributions.
pub(super) fn picture(results: &Transferred, names: &[String], figure: &Figure) -> Views {
    let lines = names.iter().map(|name| distribution(name, results.column(name, COLUMNS[0])));
    let chart = LineChart {
        x: "seconds".to_owned(),
        y: "downloads that took no longer (%)".to_owned(),
        lines: lines.collect(),
        ..distribution_chart(figure)
    };
    let alt = format!("{}: {}", figure.id, figure.title);
    Views::new(|width| stacked(&alt, &[Panel::Lines(&chart)], width))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::mock::{self, machine, verdicts};
    use crate::transfers::Transfers;
    use crate::{FigureOutcome, TransferReport, TransferRun};

    const FIGURE: &str = "\
title = \"t\"
paper = \"p\"
[transfers]
scenario = \"lte-synthetic\"
megabytes = 1
seconds = 60
medians = 5
downloads = { slot-s = 6, hops = 2 }
quick = { medians = 2 }
[[transfers.arm]]
name = \"rre\"
server = [\"sh\", \"-c\", \"iperf3 -s & exec {tacit} rre run -- nginx\"]
client = [\"sh\", \"-c\", \"{downloads}\"]
told-by = \"downloads\"
simulated = \"rre\"
[[transfers.arm]]
name = \"cubic\"
server = [\"sh\", \"-c\", \"iperf3 -s & exec nginx\"]
client = [\"sh\", \"-c\", \"{downloads}\"]
told-by = \"downloads\"
congestion = \"cubic\"
simulated = \"cubic\"
[[claim]]
text = \"the median\"
paper = 2
measure = { ratio = \"live cubic\", over = \"live rre\", x = 50 }
tolerance = 0
[[claim]]
text = \"the simulator's is finite\"
paper = 59
measure = { value = \"simulated rre\", x = 50 }
bound = \"at-most\"
tolerance = 0
";

    fn result(directory: Option<&Path>, give: impl Fn(&TransferRun) -> TransferReport) -> FigureOutcome {
        mock::outcome(FIGURE, false, &mut machine(|run: &TransferRun| Ok(give(run))), directory)
    }

    /// Downloads of 1, 2, … seconds, or twice that.
    fn report(run: &TransferRun) -> TransferReport {
        let times = if is_rre(run) { 1.0 } else { 2.0 };
        let download = |number| Download { total_s: f64::from(number) * times, connected_s: 0.5 };
        let downloads = run.client[2].matches("get & ").zip(1_u32..).map(|(_, number)| download(number));
        TransferReport { downloads: downloads.collect(), ..TransferReport::default() }
    }

    fn is_rre(run: &TransferRun) -> bool {
        run.server[2].contains("rre run -- nginx")
    }

    #[test]
    fn medians_are_compared_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let outcome = result(Some(directory.path()), report);
        assert_eq!(verdicts(&outcome), ["pass", "pass"], "{outcome:?}");
    }

    #[test]
    fn disturbed_downloads_are_skipped_and_nothing_else() {
        let outcome = result(None, |run| TransferReport { invalid: Some("busy".into()), ..report(run) });
        assert_eq!(verdicts(&outcome), ["skipped", "pass"], "{outcome:?}");
    }

    #[test]
    fn all_downloads_are_made_at_the_same_time_and_once() {
        let disturbed =
            |run: &TransferRun| Ok(TransferReport { invalid: Some("busy".into()), ..report(run) });
        let mut machine = machine(disturbed);
        let outcome = mock::outcome(FIGURE, false, &mut machine, None);
        assert_eq!(machine.rounds.into_inner(), [4], "two arms with two hops");
        let skipped = outcome.claims[0].skipped.as_deref();
        assert_eq!(
            skipped,
            Some("live rre: 2 of 2 runs not valid: busy; live cubic: 2 of 2 runs not valid: busy")
        );
    }

    #[test]
    fn a_download_that_fails_is_not_one_that_took_a_moment() {
        for (status, expected) in [(0, "took 1.5 0.2\n"), (7, "")] {
            let script = format!("curl() {{ echo took 1.5 0.2; return {status}; }}; {} get; true", get(60));
            let stdout = std::process::Command::new("sh").args(["-c", &script]).output().unwrap().stdout;
            assert_eq!(String::from_utf8(stdout).unwrap(), expected);
        }
    }

    #[test]
    fn an_unfinished_download_counts_as_long() {
        let outcome = result(None, |run| if is_rre(run) { TransferReport::default() } else { report(run) });
        // Two downloads of 60 s, while 1.5 are allowed.
        assert!(outcome.claims[0].measured.is_some_and(|ratio| ratio < 0.2), "{outcome:?}");
    }

    #[test]
    fn hops_share_the_downloads_and_start_at_other_moments() {
        let figure = mock::figure(FIGURE);
        let transfers = figure.kind_as::<Transfers>().unwrap();
        let runs = transfers.runs(&transfers.arms[0], None, 0.0).unwrap();
        let hops = transfers.downloads.unwrap().hops(transfers.files());
        let starts: Vec<Vec<u32>> = hops.map(|hop| hop.starts_ms().collect()).collect();
        assert_eq!(starts, [vec![5_000, 11_000], vec![8_000, 14_000, 20_000]]);
        assert!(runs[0].client[2].contains("sleep 5.000; get & sleep 6.000; get & sleep 60"));
        assert!(!runs[0].client[2].contains("tcp_rmem"), "the kernel tunes its buffers itself");
    }

    #[test]
    fn what_single_transfers_have_is_refused() {
        for (from, to, expected) in [
            ("megabytes = 1\n", "", "nor without megabytes"),
            ("medians = 5", "medians = 5\nbackground = 1", "not with background"),
            ("medians = 5", "medians = 5\nx = { key = \"wifi.rate\", values = [1] }", "x"),
            ("simulated = \"cubic\"", "over = \"rre\"", "not with background, variants or over"),
            ("x = 50 }\ntolerance", "x = 52 }\ntolerance", "at an x that is not swept"),
        ] {
            let text = FIGURE.replacen(from, to, 1);
            assert_ne!(text, FIGURE);
            let error = Figure::parse("x", "x.toml", &text).unwrap_err().to_string();
            assert!(error.contains(expected), "{expected}: {error}");
        }
    }

    #[test]
    fn live_receivers_have_the_buffer_of_the_scenario() {
        let toml =
            FIGURE.replace("\"lte-synthetic\"", "\"lte-synthetic\"\nset = [\"tcp.receive-buffer=1 MiB\"]");
        let figure = mock::figure(&toml);
        let transfers = figure.kind_as::<Transfers>().unwrap();
        let runs = transfers.runs(&transfers.arms[0], None, 0.0).unwrap();
        let script = &runs[0].client[2];
        assert!(script.starts_with("echo 4096 2097152 2097152 >/proc/sys/net/ipv4/tcp_rmem; "), "{script}");
    }
}
