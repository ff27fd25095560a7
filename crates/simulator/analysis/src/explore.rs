//! `tacit explore`: a single HTML file that shows every frame in a run, from microseconds to seconds. It can show two
//! schemes, or two variants of the settings, side by side.

mod columns;
mod data;
mod page;
#[cfg(test)]
mod tests;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tacit_packet::units::{Duration, Instant};
use tacit_runs::RunsError;
use tacit_runs::air::{Watch, Window};
use tacit_runs::single::{self, Prepared, Reached, Single};
use tacit_scenario::input::{argument, duration};
use tacit_scenario::scheme::{self, Role, Scheme};
use tacit_scenario::{InputError, quoted};
use tacit_sim::capture::AtomicFile;

use crate::chart::{Ink, SeriesStyle};
use data::{RunData, Side};

/// Default file name of the page.
pub const FILE: &str = "tacit-explore.html";
/// Default schemes: the baseline, and the best known of those that append ACKs to link-layer ACKs.
pub const DEFAULT_SCHEMES: [&str; 2] = ["stock", "hack-more-data"];
/// Maximum number of PPDUs per scheme. A browser can draw this many without stalling, and the file stays within tens of
/// megabytes.
pub const MAX_PPDUS: usize = 400_000;
/// Likewise, the maximum number of samples of flows and stations together.
const MAX_SAMPLES: u64 = 200_000;
/// Candidate sampling intervals. The first one that respects this limit is used.
const SAMPLE_MS: [u64; 9] = [2, 5, 10, 20, 50, 100, 200, 500, 1_000];

/// Options of the runs to show.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Scenario by name or path.
    pub scenario: String,
    /// `--set` assignments.
    pub assignments: Vec<String>,
    /// Additional assignments for the second run. If there are any, there is a second run.
    pub against: Vec<String>,
    /// One or two schemes by name. If empty: [`DEFAULT_SCHEMES`], or, if `against` is set, the first of these for both
    /// runs.
    pub schemes: Vec<String>,
    /// Number of clients; `None` for that of the scenario.
    pub clients: Option<u32>,
    /// Seed of all random draws.
    pub seed: u64,
    /// Shorten the runs, see [`tacit_scenario::Scenario::load_quick`].
    pub quick: bool,
    /// Start of the time window as the user wrote it; `None` for the start of the run.
    pub from: Option<String>,
    /// Length of the time window as the user wrote it; `None` for the rest of the run.
    pub length: Option<String>,
}

/// The result of writing a page.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WrittenPage {
    /// Path of the page.
    pub path: PathBuf,
    /// Size in bytes.
    pub bytes: u64,
    /// Name of the scenario.
    pub scenario: String,
    /// Number of clients.
    pub clients: u32,
    /// Seed of all random draws.
    pub seed: u64,
    /// The schemes on the page.
    pub schemes: Vec<ExploredScheme>,
    /// Warnings about settings without effect, and about bytes missing from the goodput.
    pub warnings: Vec<String>,
}

/// A scheme on the page.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExploredScheme {
    /// Name of the scheme.
    pub scheme: String,
    /// Settings of this run that differ from the first one.
    pub set: Vec<String>,
    /// Number of frames on the page, which are PPDUs of the first channel.
    pub frames: usize,
    /// Number of frames omitted because of the limit.
    pub left_out: u64,
    /// Hash of the run's event trace, as in `tacit run`.
    pub digest: String,
    /// Payload delivered in order, in bits per second.
    pub goodput_bps: f64,
}

impl ExploredScheme {
    /// Its label on the page: the scheme, and its own settings.
    pub fn label(&self) -> String {
        label(&self.scheme, &self.set)
    }
}

fn label(scheme: &str, set: &[String]) -> String {
    let set = set.iter().map(String::as_str);
    std::iter::once(scheme).chain(set).collect::<Vec<_>>().join(", ")
}

