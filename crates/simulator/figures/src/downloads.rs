//! The duration of file downloads through live hops during an upload, by the sender's congestion control.

use super::draw::{distribution, distribution_chart};
use super::figure::{Figure, Findings};
use super::form::Form;
use super::live_runs::{Download, GoodputSource, Made, MakeLive, TransferPoint, TransferRun};
use super::measure::{Curve, Curves};
use super::plot_data::PlotData;
use super::results::RunContext;
use super::schemes::selected;
use super::shell_hop::ShellHop;
use super::transferred::{Point, Transferred, row};
use tacit_analysis::chart::{LineChart, Panel, Views, stacked};
use tacit_packet::units::Bytes;
use tacit_runs::RunsError;
use tacit_scenario::input::{Section, integer, text, texts};
use tacit_scenario::scheme::Scheme;
use tacit_scenario::{InputError, Scenario, quoted};
use tacit_tcp::ReceiveAutotuning;

/// Time from the start of the upload to the first download.
const LEAD_MS: u32 = 5_000;
/// Time limit of a download. One that does not finish counts with this duration.
const LIMIT_S: u32 = 60;
/// Maximum number of downloads per sender, and of concurrent hops per sender.
const MAX_DOWNLOADS: u32 = 10_000;
const MAX_HOPS: u32 = 16;
/// Percentages of the downloads for which curves have points.
const SHARES: std::ops::RangeInclusive<u32> = 1..=20;
const SHARE_PERCENT: u32 = 5;

/// Columns of every curve: the seconds within which the given percentage of the downloads finished. The first one is
/// drawn. `transfer_s` excludes the client's handshake, because in the simulator the sender opens a connection.
const COLUMNS: [&str; 2] = ["download_s", "transfer_s"];

/// `form = "downloads"`: the same downloads from several senders, live and simulated.
#[derive(Clone, Debug)]
pub(super) struct Downloads {
    scenario: String,
    assignments: Vec<String>,
    senders: Vec<&'static Scheme>,
    megabytes: u32,
    /// Number of downloads per sender.
    count: u32,
    /// Interval between the starts of consecutive downloads.
    slot_s: u32,
    /// Number of concurrent hops per sender. They share the downloads and start them at different times.
    hops: u32,
    quick_count: u32,
}

/// The downloads through one hop, which start one after another.
#[derive(Clone, Copy, Debug)]
struct Hop {
    count: u32,
    /// Start of the first download relative to the upload, and the interval between starts, in milliseconds.
    first_ms: u32,
    /// See `first_ms`.
    slot_ms: u32,
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

    /// Length of the file in bytes.
    fn bytes(&self) -> u32 {
        self.megabytes * 1_000_000
    }

    /// The hops of each sender. Each starts its downloads at different positions in the traces.
    fn hops(&self) -> impl Iterator<Item = Hop> {
        let (count, hops, slot_ms) = (self.count, self.hops, self.slot_s * 1_000);
        let hop = move |number: u32| Hop {
            count: (count + number) / hops,
            first_ms: LEAD_MS + slot_ms * number / hops,
            slot_ms,
        };
        (0..hops).map(hop).filter(|hop| hop.count > 0)
    }

    /// The runs of `sender`, one per hop, with nginx on the server's side and a server for the upload.
    fn runs(&self, sender: &Scheme) -> Result<Vec<TransferRun>, RunsError> {
        let tcp = Scenario::load(&self.scenario, &self.assignments)?.tcp;
        let receive_buffer = (tcp.receive_autotuning == ReceiveAutotuning::Off).then_some(tcp.receive_buffer);
        let (congestion, with) = match sender.name {
            "rre" => ("cubic", format!("{} rre run -- ", quoted("{tacit}"))),
            // Linux's name.
            "newreno" => ("reno", String::new()),
            kernels => (kernels, String::new()),
        };
        let server = format!("iperf3 -s >/dev/null & exec {with}nginx -c {{dir}}/nginx.conf");
        let script = |script: String| vec!["sh".to_owned(), "-c".to_owned(), script];
        let run = |hop: Hop| TransferRun {
            hop: ShellHop {
                congestion: Some(congestion.to_owned()),
                ..ShellHop::new(&self.scenario, self.assignments.clone())
            },
            server: script(server.clone()),
            client: script(hop.client_script(receive_buffer)),
            programs: &["iperf3", "nginx", "curl"],
            seconds: hop.end_s(),
            bytes: self.bytes().into(),
            goodput_source: GoodputSource::Downloads,
            kept: false,
        };
        Ok(self.hops().map(run).collect())
    }

