//! QUIC stacks, TCP and TACK through live hops: rows of one table by one command, and the page of all rows.

mod measure;
mod own;
mod programs;
mod report;
mod roster;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Args;
use serde::{Deserialize, Serialize};

use measure::{Peer, Round, hop_at};
use programs::{Ready, Workshop};
use roster::{Contender, PLACES, Place, ROSTER};

use crate::page::keep;
use crate::page::machine::{Machine, Run, Watch};

pub use own::{OwnArguments, RepeatArguments, repeat, run_own};

/// Places that are measured unless others are named: those with a table of all rows.
const USUAL_PLACES: usize = 4;

/// Rows, places and files.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Rows to measure, by name [default: all]
    #[arg(value_parser = roster::contender)]
    rows: Vec<&'static Contender>,
    /// Where to measure [default: the first four of the page]
    #[arg(long, value_delimiter = ',', value_parser = roster::place)]
    places: Vec<&'static Place>,
    /// Rounds; rows take turns in each
    #[arg(long, default_value_t = 1)]
    rounds: u32,
    /// Keep the results here, beside those of rows and places that this run does not measure
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the page of all that --json keeps
    #[arg(long, value_name = "FILE", requires = "json")]
    page: Option<PathBuf>,
    /// Measure nothing: write the page of what --json keeps
    #[arg(long, requires = "page", conflicts_with_all = ["rows", "places"])]
    again: bool,
    /// Sources of programs in other languages
    #[arg(long, value_name = "DIR", default_value = "bench/peers")]
    sources: PathBuf,
    /// Where those are compiled and installed
    #[arg(long, value_name = "DIR", default_value = "target/peers")]
    built: PathBuf,
}

/// A row at a place.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Row {
    place: String,
    name: String,
    version: String,
    setting: String,
    run: Run,
    rounds: Vec<Round>,
}

/// All results of a machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Stored {
    machine: Machine,
    rows: Vec<Row>,
    /// Rows that no program is there for, and why.
    left_out: BTreeMap<String, String>,
}

/// Measures, prints, and keeps what was asked for.
pub fn run(arguments: &Arguments) -> Result<()> {
    let mut stored = match arguments.json.as_deref() {
        Some(path) if path.exists() => read(path)?,
        _ => Stored { machine: Machine::this(), rows: Vec::new(), left_out: BTreeMap::new() },
    };
    if !arguments.again {
        measure(arguments, &mut stored)?;
    }
    if let (Some(page), true) = (&arguments.page, arguments.json.is_some()) {
        keep(page, &report::page(&stored))?;
        println!("{}", page.display());
    }
    Ok(())
}

fn read(path: &Path) -> Result<Stored> {
    let text = fs::read_to_string(path).with_context(|| format!("{}: cannot be read", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{}: no file of tacit-peers stacks", path.display()))
}

/// Each place by itself; its results are kept before the next begins.
fn measure(arguments: &Arguments, stored: &mut Stored) -> Result<()> {
    let all: Vec<&Contender> = ROSTER.iter().collect();
    let usual: Vec<&Place> = PLACES[..USUAL_PLACES].iter().collect();
    let wanted = if arguments.rows.is_empty() { &all } else { &arguments.rows };
    let places = if arguments.places.is_empty() { &usual } else { &arguments.places };
    let ready = ready(arguments, wanted, stored)?;
    for place in places {
        let rows = at(place, &ready, arguments.rounds)?;
        print!("{}", report::table(place, &rows));
        print!("{}", report::claims(&rows));
        merge(&mut stored.rows, rows);
        if let Some(path) = &arguments.json {
            stored.machine = Machine::this();
            keep(path, &(serde_json::to_string_pretty(&stored)? + "\n"))?;
        }
    }
    Ok(())
}

/// Programs of the rows; one that is not there is left out aloud.
fn ready<'a>(
    arguments: &Arguments,
    wanted: &[&'a Contender],
    stored: &mut Stored,
) -> Result<Vec<(&'a Contender, Ready)>> {
    let Arguments { sources, built, .. } = arguments;
    fs::create_dir_all(built).with_context(|| format!("{}: cannot be made", built.display()))?;
    let workshop = Workshop { sources: sources.clone(), built: built.clone() };
    let mut ready = Vec::new();
    for contender in wanted {
        match workshop.ready(contender) {
            Ok(program) => {
                stored.left_out.remove(contender.name);
                ready.push((*contender, program));
            }
            Err(error) => {
                eprintln!("tacit-peers: {}: LEFT OUT: {error:#}", contender.name);
                stored.left_out.insert(contender.name.to_owned(), format!("{error:#}"));
            }
        }
    }
    Ok(ready)
}

/// All rows at a place, in turn.
fn at(place: &Place, ready: &[(&Contender, Ready)], rounds: u32) -> Result<Vec<Row>> {
    let watch = Watch::start();
    let mut of_all: Vec<Vec<Round>> = ready.iter().map(|_| Vec::new()).collect();
    for number in 1..=rounds {
        for ((contender, Ready { words, .. }), of_one) in ready.iter().zip(&mut of_all) {
            eprintln!("tacit-peers: {}, round {number} of {rounds}: {}", place.name, contender.name);
            let peer = Peer { contender, words };
            let hop = hop_at(place, contender.congestion);
            let round = measure::round(&hop, place, &peer, contender.less);
            of_one.push(round.with_context(|| format!("{} at {}", contender.name, place.name))?);
        }
    }
    let run = watch.end();
    let row = |((contender, Ready { version, .. }), rounds): (&(&Contender, Ready), Vec<Round>)| Row {
        place: place.name.to_owned(),
        name: contender.name.to_owned(),
        version: version.clone(),
        setting: contender.setting.to_owned(),
        run: run.clone(),
        rounds,
    };
    Ok(ready.iter().zip(of_all).map(row).collect())
}

/// Newer rows take the places of older ones; all stand in the order of places and roster.
fn merge(rows: &mut Vec<Row>, newer: Vec<Row>) {
    rows.retain(|old| !newer.iter().any(|new| (&new.place, &new.name) == (&old.place, &old.name)));
    rows.extend(newer);
    let place = |row: &Row| PLACES.iter().position(|place| place.name == row.place);
    let name = |row: &Row| ROSTER.iter().position(|contender| contender.name == row.name);
    rows.sort_by_key(|row| (place(row), name(row)));
}
