//! Downloads of a file through live hops beside an upload, by the sender's congestion control: how long they take.

use serde::{Deserialize, Serialize};

use super::draw::{distribution, distribution_chart};
use super::figure::{Claim, Figure, Findings};
use super::live_kind::LiveKind;
use super::live_run::{
    Download, DownloadReport, DownloadRun, LiveRuns, LiveSort, MakeLive, PerFigure, SenderDownloads,
};
use super::measure::{Curve, Curves};
use super::plot_data::PlotData;
use super::results::RunContext;
use super::schemes::selected;
use super::shell_hop::ShellHop;
use tacit_analysis::chart::{LineChart, Panel, stacked};
use tacit_proto::tcp::ReceiveAutotuning;
use tacit_proto::units::Bytes;
use tacit_runs::RunsError;
use tacit_scenario::input::{Section, integer, text, texts};
use tacit_scenario::scheme::Scheme;
use tacit_scenario::{InputError, Scenario, quoted};

/// The upload has so long before the first download.
const LEAD_MS: u32 = 5_000;
/// A download that has not ended after so long counts as one that took so long.
const LIMIT_S: u32 = 60;
/// Most downloads of a sender, and most hops at the same time for each.
const MAX_DOWNLOADS: u32 = 10_000;
const MAX_HOPS: u32 = 16;
/// Shares of the downloads that curves have points for, in per cent.
const SHARES: std::ops::RangeInclusive<u32> = 1..=20;
const SHARE_PERCENT: u32 = 5;

/// Columns of every curve, in seconds in which that share of the downloads ended; the first is drawn. `transfer_s` is without
/// the client's handshake: in the simulator it is the sender that opens a connection.
const COLUMNS: [&str; 2] = ["download_s", "transfer_s"];

/// `[downloads]`: the same downloads from several senders, live and simulated.
#[derive(Clone, Debug)]
pub(super) struct Downloads {
    scenario: String,
    assignments: Vec<String>,
    senders: Vec<&'static Scheme>,
    megabytes: u32,
    /// How many of each sender.
    count: u32,
    /// From the start of one to the start of the next.
    slot_s: u32,
    /// Hops at the same time for each sender, which share the downloads and start them at different moments.
    hops: u32,
    quick_count: u32,
}

/// The downloads of one curve.
#[derive(Debug, Serialize, Deserialize)]
struct Sample {
    name: String,
    /// In the order of [`COLUMNS`], each ascending.
    seconds: [Vec<f64>; 2],
    /// Why nothing is claimed of it.
    disturbed: Option<String>,
}

impl Downloads {
    pub fn read(section: Section<'_>) -> Result<Self, InputError> {
        let senders = selected(&section, "senders", &section.required("senders", texts)?)?;
        let quick = section.section("quick")?;
        let count = integer(1..=MAX_DOWNLOADS);
        let downloads = Self {
            scenario: section.required("scenario", text)?,
            assignments: section.or("set", Vec::new(), texts)?,
            senders,
            megabytes: section.required("megabytes", integer(1..=1_000))?,
            count: section.required("count", &count)?,
            slot_s: section.required("slot-s", integer(1..=600))?,
            hops: section.required("hops", integer(1..=MAX_HOPS))?,
            quick_count: quick.required("count", &count)?,
        };
        quick.finish()?;
        section.finish()?;
        Ok(downloads)
    }

    /// The runs of `sender`, one for each hop. Each hop starts its downloads at other moments of the traces.
    fn runs(&self, sender: &Scheme) -> Result<Vec<DownloadRun>, RunsError> {
        let tcp = Scenario::load(&self.scenario, &self.assignments)?.tcp;
        let receive_buffer = (tcp.receive_autotuning == ReceiveAutotuning::Off).then_some(tcp.receive_buffer);
        let slot_ms = self.slot_s * 1_000;
        let congestion = if sender.name == "rre" { "cubic" } else { sender.name };
        let run = |number: u32| DownloadRun {
            hop: ShellHop {
                congestion: Some(congestion.to_owned()),
                ..ShellHop::new(&self.scenario, self.assignments.clone())
            },
            sender: sender.name,
            bytes: self.megabytes * 1_000_000,
            count: (self.count + number) / self.hops,
            first_ms: LEAD_MS + slot_ms * number / self.hops,
            slot_ms,
            receive_buffer,
        };
        Ok((0..self.hops).map(run).filter(|run| run.count > 0).collect())
    }

