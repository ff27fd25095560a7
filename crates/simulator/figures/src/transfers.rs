//! Transfers by several programs, live and simulated: the goodput of each, its gain over another, the packets sent in
//! the reverse direction, and the CPU cost.

use std::ops::RangeInclusive;

use super::axis::Axis;
use super::downloads::{self, Downloads, Files, Hop};
use super::live_runs::{GoodputSource, MakeLive, TransferPoint, TransferReport, TransferRun};
use super::measure::same;
use super::schemes::{read_scheme, scheme_named};
use super::shell_hop::ShellHop;
use tacit_runs::RunsError;
use tacit_scenario::input::{Section, integer, numbers, one_of, text, texts};
use tacit_scenario::scheme::Scheme;
use tacit_scenario::{InputError, MAX_CLIENTS, MAX_SEEDS};

/// Maximum duration of a live run in seconds.
const MAX_SECONDS: u32 = 600;
/// Maximum size of a transferred file in MB.
const MAX_MEGABYTES: u32 = 4_000;

/// Maximum number of attempts for a run that the machine disturbs.
const MAX_ATTEMPTS: u32 = 3;

/// Allowed numbers of simulated stations in addition to the one that transfers.
const BACKGROUND: RangeInclusive<u32> = 0..=MAX_CLIENTS - 1;

/// `[transfers]`: the same transfer by several arms, over an axis.
#[derive(Clone, Debug)]
pub(super) struct Transfers {
    pub scenario: String,
    pub assignments: Vec<String>,
    pub arms: Vec<Arm>,
    pub axis: Axis,
    pub x_label: String,
    /// Variants: the same transfers with different settings.
    pub variants: Vec<Variant>,
    pub length: Length,
    /// Number of runs of each arm at each place, or of its downloads.
    pub seeds: u32,
    /// Each arm downloads many files, and x is a share of them.
    pub downloads: Option<Downloads>,
    background: u32,
    quick: Quick,
}

/// The amount of data to transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Length {
    /// Maximum duration of each run, or of each download, in seconds.
    pub seconds: u32,
    /// Initial seconds that are ignored. Zero with `megabytes`, because the whole transfer counts.
    pub from_s: u32,
    /// The length of the file; `None` if data flows for `seconds`.
    pub megabytes: Option<u32>,
}

/// `[[transfers.arm]]`: the program that transfers.
#[derive(Clone, Debug)]
pub(super) struct Arm {
    pub name: String,
    /// `None` if the arm is only simulated.
    programs: Option<Programs>,
    assignments: Vec<String>,
    /// `None` if the arm is only live.
    pub simulated: Option<&'static Scheme>,
    /// Index of the arm over which its gain is measured.
    pub over: Option<usize>,
}

/// The live part of an arm.
#[derive(Clone, Debug)]
struct Programs {
    server: Vec<String>,
    client: Vec<String>,
    scheme: &'static Scheme,
    acks: String,
    congestion: Option<String>,
    goodput_source: GoodputSource,
}

/// `[[transfers.variant]]`: further assignments.
#[derive(Clone, Debug)]
pub(super) struct Variant {
    pub name: String,
    assignments: Vec<String>,
    /// Number of simulated stations, if it differs.
    background: Option<u32>,
    /// Places on the axis; empty for those of the transfers.
    values: Vec<f64>,
}

/// Settings of `--quick`.
#[derive(Clone, Debug, Default)]
struct Quick {
    x: Option<Vec<f64>>,
    seconds: Option<u32>,
    megabytes: Option<u32>,
    seeds: Option<u32>,
    variants: Option<Vec<String>>,
}

