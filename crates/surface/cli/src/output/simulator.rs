//! Failures of runs, captures and live hops.

use std::io;

use console::{Style, Term};
use tacit_captures::CaptureError;
use tacit_captures::rohc::RohcError;
use tacit_hop::LiveError;
use tacit_runs::{RunError, RunsError};
use tacit_scenario::ScenarioError;
use tacit_scenario::table::{hanging, wrapped};

use super::{BAD_INPUT, FAILED, Failure, INTERRUPTED, print};

/// `tacit shell --require-valid`: the machine did not keep up, so the command's result is meaningless.
pub const NOT_VALID: u8 = 122;
/// `tacit shell` failed before its command could return a status. Same code as in `env` and `timeout`.
const NO_HOP: u8 = 125;
/// A command was found but could not be executed.
const NOT_EXECUTABLE: u8 = 126;
/// A command was not found.
const NOT_FOUND: u8 = 127;

/// Why a command about runs, captures or live hops ends without a result.
#[derive(Debug, thiserror::Error)]
pub enum SimulatorFailure {
    /// A scenario is not valid.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// There are no results.
    #[error(transparent)]
    Runs(#[from] RunsError),
    /// A capture cannot be read.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// A capture cannot be compressed, or its compressed packets do not restore it.
    #[error(transparent)]
    Rohc(#[from] RohcError),
    /// The live hop failed.
    #[error(transparent)]
    Live(#[from] LiveError),
}

impl SimulatorFailure {
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Runs(RunsError::Run { source: RunError::Invariant { .. }, .. })
            | Self::Rohc(RohcError::RoundTrip { .. }) => FAILED,
            Self::Runs(RunsError::Interrupted { .. }) => INTERRUPTED,
            Self::Live(LiveError::Command { source, .. }) => match source.kind() {
                io::ErrorKind::NotFound => NOT_FOUND,
                _ => NOT_EXECUTABLE,
            },
            Self::Live(LiveError::Argument { .. } | LiveError::Unsupported { .. }) => BAD_INPUT,
            Self::Live(_) => NO_HOP,
            Self::Scenario(_) | Self::Runs(_) | Self::Capture(_) | Self::Rohc(_) => BAD_INPUT,
        }
    }
}

failures_of!(Simulator: ScenarioError, RunsError, CaptureError, RohcError, LiveError);

/// Prints an answer that begins with its result; with weight and colour if standard output is a terminal and `NO_COLOR` is
/// not set.
pub fn print_answer(text: &str) -> Result<(), Failure> {
    if console::colors_enabled() { print(&styled(text)) } else { print(text) }
}

/// `text` with a bold first paragraph, yellow warnings and dim rules.
fn styled(text: &str) -> String {
    let style = || Style::new().force_styling(true);
    let mut is_result = true;
    let lines = text.lines().map(|line| {
        is_result &= !line.is_empty();
        let style = match line {
            line if line.starts_with("warning:") => style().yellow(),
            line if !line.is_empty() && line.chars().all(|letter| letter == '─') => style().dim(),
            _ if is_result => style().bold(),
            line => return format!("{line}\n"),
        };
        format!("{}\n", style.apply_to(line))
    });
    lines.collect()
}

/// Prints text with its prose broken at the terminal's width.
pub fn print_page(text: &str) -> Result<(), Failure> {
    print(&wrapped(text, terminal_width()))
}

/// A line for each name, padded to the longest, and its text, which is broken at the terminal's width.
pub fn listing<'a>(entries: impl Iterator<Item = (&'a str, String)> + Clone) -> String {
    let width = entries.clone().map(|(name, _)| name.len()).max().unwrap_or(0);
    entries.map(|(name, text)| hanging(&format!("{name:width$}  "), &text, terminal_width())).collect()
}

/// Width of the terminal on standard output in characters; `None` if it is not a terminal.
pub fn terminal_width() -> Option<usize> {
    Term::stdout().size_checked().map(|(_, columns)| columns.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_has_weight_and_the_rest_is_left_alone() {
        let text = "the result\nof two lines\n\nwarning: late\na  b\n────\n1  2\n";
        let [bold, yellow, dim, end] = ["\u{1b}[1m", "\u{1b}[33m", "\u{1b}[2m", "\u{1b}[0m"];
        assert_eq!(
            styled(text),
            format!(
                "{bold}the result{end}\n{bold}of two lines{end}\n\n{yellow}warning: late{end}\na  b\n{dim}────{end}\n1  2\n"
            )
        );
    }
}