    fn sample(&self, name: String, mut downloads: Vec<Download>, disturbed: Option<String>) -> Sample {
        downloads.resize(self.count as usize, Download { total_s: LIMIT_S.into(), connected_s: 0.0 });
        let column = |of: fn(&Download) -> f64| {
            let mut seconds: Vec<f64> =
                downloads.iter().map(|download| of(download).min(LIMIT_S.into())).collect();
            seconds.sort_by(f64::total_cmp);
            seconds
        };
        let seconds =
            [column(|download| download.total_s), column(|download| download.total_s - download.connected_s)];
        Sample { name, seconds, disturbed }
    }
}

impl DownloadRun {
    /// When each download starts, in milliseconds after the upload.
    fn starts_ms(&self) -> impl Iterator<Item = u32> {
        let Self { first_ms, slot_ms, .. } = *self;
        (0..self.count).map(move |number| first_ms + number * slot_ms)
    }

    /// What the client's side runs: a shell script. Each download writes a line: `took`, the seconds it took, and those until
    /// it was connected.
    pub fn client_script(&self) -> String {
        let last_s = (self.first_ms + self.count * self.slot_ms) / 1_000 + LIMIT_S;
        let mut script = format!("iperf3 -c 198.18.0.1 -C cubic -t {last_s} >/dev/null 2>&1 & upload=$!; ");
        let mut before_ms = 0;
        for start_ms in self.starts_ms() {
            let pause_ms = start_ms - before_ms;
            before_ms = start_ms;
            script += &format!("sleep {}.{:03}; get & ", pause_ms / 1_000, pause_ms % 1_000);
        }
        // Only the downloads are waited for.
        let get = format!(
            "get() {{ curl -s -f -m {LIMIT_S} -o /dev/null -w 'took %{{time_total}} %{{time_connect}}\\n' http://198.18.0.1:8001/file; }}; "
        );
        // Of the memory that a kernel gives a connection half is for payload (`tcp_adv_win_scale`, ip-sysctl).
        let buffer = self.receive_buffer.map_or(String::new(), |Bytes(bytes)| {
            format!("echo 4096 {0} {0} >/proc/sys/net/ipv4/tcp_rmem; ", 2 * bytes)
        });
        format!("{buffer}{get}sleep 1; {script}sleep {LIMIT_S}; kill $upload; true")
    }

    /// What the server's side runs, in the directory `directory` that is its own: nginx, and a server for the upload.
    /// `tacit` is this program.
    pub fn server_script(&self, tacit: &str, directory: &str) -> String {
        let config = nginx_config(directory);
        let with =
            if self.sender == "rre" { format!("{} rre run -- ", quoted(tacit)) } else { String::new() };
        format!(
            "head -c {} /dev/urandom >{directory}/file; echo '{config}' >{directory}/nginx.conf; \
             iperf3 -s >/dev/null & exec {with}nginx -c {directory}/nginx.conf",
            self.bytes
        )
    }

    /// The command that makes it, without the scripts.
    pub fn command(&self) -> String {
        self.hop.command("…", "…")
    }

    /// The downloads in the simulator; those that do not end are not there.
    fn simulated(&self, sender: &Scheme) -> Result<Vec<Download>, RunsError> {
        let name = |number| format!("download {number}");
        let mut flows: Vec<String> = self
            .starts_ms()
            .zip(1_u32..)
            .map(|(start_ms, number)| {
                format!("{{name=\"{}\",size=\"{} B\",start=\"{start_ms} ms\"}}", name(number), self.bytes)
            })
            .collect();
        flows.push("{name=\"upload\",kind=\"upload\",congestion=\"cubic\"}".to_owned());
        let end_s = (self.first_ms + self.count * self.slot_ms) / 1_000 + LIMIT_S;
        let assignments: Vec<String> = (self.hop.assignments.iter().cloned())
            .chain([
                format!("run.duration={end_s} s"),
                "run.measure-from=0 s".to_owned(),
                format!("flow=[{}]", flows.join(",")),
            ])
            .collect();
        let scenario = sender.applied_to(&Scenario::load(&self.hop.scenario, &assignments)?);
        let outcome = tacit_sim::run(&scenario.setup(1, 1)?).map_err(|source| RunsError::Run {
            run: scenario.name.clone(),
            command: scenario.run_command(Some(sender.name), scenario.clients, 1),
            source,
        })?;
        let downloads = outcome.flows.iter().take(self.count as usize);
        let ended = downloads.filter(|flow| flow.completed_at.is_some());
        let download = |total_s| Download { total_s, connected_s: 0.0 };
        Ok(ended.map(|flow| download(flow.lasted.as_secs_f64())).collect())
    }
}

/// What an nginx is told that serves the files of `directory` on port 8001, and writes nowhere else.
pub fn nginx_config(directory: &str) -> String {
    format!(
        "daemon off; user root; pid {directory}/pid; error_log {directory}/errors; events {{}} \
         http {{ access_log off; client_body_temp_path {directory}/t; proxy_temp_path {directory}/t; \
         fastcgi_temp_path {directory}/t; uwsgi_temp_path {directory}/t; scgi_temp_path {directory}/t; \
         server {{ listen 198.18.0.1:8001; root {directory}; }} }}"
    )
}