impl Transfers {
    pub fn read(section: Section<'_>) -> Result<Self, InputError> {
        let mut arms: Vec<Arm> = Vec::new();
        for arm in section.sections("arm")? {
            arms.push(Arm::read(arm, &arms)?);
        }
        let variants =
            section.sections("variant")?.into_iter().map(Variant::read).collect::<Result<Vec<_>, _>>()?;
        let megabytes = integer(1..=MAX_MEGABYTES);
        let quick = section.section("quick")?;
        let downloads = Downloads::read(section.section("downloads")?)?;
        let axis = match downloads {
            Some(_) => Downloads::axis(),
            None => {
                let x = section.section("x")?;
                let axis = Axis::read(&x, x.required("key", text)?)?;
                x.finish()?;
                axis
            }
        };
        let seconds = integer(1..=MAX_SECONDS);
        let transfers = Self {
            scenario: section.required("scenario", text)?,
            assignments: section.or("set", Vec::new(), texts)?,
            arms,
            x_label: section.or("x-label", axis.key.clone(), text)?,
            axis,
            variants,
            length: Length {
                seconds: section.required("seconds", &seconds)?,
                from_s: section.or("from-s", 0, integer(0..=MAX_SECONDS))?,
                megabytes: section.optional("megabytes", &megabytes)?,
            },
            seeds: section.required("medians", integer(1..=MAX_SEEDS))?,
            downloads,
            background: section.or("background", 0, integer(BACKGROUND))?,
            quick: Quick {
                x: quick.optional("x", numbers)?,
                seconds: quick.optional("seconds", &seconds)?,
                megabytes: quick.optional("megabytes", &megabytes)?,
                seeds: quick.optional("medians", integer(1..=MAX_SEEDS))?,
                variants: quick.optional("variants", texts)?,
            },
        };
        quick.finish()?;
        transfers.check(&section)?;
        section.finish()?;
        Ok(transfers)
    }