/// Runs that are ready to be simulated.
#[derive(Debug)]
pub struct Exploration {
    options: Options,
    runs: Vec<OpenedRun>,
    window: Window,
    every: Duration,
}

/// One of the runs.
#[derive(Debug)]
struct OpenedRun {
    scheme: &'static Scheme,
    /// Its settings that differ from the first run.
    set: Vec<String>,
    run: Prepared,
}

impl OpenedRun {
    /// Its label on the page.
    fn label(&self) -> String {
        label(self.scheme.name, &self.set)
    }
}

/// Loads the scenario and builds the runs.
///
/// # Errors
/// If any input is not allowed.
pub fn prepare(options: &Options) -> Result<Exploration, RunsError> {
    let usual = DEFAULT_SCHEMES.map(String::from);
    let names = match (&options.schemes[..], &options.against[..]) {
        ([], []) => &usual[..],
        ([], _) => &usual[..1],
        (named, _) => named,
    };
    let run = |(scheme, set): (&'static Scheme, Vec<String>)| {
        let run = single::prepare(&single::Options {
            scenario: options.scenario.clone(),
            assignments: [&options.assignments[..], &set].concat(),
            scheme: Some(scheme.name.to_owned()),
            clients: options.clients,
            seed: options.seed,
            quick: options.quick,
            wire: false,
        })?;
        Ok(OpenedRun { scheme, set, run })
    };
    let sides = sides(&one_or_two(names)?, &options.against);
    let runs: Vec<_> = sides.into_iter().map(run).collect::<Result<_, RunsError>>()?;
    if let Some(without) = runs.iter().find(|looked| looked.run.setup.bss.is_empty()) {
        let name = &without.run.scenario().name;
        let what = format!("{name} has no Wi-Fi, hence nothing on the air to look at");
        return Err(InputError::new("tacit explore", what).allowed("scenarios with [wifi]").into());
    }
    check_against(&runs)?;
    let setup = &runs[0].run.setup;
    let window = window(options, setup.duration)?;
    let each = |ms: &u64| {
        let looks = window.until.saturating_since(window.from).as_millis() / ms;
        looks * (setup.flows.len() + setup.bss[0].clients.len() + 1) as u64
    };
    let ms = SAMPLE_MS.iter().find(|ms| each(ms) <= MAX_SAMPLES).unwrap_or(&SAMPLE_MS[SAMPLE_MS.len() - 1]);
    Ok(Exploration { options: options.clone(), window, every: Duration::from_millis(*ms), runs })
}

/// The runs as pairs of scheme and settings. There are two for two schemes, or if `against` is not empty; the second
/// has the settings of `against`.
fn sides(schemes: &[&'static Scheme], against: &[String]) -> Vec<(&'static Scheme, Vec<String>)> {
    let second = schemes.get(1).copied().or_else(|| schemes.first().copied().filter(|_| !against.is_empty()));
    let first = schemes.first().map(|scheme| (*scheme, Vec::new()));
    first.into_iter().chain(second.map(|scheme| (scheme, against.to_vec()))).collect()
}

/// Refuses two equal setups, and setups that do not fit on one page, where both share the time axis and the clients.
fn check_against(runs: &[OpenedRun]) -> Result<(), InputError> {
    let [one, other] = runs else { return Ok(()) };
    if other.set.is_empty() {
        return Ok(());
    }
    let wrong = |what: &str, allowed: &str| {
        Err(InputError::new(format!("--against {}", other.set.join(" ")), what).allowed(allowed))
    };
    if one.run.setup == other.run.setup {
        return wrong(
            "changes nothing: both runs would be the same",
            "settings that make a difference under this scheme",
        );
    }
    let shape = |looked: &OpenedRun| {
        let setup = &looked.run.setup;
        (setup.duration, setup.measure_from, looked.run.clients())
    };
    if shape(one) != shape(other) {
        return wrong(
            "the runs differ in run.duration, run.measure-from or clients.count",
            "other keys; these with --set, for both",
        );
    }
    Ok(())
}

fn one_or_two(names: &[String]) -> Result<Vec<&'static Scheme>, InputError> {
    let schemes: Vec<_> =
        names.iter().map(|name| scheme::find("--schemes", name)).collect::<Result<_, _>>()?;
    let what = match schemes[..] {
        [one, other] if one.name == other.name => format!("{} twice", one.name),
        [_] | [_, _] => return Ok(schemes),
        _ => format!("{} are {} schemes", names.join(","), names.len()),
    };
    Err(InputError::new("--schemes", what).allowed("one name or two, such as stock,hack-more-data"))
}