    /// The simulated downloads of `hop`, without those that do not finish.
    fn simulated(&self, hop: &Hop, sender: &Scheme) -> Result<Vec<Download>, RunsError> {
        let file = |(start_ms, number): (u32, u32)| {
            format!("{{name=\"download {number}\",size=\"{} B\",start=\"{start_ms} ms\"}}", self.bytes())
        };
        let mut flows: Vec<String> = hop.starts_ms().zip(1..).map(file).collect();
        flows.push("{name=\"upload\",kind=\"upload\",congestion=\"cubic\"}".to_owned());
        let own = [
            format!("run.duration={} s", hop.end_s()),
            "run.measure-from=0 s".to_owned(),
            format!("flow=[{}]", flows.join(",")),
        ];
        let assignments: Vec<String> = self.assignments.iter().cloned().chain(own).collect();
        let scenario = sender.applied_to(&Scenario::load(&self.scenario, &assignments)?);
        let outcome = tacit_sim::run(&scenario.setup(1, 1)?).map_err(|source| RunsError::Run {
            run: scenario.name.clone(),
            command: scenario.run_command(Some(sender.name), scenario.clients, 1),
            source,
        })?;
        let downloads = outcome.flows.iter().take(hop.count as usize);
        let ended = downloads.filter(|flow| flow.completed_at.is_some());
        let download = |total_s| Download { total_s, connected_s: 0.0 };
        Ok(ended.map(|flow| download(flow.lasted.as_secs_f64())).collect())
    }

    /// The point of a curve with all `downloads`. Each unfinished one counts with the time limit.
    fn point(&self, curve: String, mut downloads: Vec<Download>, disturbed: Option<String>) -> Point {
        downloads.resize(self.count as usize, Download { total_s: LIMIT_S.into(), connected_s: 0.0 });
        let of = |download: Download| {
            let seconds = [download.total_s, download.total_s - download.connected_s];
            row(&COLUMNS, seconds.map(|seconds| Some(seconds.min(LIMIT_S.into()))))
        };
        let runs = downloads.into_iter().map(of).collect();
        Point { disturbed, ..Point::simulated(curve, None, 0.0, runs) }
    }
}

impl Hop {
    /// Start of each download, in milliseconds after the upload.
    fn starts_ms(&self) -> impl Iterator<Item = u32> {
        let Self { first_ms, slot_ms, .. } = *self;
        (0..self.count).map(move |number| first_ms + number * slot_ms)
    }

    /// Time by which every download has finished or reached its limit, in seconds after the upload.
    fn end_s(&self) -> u32 {
        (self.first_ms + self.count * self.slot_ms) / 1_000 + LIMIT_S
    }

    /// The program on the client's side: a shell script. Each download prints a line as described for
    /// [`GoodputSource::Downloads`]. `receive_buffer` sets the receive buffer; without it the kernel tunes the buffer.
    fn client_script(&self, receive_buffer: Option<Bytes>) -> String {
        let last_s = self.end_s();
        let mut script = format!("iperf3 -c 198.18.0.1 -C cubic -t {last_s} >/dev/null 2>&1 & upload=$!; ");
        let mut before_ms = 0;
        for start_ms in self.starts_ms() {
            let pause_ms = start_ms - before_ms;
            before_ms = start_ms;
            script += &format!("sleep {}.{:03}; get & ", pause_ms / 1_000, pause_ms % 1_000);
        }
        // The script waits only for the downloads.
        let get = format!(
            "get() {{ curl -s -f -m {LIMIT_S} -o /dev/null -w 'took %{{time_total}} %{{time_connect}}\\n' http://198.18.0.1:8001/file; }}; "
        );
        // Half of the memory that the kernel assigns to a connection is for payload (`tcp_adv_win_scale`, ip-sysctl).
        let buffer = receive_buffer.map_or(String::new(), |Bytes(bytes)| {
            format!("echo 4096 {0} {0} >/proc/sys/net/ipv4/tcp_rmem; ", 2 * bytes)
        });
        format!("{buffer}{get}sleep 1; {script}sleep {LIMIT_S}; kill $upload; true")
    }
}

