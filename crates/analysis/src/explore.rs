//! `tacit explore`: one HTML file in which one looks at everything that was on the air in a run, under one scheme or
//! two, or with other settings beside it, from microseconds to seconds.

mod columns;
mod data;
mod page;
#[cfg(test)]
mod tests;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tacit_proto::units::{Duration, Instant};
use tacit_runs::RunsError;
use tacit_runs::air::{Watch, Window};
use tacit_runs::single::{self, Prepared, Reached, Single};
use tacit_scenario::input::duration;
use tacit_scenario::scheme::{self, Role, Scheme};
use tacit_scenario::{InputError, quoted};
use tacit_sim::capture::AtomicFile;
use tacit_theory::hop::argument;

use crate::chart::{Ink, Look};
use data::{RunData, Side};

/// The page's file by default.
pub const FILE: &str = "tacit-explore.html";
/// Schemes by default: the baseline, and the best known of those that let ACKs ride.
pub const DEFAULT_SCHEMES: [&str; 2] = ["stock", "hack-more-data"];
/// Most PPDUs of a scheme: a browser holds and draws as many without a halt, and the file stays within tens of megabytes.
pub const MAX_PPDUS: usize = 400_000;
/// Most samples of flows and stations together, for the same reason.
const MAX_SAMPLES: u64 = 200_000;
/// Distances of samples tried, the first that gives no more than that counts.
const SAMPLE_MS: [u64; 9] = [2, 5, 10, 20, 50, 100, 200, 500, 1_000];

/// Runs to look at.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Scenario by name or path.
    pub scenario: String,
    /// `--set` assignments.
    pub assignments: Vec<String>,
    /// Assignments that the second run has besides; with any there is one.
    pub against: Vec<String>,
    /// One scheme or two by name; none means [`DEFAULT_SCHEMES`], or the first of these for both set-ups where there are
    /// two.
    pub schemes: Vec<String>,
    /// Clients; `None` means the scenario's.
    pub clients: Option<u32>,
    /// Seed of all draws.
    pub seed: u64,
    /// Make it short: see [`tacit_scenario::Scenario::load_quick`].
    pub quick: bool,
    /// Start of the time that is kept, as written; `None` means with the run.
    pub from: Option<String>,
    /// So much is kept, as written; `None` means to the end of the run.
    pub length: Option<String>,
}

/// A page that was written.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WrittenPage {
    /// Where.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Name of the scenario.
    pub scenario: String,
    /// Clients.
    pub clients: u32,
    /// Seed of all draws.
    pub seed: u64,
    /// Its schemes.
    pub schemes: Vec<ExploredScheme>,
    /// Requests that are not in it, and reasons why bytes are missing from the goodput.
    pub warnings: Vec<String>,
}

/// A scheme on the page.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExploredScheme {
    /// Name of the scheme.
    pub scheme: String,
    /// Settings of this run beyond those of the first.
    pub set: Vec<String>,
    /// Frames on the page: PPDUs of the first channel.
    pub frames: usize,
    /// Frames that had no room.
    pub left_out: u64,
    /// Hash of the run's event trace: that of `tacit run`.
    pub digest: String,
    /// Payload delivered in order per second, in bits.
    pub goodput_bps: f64,
}

impl ExploredScheme {
    /// Its name on the page: the scheme, and its own settings.
    pub fn label(&self) -> String {
        label(&self.scheme, &self.set)
    }
}

fn label(scheme: &str, set: &[String]) -> String {
    let set = set.iter().map(String::as_str);
    std::iter::once(scheme).chain(set).collect::<Vec<_>>().join(", ")
}

/// Runs that are ready to start.
#[derive(Debug)]
pub struct Exploration {
    options: Options,
    runs: Vec<OpenedRun>,
    window: Window,
    every: Duration,
}

/// A run that is looked at.
#[derive(Debug)]
struct OpenedRun {
    scheme: &'static Scheme,
    /// Settings of it beyond those of the first.
    set: Vec<String>,
    run: Prepared,
}

impl OpenedRun {
    /// Its name on the page.
    fn label(&self) -> String {
        label(self.scheme.name, &self.set)
    }
}

/// Reads the scenario and builds the runs.
///
/// # Errors
/// On input that is not allowed.
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

/// The two runs of one scheme or two, the second with the settings of `against`; of one scheme one run, without any.
fn sides(schemes: &[&'static Scheme], against: &[String]) -> Vec<(&'static Scheme, Vec<String>)> {
    let second = schemes.get(1).copied().or_else(|| schemes.first().copied().filter(|_| !against.is_empty()));
    let first = schemes.first().map(|scheme| (*scheme, Vec::new()));
    first.into_iter().chain(second.map(|scheme| (scheme, against.to_vec()))).collect()
}

/// Refuses two set-ups that are one, or that do not fit one page: both have its time axis and its clients.
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

/// Which part of a run of `length` is kept.
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
    /// Of both runs together.
    pub fn length(&self) -> std::time::Duration {
        self.runs.iter().filter_map(|looked| looked.run.watched_length()).sum()
    }

    /// The command that makes the same page, but for where it goes.
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
        for said in &self.options.against {
            command.push_str(&format!(" --against {}", quoted(said)));
        }
        for (name, value) in [("--from", from), ("--for", length)] {
            if let Some(value) = value {
                command.push_str(&format!(" {name} {}", quoted(value)));
            }
        }
        command
    }

    /// Runs, and writes the page to `path`: whole, or not at all. `reached`, if there is one, is told how much of both
    /// runs was simulated.
    ///
    /// # Errors
    /// Where a run fails, or the file cannot be written.
    pub fn write(self, path: &Path, mut reached: Option<Reached<'_>>) -> Result<WrittenPage, RunsError> {
        // Before minutes of simulation, not after.
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
        report_progress: &mut dyn FnMut(std::time::Duration),
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

    /// The notes about frames beyond the limit.
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

/// Colours of schemes side by side: their own, but never the same twice.
fn inks(schemes: &[&str]) -> Vec<Ink> {
    let mut inks: Vec<Ink> =
        schemes.iter().map(|name| Look::of_scheme(name).map_or(Ink::Curve(0), |look| look.ink)).collect();
    if let [one, other] = &mut inks[..]
        && one == other
    {
        *other = if *one == Ink::Curve(2) { Ink::Curve(1) } else { Ink::Curve(2) };
    }
    inks
}

/// The command that shows the frames of a run of the comparison that `command` makes: its largest number of clients, and
/// the baseline beside the first scheme that is no yardstick. `None` where `command` makes no comparison.
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