/// The part of a run of `length` to keep.
fn window(options: &Options, length: Duration) -> Result<Window, InputError> {
    let read =
        |name, text: &Option<String>| text.as_deref().map(|text| argument(name, text, duration)).transpose();
    let from = read("--from", &options.from)?.unwrap_or(Duration::ZERO);
    let until = match read("--for", &options.length)? {
        Some(Duration::ZERO) => {
            return Err(InputError::new("--for", "0 is nothing to look at").allowed("a time such as 100ms"));
        }
        Some(kept) if kept < length.saturating_sub(from) => from + kept,
        _ => length,
    };
    if from >= length {
        let what = format!("{from} is not before the end of the run");
        return Err(InputError::new("--from", what).allowed(format!("less than {length}")));
    }
    Ok(Window { from: Instant::ZERO + from, until: Instant::ZERO + until, ppdus: MAX_PPDUS })
}

impl Exploration {
    /// Total length of both runs.
    pub fn length(&self) -> std::time::Duration {
        self.runs.iter().filter_map(|looked| looked.run.watched_length()).sum()
    }

    /// The command that creates the same page, without the output path.
    fn command(&self) -> String {
        let Options { seed, from, length, .. } = &self.options;
        let run = &self.runs[0].run;
        let mut schemes: Vec<&str> = self.runs.iter().map(|looked| looked.scheme.name).collect();
        schemes.dedup();
        let mut command = format!(
            "tacit explore {} --schemes {} --clients {} --seed {seed}",
            run.scenario().invocation,
            schemes.join(","),
            run.clients()
        );
        for other in &self.options.against {
            command.push_str(&format!(" --against {}", quoted(other)));
        }
        for (name, value) in [("--from", from), ("--for", length)] {
            if let Some(value) = value {
                command.push_str(&format!(" {name} {}", quoted(value)));
            }
        }
        command
    }

    /// Runs the simulations, and writes the page to `path`. The file is complete or not created at all. `reached`, if
    /// given, is called with the simulated time of both runs together.
    ///
    /// # Errors
    /// If a run fails, or the file cannot be written.
    pub fn write(self, path: &Path, mut reached: Option<Reached<'_>>) -> Result<WrittenPage, RunsError> {
        // Created before the simulation, so that an error is reported early.
        let mut file = AtomicFile::create(path).map_err(RunsError::io(path))?;
        let mut sides = Vec::new();
        let mut before = std::time::Duration::ZERO;
        let inks = inks(&self.runs.iter().map(|looked| looked.scheme.name).collect::<Vec<_>>());
        for (looked, ink) in self.runs.iter().zip(inks) {
            let mut report_progress = |time| {
                if let Some(reached) = &mut reached {
                    reached(before + time);
                }
            };
            sides.push(self.side(looked, ink, &mut report_progress)?);
            before += looked.run.watched_length().unwrap_or_default();
        }
        let (scenario, clients) = (self.runs[0].run.scenario(), self.runs[0].run.clients());
        let html = page::document(&page::Content {
            scenario: &scenario.name,
            description: &scenario.description,
            scenario_text: &scenario.text,
            command: &self.command(),
            clients,
            seed: self.options.seed,
            sides: &sides,
        });
        file.write_all(html.as_bytes()).and_then(|()| file.commit()).map_err(RunsError::io(path))?;
        let mut warnings: Vec<String> =
            sides.iter().flat_map(|(side, ..)| side.warnings.clone()).chain(self.left_out(&sides)).collect();
        warnings.sort();
        warnings.dedup();
        let explored = |(looked, (side, ..)): (&OpenedRun, &(Side, String, Single))| ExploredScheme {
            scheme: looked.scheme.name.to_owned(),
            set: looked.set.clone(),
            frames: side.ppdus,
            left_out: side.left_out,
            digest: side.digest.clone(),
            goodput_bps: side.goodput_bps,
        };
        Ok(WrittenPage {
            path: path.to_owned(),
            bytes: html.len() as u64,
            scenario: scenario.name.clone(),
            clients,
            seed: self.options.seed,
            schemes: self.runs.iter().zip(&sides).map(explored).collect(),
            warnings,
        })
    }

