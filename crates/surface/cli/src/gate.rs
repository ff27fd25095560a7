//! `--fail-if` and `--junit`: conditions on results, and a report of them for a CI system.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use tacit_runs::store::{check_writable, write_whole};
use tacit_runs::threshold::{Reading, Threshold};
use tacit_scenario::InputError;

use crate::output::{Failure, note};

/// Arguments of commands whose results can be judged.
#[derive(Debug, Args)]
pub struct GateArgs {
    /// Exit with 1 if this holds, such as 'goodput_mbps < 100', with names and units of --json; repeatable
    #[arg(long = "fail-if", value_name = "CONDITION")]
    pub conditions: Vec<String>,
    /// Write the result of each condition to this file, as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}

/// The parsed conditions.
pub struct Gate {
    thresholds: Vec<Threshold>,
    /// How often each condition was evaluated.
    judged: Vec<usize>,
    cases: Vec<TestCase>,
    junit: Option<PathBuf>,
    broken: bool,
}

impl Gate {
    /// Parses the conditions. `known` are the names of the results.
    pub fn new<'a>(args: &GateArgs, known: impl IntoIterator<Item = &'a str>) -> Result<Self, Failure> {
        let known: Vec<&str> = known.into_iter().collect();
        let read = |text: &String| {
            let threshold = Threshold::parse(text)?;
            threshold.check(known.iter().copied())?;
            Ok(threshold)
        };
        let thresholds = args.conditions.iter().map(read).collect::<Result<Vec<_>, InputError>>()?;
        // Before the runs, which may take hours.
        if let Some(path) = &args.junit {
            check_writable(path).map_err(|error| {
                InputError::new("--junit", format!("{}: {error}", path.display()))
                    .allowed("a file that can be written")
            })?;
        }
        Ok(Self {
            judged: vec![0; thresholds.len()],
            thresholds,
            cases: Vec::new(),
            junit: args.junit.clone(),
            broken: false,
        })
    }

    /// True if there are no conditions and no JUnit file is requested.
    pub fn is_idle(&self) -> bool {
        self.thresholds.is_empty() && self.junit.is_none()
    }

    /// Evaluates the conditions on the results of `subject` with the scheme `scheme`.
    pub fn judge(&mut self, subject: &str, scheme: Option<&str>, readings: &[Reading]) {
        for (at, threshold) in self.thresholds.clone().iter().enumerate() {
            if threshold.scheme().is_some_and(|wanted| scheme != Some(wanted)) {
                continue;
            }
            self.judged[at] += 1;
            let status = match threshold.judge(readings) {
                Ok(verdict) if verdict.broken => failed(NonSuccessKind::Failure, &verdict.message),
                Ok(_) => TestCaseStatus::success(),
                // A condition on an unmeasured value does not pass.
                Err(error) => failed(NonSuccessKind::Error, &error.to_string()),
            };
            let name = wanted(threshold);
            self.add(subject, &name, status);
        }
    }

    /// Reports every condition as not evaluated.
    pub fn give_up(&mut self, subject: &str, why: &str) {
        for (at, threshold) in self.thresholds.clone().iter().enumerate() {
            self.judged[at] += 1;
            let name = wanted(threshold);
            self.add(subject, &name, failed(NonSuccessKind::Error, why));
        }
    }

    /// Adds the result of a test case other than a condition.
    pub fn add(&mut self, subject: &str, name: &str, status: TestCaseStatus) {
        if let TestCaseStatus::NonSuccess { message, .. } = &status {
            self.broken = true;
            let reason = message.as_ref().map_or(name, |message| message.as_str());
            note(&format!("tacit: broken: {subject}: {reason}"));
        }
        let mut case = TestCase::new(name, status);
        case.set_classname(subject);
        self.cases.push(case);
    }

    /// Writes the JUnit file if requested. Returns true if no condition is violated. `command` is the command that repeats
    /// the runs.
    pub fn end(mut self, suite: &str, took: Duration, command: &str) -> Result<bool, Failure> {
        let judged = std::mem::take(&mut self.judged);
        for (threshold, _) in self.thresholds.clone().iter().zip(judged).filter(|(_, judged)| *judged == 0) {
            let what = format!("no results of {}", threshold.scheme().unwrap_or("anything"));
            self.add(suite, &wanted(threshold), failed(NonSuccessKind::Error, &what));
        }
        if let Some(path) = &self.junit {
            let mut tests = TestSuite::new(suite);
            tests.set_time(took);
            tests.set_system_out(command);
            // Every condition is about all of the runs.
            for case in &mut self.cases {
                case.set_time(took);
            }
            tests.add_test_cases(self.cases);
            let mut report = Report::new("tacit");
            report.add_test_suite(tests);
            let mut xml = Vec::new();
            report.serialize(&mut xml).map_err(|error| Failure::Machine(format!("JUnit: {error}")))?;
            write_whole(path, &xml)?;
        }
        Ok(!self.broken)
    }
}

/// The status of the test case for a command, from the command's exit status.
pub fn ended(who: &str, status: u8) -> TestCaseStatus {
    if status == 0 {
        TestCaseStatus::success()
    } else {
        failed(NonSuccessKind::Failure, &format!("{who} ended with {status}"))
    }
}

/// The condition that should hold, which is the negation of the option's: `goodput_mbps >= 100` for
/// `goodput_mbps < 100`.
fn wanted(threshold: &Threshold) -> String {
    let text = threshold.text();
    // Longer operators first, because each contains a shorter one.
    let turned = [("<=", ">"), (">=", "<"), ("<", ">="), (">", "<=")];
    match turned.iter().find(|(operator, _)| text.contains(operator)) {
        Some((operator, to)) => text.replacen(operator, to, 1),
        None => format!("not {text}"),
    }
}

fn failed(kind: NonSuccessKind, message: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_message(message);
    status
}
