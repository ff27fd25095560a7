//! `tacit shell`.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use tacit_hop::hop::Snapshot;
use tacit_hop::{Oracle, Plan, Report, Transfer, shell};
use tacit_runs::bound::{Bound, bind};
use tacit_runs::single;
use tacit_runs::threshold::Reading;
use tacit_scenario::InputError;
use tacit_scenario::quoted;

use crate::args::ShellArgs;
use crate::gate::{Gate, ended};
use crate::output::{FAILED, Failure, NOT_VALID, note, print_json};

/// The hint for arguments that may belong to the command.
const FORGOTTEN: &str = "tacit shell [SCENARIO] -- COMMAND…; was -- forgotten?";
/// Separator between commands.
const SEPARATOR: &str = "--";

pub fn run(args: ShellArgs) -> Result<ExitCode, Failure> {
    let known = Transfer::reading_names();
    let gate = Gate::new(&args.gate, known.iter().map(String::as_str))?;
    let asked = !args.gate.conditions.is_empty();
    let (command, server) = split(args.server, args.command)?;
    if args.server_log.is_some() && server.is_none() {
        return Err(bad("--server-log", "there is no server", "--server -- SERVER with it").into());
    }
    if let Some(name) = &args.congestion
        && !is_congestion_control(name)
    {
        return Err(bad(
            "--congestion",
            &format!("{name:?} is no congestion control"),
            "such as cubic, reno, bbr",
        )
        .into());
    }
    let is_bare = command.is_empty();
    let background = args.clients.map_or(args.background, |clients| clients - 1);
    let (scenario, assignments) = args.link.scenario(
        args.scenario.as_deref(),
        &args.assignments,
        Some(background.saturating_add(1)),
    )?;
    let bound = bind(
        &single::Options {
            scenario: scenario.clone(),
            assignments,
            scheme: args.scheme,
            clients: None,
            seed: args.seed,
            wire: false,
            quick: false,
        },
        background,
    )
    .map_err(|error| {
        if is_bare && !Path::new(&scenario).exists() && is_program(Path::new(&scenario)) {
            let (what, hint) = (format!("no scenario or file {scenario:?}, but a program"), FORGOTTEN);
            return Failure::from(InputError::new("scenario", what).allowed(hint));
        }
        error.into()
    })?;
    if args.pcap.is_some() && bound.setup.bss.is_empty() {
        let what = format!("{} has no Wi-Fi to capture", bound.scenario);
        return Err(bad("--pcap", &what, "scenarios with [wifi]").into());
    }
    // An interactive shell owns the terminal. The same is assumed of programs that the user starts with --quiet.
    let watched = !args.quiet && !args.json && !command.is_empty() && io::stderr().is_terminal();
    let oracle = if args.no_oracle { Oracle::Off } else { Oracle::Watch };
    let Bound { setup, near, far, scenario, scheme } = bound;
    let report = shell::run(shell::Options {
        plan: Plan { setup, near, far, ack_mode: args.acks, oracle },
        scenario,
        scheme,
        command,
        server,
        server_log: args.server_log,
        congestion: args.congestion,
        pcap: args.pcap,
        output: if args.json { shell::Output::ToError } else { shell::Output::Ours },
        watch: watched.then_some(show),
    });
    // A server under `tacit rre run` was killed together with the process that would have removed its group.
    tacit_kernel::cgroup::remove_abandoned_groups();
    let report = report?;
    if args.json {
        print_json(&report)?;
    } else if !args.quiet {
        note(report.to_text().trim_end());
    } else if !report.valid {
        note(&format!("tacit: the run is NOT VALID: {}", report.reasons.join("; ")));
    }
    let failed_server = report.server_exit_status.filter(|status| *status != 0);
    if let Some(status) = failed_server {
        let how = if status > 128 {
            format!("was killed by signal {}", status - 128)
        } else {
            format!("ended with {status}")
        };
        note(&format!("tacit: the server {how} before the command ended; --server-may-fail allows it"));
    }
    let served = failed_server.is_none() || args.server_may_fail;
    let whole = judge(gate, &report, served)?;
    // A run that is not valid cannot satisfy conditions.
    let refused = (args.require_valid || (asked && report.exit_status == 0)) && !report.valid;
    Ok(ExitCode::from(match report.exit_status {
        _ if refused => NOT_VALID,
        0 if !whole || !served => FAILED,
        status => status,
    }))
}

