//! Checks over random worlds: selection of seeds, and reports of failures.

use std::any::type_name_of_val;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tacit_sim::setup::Setup;

/// Environment variables with the number of seeds, and the first seed.
const SEEDS: &str = "TACIT_SWARM_SEEDS";
const FIRST: &str = "TACIT_SWARM_FIRST";

/// Number of failures whose setups, of some hundred lines each, are printed.
const TOLD_WHOLE: usize = 3;

/// Worlds by seed, and the test that checks them.
pub struct Swarm {
    /// The path of the test, beginning with its file.
    test: &'static str,
    world: fn(u64) -> Setup,
}

impl Swarm {
    /// The worlds for the test function `test`.
    pub fn new<F>(test: &F, world: fn(u64) -> Setup) -> Self {
        Self { test: type_name_of_val(test), world }
    }

    /// Runs `check` on the worlds of all `seeds`, even if some fail.
    ///
    /// # Panics
    /// If one or more failed. The message has the panic of each; of the first few also the setup and the command that
    /// replays it.
    pub fn check(&self, seeds: impl Iterator<Item = u64>, check: impl FnMut(u64, &Setup)) {
        let failures = self.failures(seeds, check);
        let (whole, others) = failures.split_at(failures.len().min(TOLD_WHOLE));
        let others = others.iter().filter_map(|failure| failure.lines().next());
        let reports: Vec<_> = whole.iter().map(String::as_str).chain(others).collect();
        assert!(reports.is_empty(), "{} failed:\n\n{}", reports.len(), reports.join("\n\n"));
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

/// The seeds of a test: their number is `TACIT_SWARM_SEEDS` or else `usual`, and the first one is `TACIT_SWARM_FIRST`
/// or else 0.
///
/// # Panics
/// If one of the two is not an integer.
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

/// Checks that the report of a failure of `swarm` has everything needed to investigate it.
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