    /// Checks that names are unique, medians are of odd numbers, and some of the transfer is measured.
    fn check(&self, section: &Section<'_>) -> Result<(), InputError> {
        let twice = |names: &[&str]| {
            let found = (0..names.len()).find(|index| names[..*index].contains(&names[*index]));
            found.map(|index| format!("{:?} stands there twice", names[index]))
        };
        let arms: Vec<&str> = self.arms.iter().map(|arm| arm.name.as_str()).collect();
        let variants: Vec<&str> = self.variant_names().collect();
        if arms.is_empty() {
            return Err(section.error("arm", "a figure of transfers needs arms"));
        }
        for (key, names) in [("arm", &arms), ("variant", &variants)] {
            if let Some(what) = twice(names) {
                return Err(section.error(key, what));
            }
        }
        let unknown = self.quick.variants.iter().flatten().find(|name| !variants.contains(&name.as_str()));
        if let Some(name) = unknown {
            return Err(section
                .error("quick", format!("variants: no {name:?}"))
                .allowed(variants.join(", ")));
        }
        let has_more = self.background > 0
            || self.length.megabytes.is_none()
            || !self.variants.is_empty()
            || self.arms.iter().any(|arm| arm.over.is_some());
        if self.downloads.is_some() && has_more {
            let what = "not with background, variants or over, nor without megabytes";
            return Err(section.error("downloads", what));
        }
        // With few runs, the median could be an outlier.
        if self.downloads.is_none() && (self.seeds < 5 || self.seeds.is_multiple_of(2)) {
            return Err(section
                .error("medians", format!("{} runs", self.seeds))
                .allowed("an odd number from 5; fewer in the quick form only"));
        }
        for form in [self.length, self.shortened(true).length] {
            let counted = form.seconds.saturating_sub(form.from_s);
            match form.megabytes {
                None if counted == 0 => {
                    return Err(section.error("from-s", "leaves nothing of the run"));
                }
                Some(_) if form.from_s > 0 => {
                    return Err(section.error("from-s", "a file counts as a whole: without megabytes only"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The transfers that are executed, quick or in full.
    pub fn shortened(&self, quick: bool) -> Self {
        let mut shortened = self.clone();
        if !quick {
            return shortened;
        }
        if let Some(x) = &self.quick.x {
            shortened.axis.values.clone_from(x);
            // A variant with its own places keeps those that are left.
            shortened.variants.iter_mut().for_each(|variant| {
                variant.values.retain(|place| x.iter().any(|other| same(*place, *other)));
            });
        }
        if let Some(names) = &self.quick.variants {
            shortened.variants.retain(|variant| names.contains(&variant.name));
        }
        shortened.seeds = self.quick.seeds.unwrap_or(self.seeds);
        shortened.length.seconds = self.quick.seconds.unwrap_or(self.length.seconds);
        shortened.length.megabytes = self.quick.megabytes.or(self.length.megabytes);
        shortened
    }

    pub fn variant_names(&self) -> impl Iterator<Item = &str> {
        self.variants.iter().map(|variant| variant.name.as_str())
    }

    /// The transfers as drawn, followed by the variants.
    pub fn parts(&self) -> impl Iterator<Item = Option<&str>> {
        std::iter::once(None).chain(self.variant_names().map(Some))
    }

    /// Number of simulated stations in addition to the one that transfers.
    pub fn background(&self, variant: Option<&str>) -> u32 {
        self.variant(variant).and_then(|variant| variant.background).unwrap_or(self.background)
    }

    fn variant(&self, name: Option<&str>) -> Option<&Variant> {
        self.variants.iter().find(|variant| Some(variant.name.as_str()) == name)
    }

    /// Places on the axis.
    pub fn values(&self, variant: Option<&str>) -> Vec<f64> {
        match self.variant(variant) {
            Some(variant) if !variant.values.is_empty() => variant.values.clone(),
            _ => self.axis.values.clone(),
        }
    }

    /// Places of runs on the axis. All downloads are at one.
    pub fn places_of_runs(&self, variant: Option<&str>) -> Vec<f64> {
        if self.downloads.is_some() { vec![0.0] } else { self.values(variant) }
    }

    /// Names of the curves.
    pub fn curve_names(&self) -> Vec<String> {
        self.arms.iter().flat_map(Arm::curve_names).collect()
    }

    /// The files of each arm with downloads.
    pub fn files(&self) -> Files {
        Files { count: self.seeds, bytes: self.length.bytes(), limit_s: self.length.seconds }
    }

    /// The assignments to the scenario of `arm` at `x`.
    pub fn assignments_at(&self, arm: &Arm, variant: Option<&str>, x: f64) -> Vec<String> {
        let varied = self.variant(variant).map_or(&[][..], |variant| &variant.assignments);
        let place = self.downloads.is_none().then(|| self.axis.assignment(x));
        let all = self.assignments.iter().chain(varied).chain(&place);
        all.chain(self.axis.also(x)).chain(&arm.assignments).cloned().collect()
    }

    /// The live runs of `arm` at `x`, one per seed, or one per hop of the downloads; none if it is only simulated.
    ///
    /// # Errors
    /// If the scenario of downloads cannot be read.
    pub fn runs(&self, arm: &Arm, variant: Option<&str>, x: f64) -> Result<Vec<TransferRun>, RunsError> {
        let Some(programs) = &arm.programs else { return Ok(Vec::new()) };
        let run = |seed: u64| TransferRun {
            hop: ShellHop {
                scenario: self.scenario.clone(),
                assignments: self.assignments_at(arm, variant, x),
                scheme: programs.scheme.name,
                acks: Some(programs.acks.clone()),
                congestion: programs.congestion.clone(),
                background: self.background(variant),
                seed: Some(seed),
            },
            server: programs.server.clone(),
            client: programs.client.clone(),
            seconds: self.length.seconds,
            bytes: self.length.bytes(),
            programs: &[],
            goodput_source: programs.goodput_source,
        };
        let Some(downloads) = self.downloads else {
            return Ok((1..=u64::from(self.seeds)).map(run).collect());
        };
        let through = |hop: Hop| {
            let run = run(1);
            let script = hop.client_script(&self.scenario, &run.hop.assignments)?;
            let client = run.client.iter().map(|word| word.replace("{downloads}", &script)).collect();
            Ok(TransferRun { client, seconds: hop.end_s(), programs: &downloads::PROGRAMS, ..run })
        };
        downloads.hops(self.files()).map(through).collect()
    }

    /// Executes the runs: at each place all arms one after another with one seed, then with the next, so that
    /// disturbances by the machine affect all arms alike. All downloads are executed at the same time, so that each arm
    /// meets the same moments of the traces.
    ///
    /// # Errors
    /// If a run cannot be executed.
    pub fn measured(&self, make: &mut dyn MakeLive) -> Result<Vec<TransferPoint>, RunsError> {
        let mut places = Vec::new();
        for variant in self.parts() {
            for x in self.places_of_runs(variant) {
                // Runs with their turn and their place.
                let mut turns: Vec<(usize, usize, TransferRun)> = Vec::new();
                for (number, arm) in self.arms.iter().enumerate() {
                    let runs = self.runs(arm, variant, x)?;
                    let Some(run) = runs.first() else { continue };
                    let missing = make.missing(run);
                    if missing.is_none() {
                        turns.extend((0..).zip(runs).map(|(turn, run)| (turn, places.len(), run)));
                    }
                    let runs = missing.map_or_else(|| Ok(Vec::new()), Err);
                    places.push(TransferPoint { arm: number, variant: variant.map(str::to_owned), x, runs });
                }
                turns.sort_by_key(|(turn, place, _)| (*turn, *place));
                let at_once = if self.downloads.is_some() { turns.len().max(1) } else { 1 };
                for round in turns.chunks(at_once) {
                    let runs: Vec<TransferRun> = round.iter().map(|(.., run)| run.clone()).collect();
                    let reports = self.make_undisturbed(&runs, make)?;
                    for ((_, place, _), report) in round.iter().zip(reports) {
                        places[*place].runs.iter_mut().for_each(|reports| reports.push(report.clone()));
                    }
                }
            }
        }
        Ok(places)
    }

    /// Executes the runs at the same time, and repeats them a limited number of times if the machine disturbs one.
    fn make_undisturbed(
        &self,
        runs: &[TransferRun],
        make: &mut dyn MakeLive,
    ) -> Result<Vec<TransferReport>, RunsError> {
        let mut attempts = 1;
        loop {
            let reports = make.all(runs)?;
            if reports.iter().all(|report| report.invalid.is_none()) || attempts == self.attempts() {
                return Ok(reports);
            }
            attempts += 1;
        }
    }

    /// Maximum number of attempts for runs that the machine disturbs. The last one is then stored as disturbed.
    pub fn attempts(&self) -> u32 {
        if self.downloads.is_some() { 1 } else { MAX_ATTEMPTS }
    }
}

impl Length {
    /// Length of the file in bytes; 0 without a file.
    pub fn bytes(self) -> u64 {
        u64::from(self.megabytes.unwrap_or(0)) * 1_000_000
    }
}

impl Arm {
    /// Reads an arm. Its gain may be over one of those `before` it.
    fn read(section: Section<'_>, before: &[Self]) -> Result<Self, InputError> {
        let programs = if section.has("client") { Some(Programs::read(&section)?) } else { None };
        let simulated = section.optional("simulated", text)?;
        let simulated = simulated.map(|name| scheme_named(&section, "simulated", &name)).transpose()?;
        let arm = Self {
            name: section.required("name", text)?,
            assignments: section.or("set", Vec::new(), texts)?,
            programs,
            simulated,
            over: section
                .optional("over", text)?
                .map(|name| Self::named(&section, before, &name))
                .transpose()?,
        };
        if arm.programs.is_none() && arm.simulated.is_none() {
            return Err(section.error("client", "an arm is live, simulated or both"));
        }
        section.finish()?;
        Ok(arm)
    }

    /// The index of the arm `name`.
    fn named(section: &Section<'_>, arms: &[Self], name: &str) -> Result<usize, InputError> {
        arms.iter().position(|arm| arm.name == name).ok_or_else(|| {
            let known: Vec<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
            section.error("over", format!("no arm {name:?} before it")).allowed(known.join(", "))
        })
    }

    /// Names of its curves.
    pub fn curve_names(&self) -> Vec<String> {
        let live = self.programs.is_some().then(|| self.live_name());
        let simulated = self.simulated.map(|_| self.simulated_name());
        live.into_iter().chain(simulated).collect()
    }

    pub fn live_name(&self) -> String {
        format!("live {}", self.name)
    }

    pub fn simulated_name(&self) -> String {
        format!("simulated {}", self.name)
    }
}

impl Programs {
    fn read(section: &Section<'_>) -> Result<Self, InputError> {
        let sources = [
            ("client", GoodputSource::Client),
            ("hop", GoodputSource::Hop),
            ("downloads", GoodputSource::Downloads),
        ];
        Ok(Self {
            server: section.required("server", texts)?,
            client: section.required("client", texts)?,
            scheme: read_scheme(section)?,
            acks: section.or("acks", "kernel".to_owned(), text)?,
            congestion: section.optional("congestion", text)?,
            goodput_source: section.or("told-by", GoodputSource::Client, one_of(&sources))?,
        })
    }
}

impl Variant {
    fn read(section: Section<'_>) -> Result<Self, InputError> {
        let variant = Self {
            name: section.required("name", text)?,
            assignments: section.or("set", Vec::new(), texts)?,
            background: section.optional("background", integer(BACKGROUND))?,
            values: section.or("x", Vec::new(), numbers)?,
        };
        section.finish()?;
        Ok(variant)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::mock::{figure, machine, outcome, verdicts};
    use crate::{Figure, LiveRuns};

    const FIGURE: &str = "\
title = \"t\"
paper = \"p\"
[transfers]
scenario = \"wlan-11n-150\"
set = [\"tcp.receive-buffer=4 MiB\"]
x = { key = \"wired.delay\", unit = \" ms\", values = [1, 5] }
seconds = 2
from-s = 1
medians = 5
quick = { medians = 1, x = [5], variants = [] }
[[transfers.arm]]
name = \"few\"
server = [\"few\", \"send\"]
client = [\"few\", \"receive\", \"{peer}\", \"{seconds}\"]
simulated = \"tack\"
[[transfers.arm]]
name = \"many\"
server = [\"many\", \"send\"]
client = [\"many\", \"receive\"]
congestion = \"cubic\"
set = [\"wifi.ap-queue=200 packets\"]
[[transfers.variant]]
name = \"slow\"
set = [\"wifi.rate=60Mbps\"]
x = [5]
[plot]
panels = [\"slow\"]
[[claim]]
text = \"few packets back cost less\"
paper = 1.1
measure = { ratio = \"live few\", over = \"live many\", take = \"least\" }
bound = \"at-least\"
tolerance = 0
[[claim]]
text = \"the simulator says so\"
paper = 1
measure = { ratio = \"live few\", over = \"simulated few\", x = 5 }
tolerance = 0.2
[[claim]]
text = \"also when it is slow\"
paper = 0.02
measure = { value = \"live few\", column = \"ack_ratio\", variant = \"slow\", x = 5 }
bound = \"at-most\"
tolerance = 0
[[claim]]
text = \"processors\"
paper = 2
measure = { value = \"live few\", column = \"cpu_s_per_gb\", x = 5 }
tolerance = 0.001
";

    /// 125 Mb/s with few reverse packets, 110 Mb/s with many, and an outlier for the second seed.
    fn right(run: &TransferRun) -> Result<TransferReport, String> {
        let few = run.client[0] == "few";
        let mbps = match run.hop.seed {
            Some(2) => 1.0,
            _ if few => 125.0,
            _ => 110.0,
        };
        Ok(TransferReport {
            mbps: vec![3.0, mbps],
            data_packets: Some(10_000),
            ack_packets: Some(if few { 100 } else { 5_000 }),
            bytes: Some(500_000_000),
            cpu_s: Some(1.0),
            ..TransferReport::default()
        })
    }

    #[test]
    fn medians_are_judged_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let outcome = outcome(FIGURE, false, &mut machine(right), Some(directory.path()));
        assert_eq!(verdicts(&outcome), ["pass"; 4], "{outcome:?}");
        let measurements = outcome.measurements.iter().any(|line| {
            line.starts_with("live few at 5, slow: goodput_mbps 125, ack_ratio 0.01, data_packets 10,000")
        });
        assert!(measurements, "{:?}", outcome.measurements);
    }

    /// The gain of each run is over that of the same seed: -12 % in most, 0 in the outlier.
    #[test]
    fn gains_are_over_another_arm() {
        let gains = FIGURE
            .replace("server = [\"many\"", "over = \"few\"\nsimulated = \"stock\"\nserver = [\"many\"")
            .replace(
                "value = \"live few\", column = \"cpu_s_per_gb\"",
                "value = \"live many\", column = \"gain_percent\"",
            )
            .replace("text = \"processors\"\npaper = 2", "text = \"gain\"\npaper = -12");
        let judged = outcome(&gains, false, &mut machine(right), None);
        assert_eq!(verdicts(&judged)[3], "pass", "{judged:?}");
        let simulated = judged.measurements.iter().find(|line| line.starts_with("simulated many at 5:"));
        assert!(simulated.is_some_and(|line| line.contains("gain_percent -")), "{:?}", judged.measurements);
        // A gain over a disturbed run is not judged.
        let outcome = outcome(
            &gains,
            true,
            &mut machine(|run: &TransferRun| {
                let invalid = (run.client[0] == "few").then(|| "busy".to_owned());
                Ok(TransferReport { invalid, ..right(run)? })
            }),
            None,
        );
        assert_eq!(verdicts(&outcome), ["skipped"; 3], "{outcome:?}");
    }

    #[test]
    fn without_live_hops_a_figure_says_why() {
        let mut never = machine(|_: &TransferRun| unreachable!("it has no live hops"));
        never.refuses = Some("no root");
        let outcome = outcome(FIGURE, true, &mut never, None);
        assert_eq!((outcome.skipped.as_deref(), outcome.claims.len()), (Some("no root"), 0));
    }

    #[test]
    fn a_run_that_cannot_be_made_says_how_to_make_it() {
        let mut machine = machine(|_: &TransferRun| Err("no device".into()));
        let error = LiveRuns::make(&[figure(FIGURE)], true, &mut machine).unwrap_err().to_string();
        assert!(error.starts_with("tacit shell wlan-11n-150 --set 'tcp.receive-buffer=4 MiB'"), "{error}");
        assert!(error.ends_with("--server -- few send: no device"), "{error}");
    }

    #[test]
    fn wrong_results_fail() {
        let slow = |run: &TransferRun| Ok(TransferReport { mbps: vec![3.0, 60.0], ..right(run)? });
        let outcome = outcome(FIGURE, false, &mut machine(slow), None);
        assert_eq!(verdicts(&outcome), ["FAIL", "FAIL", "pass", "pass"]);
    }

    #[test]
    fn arms_take_turns_under_each_seed() {
        let mut machine = machine(right);
        outcome(FIGURE, true, &mut machine, None);
        outcome(FIGURE, false, &mut machine, None);
        let asked = machine.asked.borrow();
        let asked: Vec<_> = asked.iter().map(|run| (run.client[0].as_str(), run.hop.seed.unwrap())).collect();
        assert_eq!(asked[..2], [("few", 1), ("many", 1)]);
        let seeds: Vec<u64> = asked[2..12].iter().map(|(_, seed)| *seed).collect();
        assert_eq!(seeds, [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
        // Two places as drawn, and one of the variant.
        assert_eq!(asked.len() - 2, 3 * 2 * 5);
    }

    #[test]
    fn the_quick_form_is_silent_about_what_it_does_not_make() {
        let outcome = outcome(FIGURE, true, &mut machine(right), None);
        let texts: Vec<&str> = outcome.claims.iter().map(|claim| claim.text.as_str()).collect();
        assert_eq!(texts, ["few packets back cost less", "the simulator says so", "processors"]);
    }

    #[test]
    fn a_disturbed_run_is_made_again_and_in_the_end_told() {
        let is_first = Cell::new(true);
        let mut once = machine(|run: &TransferRun| {
            let invalid = is_first.replace(false).then(|| "stood still".to_owned());
            Ok(TransferReport { invalid, ..right(run)? })
        });
        let judged = outcome(FIGURE, true, &mut once, None);
        assert_eq!((verdicts(&judged), once.asked.borrow().len()), (vec!["pass"; 3], 3), "{judged:?}");
        let mut always = machine(|run: &TransferRun| {
            let invalid = (run.client[0] == "many").then(|| "stood still".to_owned());
            Ok(TransferReport { invalid, ..right(run)? })
        });
        let outcome = outcome(FIGURE, true, &mut always, None);
        // Claims about arms other than the disturbed one are judged.
        assert_eq!(verdicts(&outcome), ["skipped", "pass", "pass"], "{outcome:?}");
        assert_eq!(always.asked.borrow().len(), 1 + MAX_ATTEMPTS as usize);
        let text = outcome.to_text();
        assert!(
            text.contains("live many at 5: 1 of 1 runs not valid after 3 attempts: stood still"),
            "{text}"
        );
    }

    #[test]
    fn an_arm_without_its_program_is_skipped_and_no_other() {
        let mut machine = machine(right);
        machine.missing = Some("many");
        let outcome = outcome(FIGURE, true, &mut machine, None);
        assert_eq!(verdicts(&outcome), ["skipped", "pass", "pass"], "{outcome:?}");
        assert!(outcome.claims[0].skipped.as_deref().is_some_and(|why| why.contains("no many")));
    }

    #[test]
    fn a_command_says_what_was_run() {
        let figure = figure(FIGURE);
        let transfers = figure.kind_as::<Transfers>().unwrap();
        let runs = |arm: usize, variant, x| transfers.runs(&transfers.arms[arm], variant, x).unwrap();
        let run = &runs(1, Some("slow"), 5.0)[2];
        assert_eq!(
            run.command(),
            "tacit shell wlan-11n-150 --set 'tcp.receive-buffer=4 MiB' --set wifi.rate=60Mbps \
             --set 'wired.delay=5 ms' --set 'wifi.ap-queue=200 packets' --acks kernel --congestion cubic --seed 3 \
             -- many receive --server -- many send"
        );
        let run = &runs(0, None, 1.0)[0];
        assert_eq!(run.filled(&run.client, &[]), ["few", "receive", "198.18.0.1", "2"]);
    }

    #[test]
    fn a_variant_may_have_stations_of_its_own() {
        let text = FIGURE.replace("name = \"slow\"\n", "name = \"slow\"\nbackground = 2\n");
        let figure = figure(&text);
        let transfers = figure.kind_as::<Transfers>().unwrap();
        let stations = |variant| transfers.runs(&transfers.arms[0], variant, 5.0).unwrap()[0].hop.background;
        assert_eq!((stations(None), stations(Some("slow"))), (0, 2));
        assert_eq!((transfers.background(None), transfers.background(Some("slow"))), (0, 2));
    }

    /// A file transfer in the simulator with other stations takes as long as its share of channel time allows.
    #[test]
    fn a_file_is_measured_by_the_time_it_takes() {
        let text = FIGURE
            .replace("from-s = 1\n", "megabytes = 2\nbackground = 1\n")
            .replace("seconds = 2", "seconds = 8")
            .replace("column = \"cpu_s_per_gb\"", "column = \"file_s\"");
        let mut machine = machine(|run: &TransferRun| {
            assert_eq!((run.bytes, run.hop.background), (2_000_000, 1));
            Ok(TransferReport { file: Some((run.bytes, 2.0)), ..right(run)? })
        });
        let outcome = outcome(&text, true, &mut machine, None);
        // 2 MB in 2 s are 8 Mb/s. Half of the channel carries about 58 Mb/s.
        let measured = |at: usize| outcome.claims[at].measured.unwrap();
        assert!((measured(2) - 2.0).abs() < 1e-9, "{outcome:?}");
        assert!((0.1..0.3).contains(&measured(1)), "{outcome:?}");
    }

    #[test]
    fn invalid_figures_of_transfers_are_refused() {
        for (from, to, expected) in [
            ("medians = 5", "medians = 4", "4 runs"),
            ("medians = 5", "medians = 3", "3 runs"),
            ("name = \"many\"", "name = \"few\"", "\"few\" stands there twice"),
            ("from-s = 1", "from-s = 2", "leaves nothing"),
            ("from-s = 1", "from-s = 1\nmegabytes = 1", "a file counts as a whole"),
            ("variants = []", "variants = [\"fast\"]", "no \"fast\""),
            (
                "server = [\"many\"",
                "over = \"most\"\nserver = [\"many\"",
                "no arm \"most\" before it; allowed: few",
            ),
            ("simulated = \"tack\"", "simulated = \"tick\"", "simulated"),
            ("variant = \"slow\"", "variant = \"fast\"", "no variant \"fast\"; allowed: slow"),
            (
                "over = \"live many\"",
                "over = \"simulated many\"",
                "\"simulated many\" is measured, but not swept",
            ),
            ("column = \"cpu_s_per_gb\"", "column = \"watts\"", "no metric"),
        ] {
            let text = FIGURE.replacen(from, to, 1);
            let error = Figure::parse("x", "x.toml", &text).unwrap_err().to_string();
            assert!(error.contains(expected), "{expected}: {error}");
        }
    }
}