impl LiveKind for Downloads {
    const SORT: LiveSort = LiveSort::Downloads;
    const COLUMNS: &'static [&'static str] = &COLUMNS;
    type Run = SenderDownloads;
    type Results = Samples;

    fn names_of_curves(&self) -> Vec<String> {
        self.senders.iter().flat_map(|sender| [live_name(sender), simulated_name(sender)]).collect()
    }

    fn form(&self, quick: bool) -> Self {
        let count = if quick { self.quick_count } else { self.count };
        Self { count, ..self.clone() }
    }

    /// All senders at the same time, so that each meets the same moments of the traces.
    fn measure(&self, make: &mut dyn MakeLive) -> Result<Vec<SenderDownloads>, RunsError> {
        let runs: Result<Vec<Vec<DownloadRun>>, RunsError> =
            self.senders.iter().map(|sender| self.runs(sender)).collect();
        let runs = runs?;
        let all = runs.concat();
        let command = || all.first().map(DownloadRun::command).unwrap_or_default();
        let failed = |said: String| RunsError::Program { command: command(), said };
        let mut reports = make.downloads(&all).map_err(failed)?.into_iter();
        let of_sender = |runs: &Vec<DownloadRun>| {
            let reports: Vec<DownloadReport> = reports.by_ref().take(runs.len()).collect();
            if reports.len() < runs.len() {
                return Err(failed("gave fewer reports than runs".to_owned()));
            }
            let disturbed = reports.iter().find_map(|report| report.invalid.clone());
            let downloads = reports.into_iter().flat_map(|report| report.downloads).collect();
            Ok(SenderDownloads { downloads, disturbed })
        };
        runs.iter().map(of_sender).collect()
    }

    fn given(all: &LiveRuns) -> &PerFigure<SenderDownloads> {
        &all.downloads
    }

    fn compared(&self, live: &[SenderDownloads], _making: RunContext<'_>) -> Result<Samples, RunsError> {
        let mut samples = Vec::new();
        for (sender, live) in self.senders.iter().zip(live) {
            samples.push(self.sample(live_name(sender), live.downloads.clone(), live.disturbed.clone()));
            let mut downloads = Vec::new();
            for run in self.runs(sender)? {
                downloads.extend(run.simulated(sender)?);
            }
            samples.push(self.sample(simulated_name(sender), downloads, None));
        }
        Ok(Samples { samples })
    }

    fn findings(&self, samples: Samples) -> Box<dyn Findings> {
        let drawn = PlotData::new(String::new(), String::new(), samples.curves());
        Box::new(DownloadFindings { drawn, samples })
    }
}

/// The samples of a figure.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Samples {
    samples: Vec<Sample>,
}

impl Samples {
    /// For claims: the time in which each share of the downloads ended, the share in per cent being x.
    pub fn curves(&self) -> Curves {
        let curve = |sample: &Sample| {
            let at = |share: u32| {
                let share = share * SHARE_PERCENT;
                // The nearest rank.
                let ranked = |seconds: &Vec<f64>| {
                    let rank = (seconds.len() * share as usize).div_ceil(100).saturating_sub(1);
                    seconds.get(rank).copied()
                };
                (f64::from(share), sample.seconds.iter().map(ranked).collect())
            };
            Curve { name: sample.name.clone(), points: SHARES.map(at).collect(), ..Curve::default() }
        };
        Curves {
            columns: COLUMNS.map(str::to_owned).to_vec(),
            curves: self.samples.iter().map(curve).collect(),
        }
    }
}

/// The samples, and the curves of their shares.
struct DownloadFindings {
    drawn: PlotData,
    samples: Samples,
}

impl Findings for DownloadFindings {
    fn curves(&self) -> Option<&PlotData> {
        Some(&self.drawn)
    }

    fn disturbance(&self, claim: &Claim, _measured: Option<f64>) -> Option<String> {
        let measure = claim.measure.of_curves()?;
        let mut samples = self.samples.samples.iter();
        samples.find_map(|sample| {
            let is_concerned = measure.curves().any(|curve| curve == sample.name);
            sample.disturbed.clone().filter(|_| is_concerned)
        })
    }

    /// The distributions.
    fn picture(&self, figure: &Figure) -> Option<String> {
        let samples = self.samples.samples.iter();
        let lines = samples.map(|sample| distribution(&sample.name, sample.seconds[0].clone()));
        let chart = LineChart {
            x: "seconds".to_owned(),
            y: "downloads that took no longer (%)".to_owned(),
            lines: lines.collect(),
            ..distribution_chart(figure)
        };
        Some(stacked(&format!("{}: {}", figure.id, figure.title), &[Panel::Lines(&chart)]))
    }
}

