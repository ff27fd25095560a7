//! Transfers through live hops for figures.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use serde::Deserialize;
use tacit_papers::figure::{
    Figure, MakeTransfers, Teller, TransferReport, TransferRun, TransferRuns, needs_transfers, nginx_config,
};
use tacit_runs::RunsError;

use super::live::{Told, no_hops, watched};
use crate::output::note;

/// The program that other transports are driven by.
const PEERS: &str = "tacit-peers";
/// What makes it.
const PEERS_MADE_BY: &str = "cargo build --release -p tacit-peers";

/// Makes the transfers of `figures`, where there are any and this machine can.
pub fn transferred(figures: &[Figure], quick: bool) -> Result<TransferRuns, RunsError> {
    if !needs_transfers(figures) {
        return Ok(TransferRuns::default());
    }
    TransferRuns::make(figures, quick, no_hops().as_deref(), &mut Hand::default())
}

/// Makes runs by processes of this program.
#[derive(Default)]
struct Hand {
    /// What was said already: obstacles are told once each.
    told: Vec<String>,
}

/// What stands where `{tacit}` and `{peers}` do.
struct Programs {
    tacit: PathBuf,
    peers: PathBuf,
}

impl Programs {
    fn find() -> anyhow::Result<Self> {
        let tacit = std::env::current_exe().context("this program's file")?;
        let beside = tacit.with_file_name(PEERS);
        let peers = if beside.is_file() { beside } else { PEERS.into() };
        Ok(Self { tacit, peers })
    }

    fn fill(&self, run: &TransferRun, words: &[String], directory: &Path) -> Vec<String> {
        let names = [self.tacit.as_path(), self.peers.as_path(), directory].map(Path::to_string_lossy);
        let file = directory.join("file");
        let [tacit, peers, directory] = &names;
        let own = [
            ("{tacit}", &**tacit),
            ("{peers}", peers),
            ("{dir}", directory),
            ("{file}", &file.to_string_lossy()),
        ];
        run.filled(words, &own)
    }
}

impl MakeTransfers for Hand {
    fn obstacle(&mut self, run: &TransferRun) -> Option<String> {
        let said = obstacle(run)?;
        if !self.told.contains(&said) {
            note(&format!("tacit: SKIPPED: {said}"));
            self.told.push(said.clone());
        }
        Some(said)
    }

    fn make(&mut self, run: &TransferRun) -> Result<TransferReport, String> {
        if io::stderr().is_terminal() {
            note(&format!("tacit: {}", run.command()));
        }
        make(run).map_err(|error| format!("{error:#}"))
    }
}

/// Why a run like this one cannot be made: one of its programs is not there, or the kernel lacks a congestion control.
fn obstacle(run: &TransferRun) -> Option<String> {
    let programs = match Programs::find() {
        Ok(programs) => programs,
        Err(error) => return Some(format!("{error:#}")),
    };
    let congestion = run.congestion.as_deref().map(tacit_live::congestion::find);
    if let Some(Err(error)) = congestion {
        return Some(error.to_string());
    }
    let missing = [&run.server, &run.client].into_iter().filter_map(|words| words.first()).find_map(|word| {
        let program = programs.fill(run, std::slice::from_ref(word), Path::new("")).remove(0);
        (!is_program(Path::new(&program))).then_some((word, program))
    });
    missing.map(|(word, program)| match word.as_str() {
        "{peers}" => format!("{PEERS} is not beside this program and not on the path: {PEERS_MADE_BY}"),
        _ => format!("{program} is not installed"),
    })
}

/// Whether there is such a file, or one of that name where programs are looked for; servers are often in `sbin`.
fn is_program(program: &Path) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    program.is_file()
        || program.components().count() == 1
            && std::env::split_paths(&path)
                .chain(["/usr/sbin".into(), "/sbin".into()])
                .any(|directory| directory.join(program).is_file())
}

/// The line that a client writes. Names are those of `tacit fetch --json`.
#[derive(Deserialize)]
struct Line {
    octets: u64,
    duration_s: f64,
    /// Of each full second.
    #[serde(default)]
    mbps: Vec<f64>,
}

fn make(run: &TransferRun) -> anyhow::Result<TransferReport> {
    let programs = Programs::find()?;
    let directory = tempfile::tempdir().context("a temporary directory")?;
    let own = directory.path();
    std::fs::write(own.join("nginx.conf"), nginx_config(&own.to_string_lossy()))
        .context("a server's file")?;
    if run.octets > 0 {
        // What is in it does not matter: nothing on the way looks.
        let file = std::fs::File::create(own.join("file")).context("the file")?;
        file.set_len(run.octets).context("the file")?;
    }
    let mut shell = Command::new(&programs.tacit);
    shell.args(["shell", "--json"]).args(run.shell_words()).arg("--server-log").arg(own.join("log"));
    shell.arg("--").args(programs.fill(run, &run.client, own));
    shell.args(["--server", "--"]).args(programs.fill(run, &run.server, own));
    let told = Told::of(&watched(&mut shell).output().context("tacit shell")?)?;
    report(run, &told)
}

/// What a figure wants of what a shell and its command said.
fn report(run: &TransferRun, told: &Told) -> anyhow::Result<TransferReport> {
    let Told { report, invalid, said } = told;
    if let Some(status) = report["exit_status"].as_u64().filter(|status| *status != 0) {
        let last = said.trim_end().lines().last().unwrap_or_default();
        let invalid = Some(format!("its client ended with {status}: {last}"));
        return Ok(TransferReport { invalid, ..TransferReport::default() });
    }
    let line = said.lines().rev().find_map(|line| serde_json::from_str::<Line>(line).ok());
    let (down, up) = (&report["transfer"]["down"], &report["transfer"]["up"]);
    let ran_s = |side: &str| report["waits"][side]["ran_s"].as_f64();
    let hop_octets = down["end"]["sum_received"]["bytes"].as_u64();
    let mut transfer = TransferReport {
        data_packets: down["end"]["packets_received"].as_u64(),
        ack_packets: up["end"]["packets_sent"].as_u64(),
        octets: hop_octets,
        cpu_s: ran_s("command").zip(ran_s("server")).map(|(command, server)| command + server),
        invalid: invalid.clone(),
        ..TransferReport::default()
    };
    match run.told_by {
        Teller::Client => {
            let line = line.context("its client wrote no line of JSON with octets and duration_s")?;
            transfer.octets = Some(line.octets);
            transfer.file = Some((line.octets, line.duration_s));
            transfer.mbps = line.mbps;
        }
        Teller::Hop => {
            let intervals = down["intervals"].as_array().into_iter().flatten();
            let bps = intervals.filter_map(|interval| interval["sum"]["bits_per_second"].as_f64());
            transfer.mbps = bps.map(|bps| bps / 1e6).collect();
            transfer.file = hop_octets.zip(down["end"]["sum_received"]["seconds"].as_f64());
        }
    }
    Ok(transfer)
}
