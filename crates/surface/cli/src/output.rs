//! Standard output, standard error and the exit code.

/// Converts each of these errors to a [`Failure`] through the failure type of its half of the program.
macro_rules! failures_of {
    ($half:ident: $($error:ty),+) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::$half(error.into())
            }
        }
    )+};
}

#[cfg(feature = "network")]
mod network;
#[cfg(feature = "simulator")]
mod simulator;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use serde::Serialize;
use tacit_input::InputError;

#[cfg(feature = "network")]
pub use network::{NetworkFailure, printable};
#[cfg(feature = "simulator")]
pub use simulator::{NOT_VALID, SimulatorFailure, listing, print_answer, print_page, terminal_width};

/// A claim failed, an invariant was violated, or a part was not done.
pub const FAILED: u8 = 1;
/// The user's input is not valid.
const BAD_INPUT: u8 = 2;
/// Stopped by the user: 128 and the number of SIGINT.
pub const INTERRUPTED: u8 = 130;

/// Why the program ends without a result.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// An argument is not valid.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A failure of a scenario, a run, a capture or a live hop.
    #[cfg(feature = "simulator")]
    #[error(transparent)]
    Simulator(#[from] SimulatorFailure),
    /// A failure of another machine, or of the local data about it.
    #[cfg(feature = "network")]
    #[error(transparent)]
    Network(#[from] NetworkFailure),
    /// The result could not be written to standard output.
    #[error("standard output: {0}")]
    Output(#[from] io::Error),
    /// The machine lacks something that the command needs.
    #[error("{0}")]
    Machine(String),
}

/// Prints `text`. A reader that closes standard output early is not a failure.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result?),
    }
}

/// Prints `value` as JSON.
pub fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_string_pretty(value).map_err(io::Error::from)?;
    text.push('\n');
    print(&text)
}

/// Prints a message on standard error.
pub fn note(text: &str) {
    // An error here cannot be reported anywhere.
    let _ = writeln!(io::stderr(), "{text}");
}

/// The failure as one line.
fn one_line(failure: &Failure) -> String {
    match failure {
        #[cfg(feature = "network")]
        Failure::Network(failure) => failure.one_line(),
        failure => failure.to_string(),
    }
}

/// Prints one line about the failure and returns the exit code.
pub fn report_failure(failure: &Failure) -> ExitCode {
    note(&format!("tacit: {}", one_line(failure)));
    ExitCode::from(match failure {
        #[cfg(feature = "network")]
        Failure::Network(failure) => failure.exit_code(),
        #[cfg(feature = "simulator")]
        Failure::Simulator(failure) => failure.exit_code(),
        Failure::Input(_) | Failure::Output(_) | Failure::Machine(_) => BAD_INPUT,
    })
}

/// Prints help and version on request, and argument errors as one line.
pub fn explain_usage(error: &clap::Error) -> ExitCode {
    let text = error.to_string();
    if !error.use_stderr() {
        return print(&format!("{}\n", text.trim_end()))
            .map_or_else(|failure| report_failure(&failure), |()| ExitCode::SUCCESS);
    }
    let mut message = usage_error(error.kind(), &text);
    if is_word_too_many(error, &text) {
        message.push_str("; was -- forgotten before the command?");
    }
    note(&format!("tacit: {message}"));
    ExitCode::from(BAD_INPUT)
}

/// Whether there is a non-option argument after `tacit shell SCENARIO`.
fn is_word_too_many(error: &clap::Error, text: &str) -> bool {
    let word = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(word)) => word,
        _ => return false,
    };
    error.kind() == ErrorKind::UnknownArgument
        && !word.starts_with('-')
        && text.contains("Usage: tacit shell ")
}

/// Reduces clap's multi-line error to one line: the error, its list, its hints, and how to get help.
pub fn usage_error(kind: ErrorKind, text: &str) -> String {
    let usage = text.lines().find_map(|line| line.trim().strip_prefix("Usage: "));
    let words = usage.unwrap_or("tacit").split_whitespace();
    let command = words.take_while(|word| word.bytes().all(|byte| byte.is_ascii_lowercase()));
    let see = format!("see {} --help", command.collect::<Vec<_>>().join(" "));
    // Clap prints the whole help for these instead of an error.
    if matches!(kind, ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand) {
        return format!("a command is missing; {see}");
    }
    let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("For more information"));
    let mut sentence = String::new();
    let mut in_list = false;
    for line in lines {
        let is_hint = line.starts_with("tip:") || line.starts_with('[') && line.contains(": ");
        sentence.push_str(match (sentence.is_empty(), sentence.ends_with(':'), in_list && !is_hint) {
            (true, ..) => "",
            (_, true, _) => " ",
            (.., true) => ", ",
            _ => "; ",
        });
        in_list = !is_hint && (in_list || sentence.ends_with(": "));
        sentence.push_str(line);
    }
    format!("{}; {see}", sentence.strip_prefix("error: ").unwrap_or(&sentence))
}