fn live_name(sender: &Scheme) -> String {
    format!("live {}", sender.name)
}

fn simulated_name(sender: &Scheme) -> String {
    format!("simulated {}", sender.name)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{FigureOutcome, Options, run};
    use tacit_runs::sweep::Control;

    struct Machine<F>(F);

    impl<F: Fn(&DownloadRun) -> DownloadReport> MakeLive for Machine<F> {
        fn downloads(&mut self, runs: &[DownloadRun]) -> Result<Vec<DownloadReport>, String> {
            Ok(runs.iter().map(&self.0).collect())
        }
    }

    const FIGURE: &str = "\
title = \"t\"
paper = \"p\"
[downloads]
scenario = \"lte-synthetic\"
senders = [\"rre\", \"cubic\"]
megabytes = 1
count = 5
slot-s = 6
hops = 2
quick = { count = 2 }
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

    fn result(directory: Option<&Path>, give: impl Fn(&DownloadRun) -> DownloadReport) -> FigureOutcome {
        let figures = [Figure::parse("test/downloads", "downloads.toml", FIGURE).unwrap()];
        let live = LiveRuns::make(&figures, false, &mut Machine(give)).unwrap();
        let directory = directory.map(Path::to_owned);
        let options = Options { live, directory: directory.clone(), ..Options::default() };
        let outcome = run(&figures, &options, Control::unattended()).unwrap().remove(0);
        if directory.is_some() {
            let options = Options { from: directory, ..Options::default() };
            assert_eq!(run(&figures, &options, Control::unattended()).unwrap()[0].claims, outcome.claims);
        }
        outcome
    }

    /// Downloads of 1, 2, … seconds, or of twice that.
    fn report(run: &DownloadRun) -> DownloadReport {
        let times = if run.sender == "rre" { 1.0 } else { 2.0 };
        let download = |number| Download { total_s: f64::from(number) * times, connected_s: 0.5 };
        let downloads = run.starts_ms().zip(1_u32..).map(|(_, number)| download(number)).collect();
        DownloadReport { downloads, invalid: None }
    }

    fn verdicts(outcome: &FigureOutcome) -> Vec<&str> {
        outcome.claims.iter().map(|claim| claim.verdict.word()).collect()
    }

    #[test]
    fn medians_are_compared_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let outcome = result(Some(directory.path()), report);
        assert_eq!(verdicts(&outcome), ["pass", "pass"], "{outcome:?}");
    }

    #[test]
    fn what_a_machine_disturbed_is_skipped_and_nothing_else() {
        let outcome = result(None, |run| DownloadReport { invalid: Some("busy".into()), ..report(run) });
        assert_eq!(verdicts(&outcome), ["skipped", "pass"], "{outcome:?}");
    }

    #[test]
    fn what_did_not_end_counts_as_long() {
        let outcome = result(None, |run| match run.sender {
            "rre" => DownloadReport::default(),
            _ => report(run),
        });
        // Two of 60 s, where 1.5 were allowed.
        assert!(outcome.claims[0].measured.is_some_and(|ratio| ratio < 0.2), "{outcome:?}");
    }

    #[test]
    fn hops_share_the_downloads_and_start_at_other_moments() {
        let figure = Figure::parse("test/downloads", "downloads.toml", FIGURE).unwrap();
        let downloads = figure.kind_as::<Downloads>().unwrap();
        let runs = downloads.runs(downloads.senders[0]).unwrap();
        let starts: Vec<Vec<u32>> = runs.iter().map(|run| run.starts_ms().collect()).collect();
        assert_eq!(starts, [vec![5_000, 11_000], vec![8_000, 14_000, 20_000]]);
        assert!(runs[0].client_script().contains("sleep 5.000; get & sleep 6.000; get & sleep 60"));
        assert!(!runs[0].client_script().contains("tcp_rmem"), "the kernel tunes its buffers itself");
    }

    #[test]
    fn live_receivers_have_the_buffer_of_the_scenario() {
        let toml =
            FIGURE.replace("\"lte-synthetic\"", "\"lte-synthetic\"\nset = [\"tcp.receive-buffer=1 MiB\"]");
        let figure = Figure::parse("test/downloads", "downloads.toml", &toml).unwrap();
        let downloads = figure.kind_as::<Downloads>().unwrap();
        let runs = downloads.runs(downloads.senders[0]).unwrap();
        let script = runs[0].client_script();
        assert!(script.starts_with("echo 4096 2097152 2097152 >/proc/sys/net/ipv4/tcp_rmem; "), "{script}");
    }
}