    fn side(
        &self,
        looked: &OpenedRun,
        ink: Ink,
        report_progress: &mut (dyn FnMut(std::time::Duration) + Send),
    ) -> Result<(Side, String, Single), RunsError> {
        let mut watch = Watch::new(self.window, self.every, Some(report_progress));
        let run = &looked.run;
        let (single, outcome) = run.run_observed(&mut watch)?;
        let seen = RunData {
            setup: &run.setup,
            watch: &watch,
            single: &single,
            outcome: &outcome,
            ink: ink.css(),
            label: looked.label(),
            summary: looked.scheme.summary,
        };
        let (side, bytes) = seen.to_side();
        Ok((side, bytes, single))
    }

    /// Notes about frames omitted because of the limit.
    fn left_out(&self, sides: &[(Side, String, Single)]) -> Vec<String> {
        let full = sides.iter().filter(|(side, ..)| side.left_out > 0);
        full.map(|(side, ..)| {
            format!(
                "{}: the first {MAX_PPDUS} frames are on the page, {} after them are not; --from and --for choose others",
                side.scheme, side.left_out
            )
        })
        .collect()
    }
}

/// Colours of schemes side by side: each has its own, unless they would be equal.
fn inks(schemes: &[&str]) -> Vec<Ink> {
    let mut inks: Vec<Ink> = schemes
        .iter()
        .map(|name| SeriesStyle::for_scheme(name).map_or(Ink::Curve(0), |look| look.ink))
        .collect();
    if let [one, other] = &mut inks[..]
        && one == other
    {
        *other = if *one == Ink::Curve(2) { Ink::Curve(1) } else { Ink::Curve(2) };
    }
    inks
}

/// The command that shows the frames of a run in the comparison made by `command`. It selects the largest number of
/// clients, the baseline, and the first scheme that is not a reference. `None` if `command` is not a comparison.
pub(crate) fn beside(command: &str) -> Option<String> {
    let (scenario, rest) = command.strip_prefix("tacit compare ")?.split_once(" --clients ")?;
    let (clients, rest) = rest.split_once(" --schemes ")?;
    let (schemes, rest) = rest.split_once(" --seeds ")?;
    let settings = rest.split_once(' ').map_or(String::new(), |(_, settings)| format!(" {settings}"));
    let clients = clients.split(',').filter_map(|count| count.parse::<u32>().ok()).max()?;
    let named: Vec<&str> = schemes.split(',').collect();
    let of_role = |role| move |name: &&&str| scheme::find("", name).is_ok_and(|scheme| scheme.role == role);
    let baseline = named.iter().find(of_role(Role::Baseline));
    let usual = named.iter().find(|name| **name == DEFAULT_SCHEMES[1]);
    let other = usual
        .or_else(|| named.iter().find(of_role(Role::Candidate)))
        .or_else(|| named.iter().find(of_role(Role::Transport)));
    let two: Vec<&str> = baseline.into_iter().chain(other).copied().collect();
    let two = if two.is_empty() { named[..1].to_vec() } else { two };
    Some(format!("tacit explore {scenario} --schemes {} --clients {clients}{settings}", two.join(",")))
}
