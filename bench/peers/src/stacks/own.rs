//! A client and a server of one's own through the same hops: any pair of programs that end when their data does.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use clap::Args;

use super::measure::{self, Ends, Programs, hop_at};
use super::report;
use super::roster::{self, Place};
use super::{Row, Watch};
use crate::fetch::Fetched;
use crate::hop;

/// Places in a command line.
const BYTES: &str = "{bytes}";
const ADDRESS: &str = "{address}";

/// A place, and commands as `tacit shell` takes them.
#[derive(Debug, Args)]
pub struct OwnArguments {
    /// Where to measure
    #[arg(value_parser = roster::place)]
    place: &'static Place,
    /// Rounds
    #[arg(long, default_value_t = 1)]
    rounds: u32,
    /// CLIENT… --server -- SERVER…; {address} and {bytes} stand for the server's address and the bytes to fetch
    #[arg(last = true, required = true, value_name = "CLIENT… --server -- SERVER…")]
    words: Vec<String>,
}

/// A program to run several times.
#[derive(Debug, Args)]
pub struct RepeatArguments {
    times: u32,
    /// Bytes that each run fetches
    bytes: u64,
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// Commands with places in them.
#[derive(Debug, PartialEq, Eq)]
struct Own(Programs);

impl Own {
    /// Of words as `tacit shell` takes them behind its first `--`.
    fn parse(words: &[String]) -> Result<Self> {
        let divides = words.windows(2).position(|pair| pair == ["--server", "--"]);
        let Some(at) = divides else { bail!("no `--server --` between CLIENT… and SERVER…") };
        let (client, server) = (words[..at].to_vec(), words[at + 2..].to_vec());
        if client.is_empty() || server.is_empty() {
            bail!("CLIENT… and SERVER… are both needed");
        }
        if !client.iter().any(|word| word.contains(BYTES)) {
            bail!("CLIENT… has no {BYTES}: the bytes to fetch, which differ from run to run");
        }
        Ok(Self(Programs { server, client }))
    }
}

impl Ends for Own {
    /// Each transfer is a process; several objects at once cannot be asked for.
    fn programs(&self, bytes: u64, objects: u32, times: u32) -> Result<Option<Programs>> {
        if objects > 1 {
            return Ok(None);
        }
        let filled = |words: &[String], address: &str| {
            words
                .iter()
                .map(|word| word.replace(BYTES, &bytes.to_string()).replace(ADDRESS, address))
                .collect::<Vec<_>>()
        };
        let program = std::env::current_exe()?.display().to_string();
        let mut client =
            [program, "repeat".to_owned(), times.to_string(), bytes.to_string(), "--".to_owned()].to_vec();
        client.extend(filled(&self.0.client, hop::SERVER));
        Ok(Some(Programs { server: filled(&self.0.server, hop::ANY), client }))
    }
}

/// Measures a row of one's own, and prints it.
pub fn run_own(arguments: &OwnArguments) -> Result<()> {
    let OwnArguments { place, rounds, words } = arguments;
    let row_programs = Own::parse(words)?;
    let watch = Watch::start();
    let hop = hop_at(place, None);
    let rounds =
        (0..*rounds).map(|_| measure::round(&hop, place, &row_programs, 1)).collect::<Result<Vec<_>>>()?;
    let row = Row {
        place: place.name.to_owned(),
        name: row_programs.0.client[0].clone(),
        version: String::new(),
        setting: "times with the program's start".to_owned(),
        run: watch.end(),
        rounds,
    };
    print!("{}", report::table(place, &[row]));
    Ok(())
}

/// Runs a program as often as asked for, and prints a line of what it took. Its own output goes nowhere.
#[expect(clippy::disallowed_methods, reason = "an edge that measures")]
pub fn repeat(arguments: &RepeatArguments) -> Result<()> {
    let RepeatArguments { times, bytes, command } = arguments;
    let mut all = Fetched::default();
    for _ in 0..*times {
        let began = Instant::now();
        let mut program = Command::new(&command[0]);
        let status = program.args(&command[1..]).stdin(Stdio::null()).stdout(Stdio::null()).status();
        let status = status.with_context(|| format!("{}: cannot be started", command[0]))?;
        if !status.success() {
            bail!("{} ended with {status}", command[0]);
        }
        all.times_s.push(began.elapsed().as_secs_f64());
    }
    all.bytes = bytes * u64::from(*times);
    all.duration_s = all.times_s.iter().sum();
    println!("{}", serde_json::to_string(&all)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn commands_are_divided_as_tacit_shell_divides_them() {
        let programs = Own::parse(&words("perf -c {address} --get {bytes} --server -- perf -s -v")).unwrap();
        let Programs { server, client } = programs.programs(5, 1, 20).unwrap().unwrap();
        assert_eq!(server, words("perf -s -v"));
        assert_eq!(client[1..], words("repeat 20 5 -- perf -c 198.18.0.1:4433 --get 5"));
        // A page is several objects at once.
        assert_eq!(programs.programs(5, 10, 20).unwrap(), None);
    }

    #[test]
    fn commands_that_cannot_be_measured_are_refused() {
        let error = |text: &str| Own::parse(&words(text)).unwrap_err().to_string();
        assert_eq!(error("perf {bytes}"), "no `--server --` between CLIENT… and SERVER…");
        assert_eq!(error("perf {bytes} --server --"), "CLIENT… and SERVER… are both needed");
        assert!(error("perf --server -- perf").starts_with("CLIENT… has no {bytes}"));
    }
}