/// Evaluates the conditions on a report and writes the JUnit file. Returns true if none is violated.
fn judge(mut gate: Gate, report: &Report, served: bool) -> Result<bool, Failure> {
    if gate.is_idle() {
        return Ok(true);
    }
    let subject = format!("{} {}", report.scenario, report.scheme);
    gate.add(&subject, "the command ends with 0", ended("the command", report.exit_status));
    if !served {
        let status = report.server_exit_status.unwrap_or_default();
        gate.add(&subject, "the server outlives the command", ended("the server", status));
    }
    match &report.transfer {
        Some(transfer) if report.valid => {
            let readings = transfer.readings().into_iter();
            let readings: Vec<Reading> = readings.map(|(name, value)| Reading::new(name, value)).collect();
            gate.judge(&subject, Some(&report.scheme), &readings);
        }
        _ => gate.give_up(&subject, &format!("the run was not valid: {}", report.reasons.join("; "))),
    }
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| quoted(&word.to_string_lossy())).collect();
    let again = format!("tacit {}", words.join(" "));
    gate.end(&subject, Duration::from_secs_f64(report.seconds), &format!("{again}\nseed {}", report.seed))
}

/// Whether a name is a valid name of a congestion control: they are short and plain (TCP_CA_NAME_MAX is 16, including
/// the terminator).
fn is_congestion_control(name: &str) -> bool {
    (1..16).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// Whether there is such a file, or a program of this name in the search path; servers are often in `sbin`.
pub fn is_program(program: &Path) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    program.is_file()
        || program.components().count() == 1
            && std::env::split_paths(&path)
                .chain(["/usr/sbin".into(), "/sbin".into()])
                .any(|directory| directory.join(program).is_file())
}

/// Splits the words after the first `--` into the command and the server.
fn split(
    server_first: bool,
    mut words: Vec<OsString>,
) -> Result<(Vec<OsString>, Option<Vec<OsString>>), InputError> {
    let separator = |word: &OsString| word == SEPARATOR;
    let (command, server) = if server_first {
        let at = words.iter().position(separator);
        let command = at.map_or_else(Vec::new, |at| words.split_off(at).split_off(1));
        (command, words)
    } else {
        let pairs = words.windows(2);
        let Some(at) = pairs.into_iter().position(|pair| pair[0] == "--server" && separator(&pair[1])) else {
            return Ok((words, None));
        };
        let server = words.split_off(at).split_off(2);
        (words, server)
    };
    if server.is_empty() {
        return Err(bad("--server", "no command for the other side", "--server -- SERVER -- COMMAND"));
    }
    Ok((command, Some(server)))
}

fn bad(place: &str, what: &str, allowed: &str) -> InputError {
    InputError::new(place, what).allowed(allowed)
}

/// Prints one line about the current state.
fn show(snapshot: &Snapshot) {
    let megabytes = snapshot.received.map(|bytes| bytes as f64 / 1e6);
    let ratio = |ratio: Option<f64>| ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
    note(&format!(
        "tacit: {:.0} s, down {:.1} MB, up {:.1} MB, ACKs per segment {} / {}, late p99 {:.0} us",
        snapshot.now.as_nanos() as f64 / 1e9,
        megabytes[0],
        megabytes[1],
        ratio(snapshot.ack_ratio[0]),
        ratio(snapshot.ack_ratio[1]),
        snapshot.punctuality.p99_us,
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn the_server_may_come_first_or_last() {
        let (command, server) = split(false, words("curl -s x --server -- nginx -g off")).unwrap();
        assert_eq!(command, words("curl -s x"));
        assert_eq!(server, Some(words("nginx -g off")));
        let (command, server) = split(true, words("nginx -g off -- curl -- x")).unwrap();
        assert_eq!(server, Some(words("nginx -g off")));
        assert_eq!(command, words("curl -- x"));
    }

    #[test]
    fn without_a_server_every_word_is_the_commands() {
        let (command, server) = split(false, words("grep --server x -- y")).unwrap();
        assert_eq!((command, server), (words("grep --server x -- y"), None));
    }

    #[test]
    fn a_server_without_a_command_gets_a_shell() {
        assert_eq!(split(true, words("nginx")).unwrap(), (Vec::new(), Some(words("nginx"))));
    }

    #[test]
    fn a_server_of_no_words_is_refused() {
        assert!(split(true, Vec::new()).is_err());
        assert!(split(false, words("true --server --")).is_err());
    }
}
