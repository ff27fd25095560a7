//! Checks over worlds that are made from seeds: which seeds, and the report of a failure.

use std::any::type_name_of_val;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tacit_sim::setup::Setup;

/// How many seeds a swarm runs, and the first of them.
const SEEDS: &str = "TACIT_SWARM_SEEDS";
const FIRST: &str = "TACIT_SWARM_FIRST";

/// Failures whose set-ups, of some hundred lines each, are printed.
const TOLD_WHOLE: usize = 3;

/// Worlds by seed, and the test that checks those of all seeds.
pub struct Swarm {
    /// The path of the test, its file first.
    test: &'static str,
    world: fn(u64) -> Setup,
}

impl Swarm {
    /// The worlds that `test`, the test function itself, is about.
    pub fn new<F>(test: &F, world: fn(u64) -> Setup) -> Self {
        Self { test: type_name_of_val(test), world }
    }

    /// Runs `check` on the worlds of `seeds`, all of them even when some fail.
    ///
    /// # Panics
    /// When one or more failed: of each, the panic; of the first few, set-up and the command that replays it.
    pub fn check(&self, seeds: impl Iterator<Item = u64>, check: impl FnMut(u64, &Setup)) {
        let failures = self.failures(seeds, check);
        let (whole, others) = failures.split_at(failures.len().min(TOLD_WHOLE));
        let others = others.iter().filter_map(|failure| failure.lines().next());
        let told: Vec<_> = whole.iter().map(String::as_str).chain(others).collect();
        assert!(told.is_empty(), "{} failed:\n\n{}", told.len(), told.join("\n\n"));
    }

    /// A report of each seed whose `check` panics.
    pub fn failures(
        &self,
        seeds: impl Iterator<Item = u64>,
        mut check: impl FnMut(u64, &Setup),
    ) -> Vec<String> {
        let fails = |seed| {
            let setup = (self.world)(seed);
            let panic = catch_unwind(AssertUnwindSafe(|| check(seed, &setup))).err()?;
            let what = (panic.downcast_ref::<String>().map(String::as_str))
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("it panicked");
            Some(format!("seed {seed}: {what}\nset-up: {setup:#?}\nreplay: {}", self.replay(seed)))
        };
        seeds.filter_map(fails).collect()
    }

    /// The command that runs the test with `seed` alone.
    fn replay(&self, seed: u64) -> String {
        let (file, test) = self.test.split_once("::").expect("a test is in a file");
        format!("{SEEDS}=1 {FIRST}={seed} cargo test -p tacit-sim --test {file} -- --exact {test}")
    }
}

/// The seeds of a test: as many as the environment asks for (`TACIT_SWARM_SEEDS`, else `usual`), from the one on that
/// it names (`TACIT_SWARM_FIRST`, else 0).
///
/// # Panics
/// When one of the two is not a whole number.
pub fn seeds(usual: u64) -> Range<u64> {
    seeds_from(usual, |name| std::env::var(name).ok())
}

fn seeds_from(usual: u64, variable: impl Fn(&str) -> Option<String>) -> Range<u64> {
    let number = |name: &str| {
        variable(name)
            .map(|text| text.parse::<u64>().unwrap_or_else(|_| panic!("{name}={text} is not a whole number")))
    };
    let first = number(FIRST).unwrap_or(0);
    first..first + number(SEEDS).unwrap_or(usual)
}

/// Holds that a failure of `swarm` says all that is needed to look into it.
pub fn assert_failures_can_be_replayed(swarm: &Swarm) {
    let failures = swarm.failures(5..9, |seed, setup| {
        assert_eq!(setup.seed, seed, "a world is that of its seed");
        assert!(seed != 7, "sevens are bad");
    });
    let [failure] = failures.as_slice() else { panic!("only seven fails: {failures:?}") };
    assert!(failure.contains("seed 7: sevens are bad"), "{failure}");
    assert!(failure.contains(&format!("{:#?}", (swarm.world)(7))), "the whole set-up: {failure}");
    let command = failure.lines().find_map(|line| line.strip_prefix("replay: ")).unwrap();
    let words: Vec<_> = command.split(' ').collect();
    let variable = |name: &str| {
        words.iter().find_map(|word| Some(word.strip_prefix(name)?.strip_prefix('=')?.to_owned()))
    };
    assert_eq!(seeds_from(300, variable), 7..8, "{command}");
    let [.., "--test", file, "--", "--exact", test] = words.as_slice() else { panic!("{command}") };
    assert_eq!(format!("{file}::{test}"), swarm.test);
    assert!(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/{file}.rs")).is_file());
}