impl Form for Downloads {
    const COLUMNS: &'static [&'static str] = &COLUMNS;
    const KEEPS: bool = false;

    fn names_of_curves(&self) -> Vec<String> {
        self.senders.iter().flat_map(|sender| [live_name(sender), simulated_name(sender)]).collect()
    }

    fn shortened(&self, quick: bool) -> Self {
        let count = if quick { self.quick_count } else { self.count };
        Self { count, ..self.clone() }
    }

    /// Runs all senders at the same time, so that each experiences the same parts of the traces.
    fn measured(&self, make: &mut dyn MakeLive) -> Result<Made, RunsError> {
        let runs = self.senders.iter().map(|sender| self.runs(sender)).collect::<Result<Vec<_>, _>>()?;
        let all = runs.concat();
        if let Some(missing) = runs.iter().filter_map(|own| own.first()).find_map(|run| make.missing(run)) {
            return Ok(Err(missing));
        }
        let command = || all.first().map_or_else(String::new, |run| run.hop.command("…", "…"));
        let mut reports = make.all(&all, command)?.into_iter();
        let of_sender = |(arm, runs): (usize, &Vec<TransferRun>)| {
            let runs = Ok(reports.by_ref().take(runs.len()).collect());
            TransferPoint { arm, variant: None, x: 0.0, runs }
        };
        Ok(Ok(runs.iter().enumerate().map(of_sender).collect()))
    }

    fn compared(&self, live: &[TransferPoint], _making: RunContext<'_>) -> Result<Transferred, RunsError> {
        let mut points = Vec::new();
        for (sender, place) in self.senders.iter().zip(live) {
            let reports = place.runs.as_deref().unwrap_or_default();
            let downloads = reports.iter().flat_map(|report| report.downloads.iter().copied()).collect();
            let disturbed = reports.iter().find_map(|report| report.invalid.clone());
            points.push(self.point(live_name(sender), downloads, disturbed));
            let mut downloads = Vec::new();
            for hop in self.hops() {
                downloads.extend(self.simulated(&hop, sender)?);
            }
            points.push(self.point(simulated_name(sender), downloads, None));
        }
        Ok(Transferred { points })
    }

    fn findings(self, figure: &Figure, results: Transferred) -> Findings {
        let drawn = ranked(&results);
        Findings {
            picture: Some(picture(&results, figure)),
            disturbance: Box::new(move |claim, _| {
                let measure = claim.measure.of_curves()?;
                results.points.iter().find_map(|point| {
                    let is_concerned = measure.curves().any(|curve| curve == point.curve);
                    point.disturbed.clone().filter(|_| is_concerned)
                })
            }),
            ..Findings::of_curves(drawn)
        }
    }
}

/// The data for claims: the time within which each percentage of the downloads finished, with the percentage as x.
fn ranked(results: &Transferred) -> PlotData {
    let curve = |point: &Point| {
        let sorted = COLUMNS.map(|name| {
            let mut seconds = point.column(name);
            seconds.sort_by(f64::total_cmp);
            seconds
        });
        let at = |share: u32| {
            let share = share * SHARE_PERCENT;
            // The nearest-rank method.
            let ranked = |seconds: &Vec<f64>| {
                let rank = (seconds.len() * share as usize).div_ceil(100).saturating_sub(1);
                seconds.get(rank).copied()
            };
            (f64::from(share), sorted.iter().map(ranked).collect())
        };
        Curve { name: point.curve.clone(), points: SHARES.map(at).collect(), ..Curve::default() }
    };
    let curves = results.points.iter().map(curve).collect();
    let curves = Curves { columns: COLUMNS.map(str::to_owned).to_vec(), curves };
    PlotData::new(String::new(), String::new(), curves)
}

/// The distributions.
fn picture(results: &Transferred, figure: &Figure) -> Views {
    let lines = results.points.iter().map(|point| distribution(&point.curve, point.column(COLUMNS[0])));
    let chart = LineChart {
        x: "seconds".to_owned(),
        y: "downloads that took no longer (%)".to_owned(),
        lines: lines.collect(),
        ..distribution_chart(figure)
    };
    let alt = format!("{}: {}", figure.id, figure.title);
    Views::new(|width| stacked(&alt, &[Panel::Lines(&chart)], width))
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
    use crate::mock::{self, machine, verdicts};
    use crate::{FigureOutcome, TransferReport};

    const FIGURE: &str = "\
title = \"t\"
paper = \"p\"
[transfers]
form = \"downloads\"
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
    fn an_unfinished_download_counts_as_long() {
        let outcome = result(None, |run| if is_rre(run) { TransferReport::default() } else { report(run) });
        // Two downloads of 60 s, while 1.5 are allowed.
        assert!(outcome.claims[0].measured.is_some_and(|ratio| ratio < 0.2), "{outcome:?}");
    }

    #[test]
    fn hops_share_the_downloads_and_start_at_other_moments() {
        let figure = mock::figure(FIGURE);
        let downloads = figure.kind_as::<Downloads>().unwrap();
        let runs = downloads.runs(downloads.senders[0]).unwrap();
        let starts: Vec<Vec<u32>> = downloads.hops().map(|hop| hop.starts_ms().collect()).collect();
        assert_eq!(starts, [vec![5_000, 11_000], vec![8_000, 14_000, 20_000]]);
        assert!(runs[0].client[2].contains("sleep 5.000; get & sleep 6.000; get & sleep 60"));
        assert!(!runs[0].client[2].contains("tcp_rmem"), "the kernel tunes its buffers itself");
    }

    #[test]
    fn live_receivers_have_the_buffer_of_the_scenario() {
        let toml =
            FIGURE.replace("\"lte-synthetic\"", "\"lte-synthetic\"\nset = [\"tcp.receive-buffer=1 MiB\"]");
        let figure = mock::figure(&toml);
        let downloads = figure.kind_as::<Downloads>().unwrap();
        let runs = downloads.runs(downloads.senders[0]).unwrap();
        let script = &runs[0].client[2];
        assert!(script.starts_with("echo 4096 2097152 2097152 >/proc/sys/net/ipv4/tcp_rmem; "), "{script}");
    }
}
