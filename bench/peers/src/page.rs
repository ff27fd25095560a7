//! Numbers beside the peers, as a page: results of other programs on this machine, and of ours, in turn.
//!
//! Each part measures and keeps its results as JSON; the page is written from that, so that a part can be made again by
//! itself and equal results give equal pages.

mod codecs;
mod lateness;
pub mod machine;
mod simulators;
pub mod spread;
pub mod table;
#[cfg(test)]
mod tests;
mod tools;
pub mod transports;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tacit_sim::capture::AtomicFile;

use crate::stack::name_of;
use codecs::Codecs;
use lateness::Lateness;
use machine::{Machine, Run, Watch};
use simulators::Simulators;
use transports::Transports;

pub use simulators::{SimulateArguments, simulate};
use table::filled;

/// Pairs that count; medians of fewer say little.
const PAIRS: u32 = 5;

/// Parts to measure, and where the page goes.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Parts to measure [default: all]; the others keep their last measurement
    parts: Vec<Name>,
    /// One short pair each, printed and kept nowhere
    #[arg(long)]
    quick: bool,
    /// Measure nothing: write the page again from earlier measurements
    #[arg(long, conflicts_with_all = ["parts", "quick"])]
    again: bool,
    /// Where the page goes
    #[arg(long, value_name = "FILE", default_value = "docs/validation/peers.md")]
    page: PathBuf,
    /// Where results are kept, and programs that are compiled
    #[arg(long, value_name = "DIR", default_value = "target/peers")]
    results: PathBuf,
    /// Sources of the programs that are compiled
    #[arg(long, value_name = "DIR", default_value = "bench")]
    sources: PathBuf,
    /// Captures of ACKs and librohc's output for them, in `captures` and `rohc-golden` [default: $TACIT_DATA, or ../shared/data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// A part of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Name {
    /// The simulator beside ns-3
    Simulators,
    /// The header compression beside librohc
    Codecs,
    /// TACK beside TCP and QUIC
    Transports,
    /// How late a live hop is
    Lateness,
}

/// How much to measure.
struct Plan<'a> {
    arguments: &'a Arguments,
    pairs: u32,
}

impl Plan<'_> {
    fn quick(&self) -> bool {
        self.arguments.quick
    }

    /// Where captures are, if there are any.
    fn data(&self) -> PathBuf {
        let data = self.arguments.data.clone().or_else(|| std::env::var_os("TACIT_DATA").map(PathBuf::from));
        data.unwrap_or_else(|| PathBuf::from("../shared/data"))
    }
}

/// Results of a part, or why it was skipped.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measurement<T> {
    Skipped(String),
    Measured(T),
}

/// A part's results with all that they depend on besides.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Stored<T> {
    machine: Machine,
    run: Run,
    outcome: Measurement<T>,
}

/// A part of the page.
trait Part: Serialize + DeserializeOwned {
    const NAME: Name;
    const HEADING: &'static str;

    fn measure(plan: &Plan) -> Result<Measurement<Self>>;
    /// Tables, and remarks on them.
    fn text(&self) -> String;
}

/// Measures, and writes the page.
pub fn run(arguments: &Arguments) -> Result<()> {
    let plan = Plan { arguments, pairs: if arguments.quick { 1 } else { PAIRS } };
    fs::create_dir_all(&arguments.results)
        .with_context(|| format!("{}: cannot be made", arguments.results.display()))?;
    let machine = Machine::this();
    let parts = [
        part::<Simulators>(&plan, &machine)?,
        part::<Codecs>(&plan, &machine)?,
        part::<Transports>(&plan, &machine)?,
        part::<Lateness>(&plan, &machine)?,
    ];
    let text = page(&machine, &parts);
    if arguments.quick {
        print!("A try: one short pair of each, fewer runs than the text below says.\n\n{text}");
        return Ok(());
    }
    keep(&arguments.page, &text)?;
    println!("{}", arguments.page.display());
    Ok(())
}

/// A section of the page, from measurements of now or before.
fn part<P: Part>(plan: &Plan, machine: &Machine) -> Result<String> {
    let (arguments, name) = (plan.arguments, name_of(&P::NAME));
    let path = arguments.results.join(format!("{name}.json"));
    let wanted = arguments.parts.is_empty() || arguments.parts.contains(&P::NAME);
    let stored = if wanted && !arguments.again {
        eprintln!("tacit-peers: {name}");
        let watch = Watch::start();
        let outcome = P::measure(plan).with_context(|| name.clone())?;
        if let Measurement::Skipped(why) = &outcome {
            eprintln!("tacit-peers: {name}: SKIPPED: {why}");
        }
        let stored = Stored { machine: machine.clone(), run: watch.end(), outcome };
        if !plan.quick() {
            keep(&path, &(serde_json::to_string_pretty(&stored)? + "\n"))?;
        }
        Some(stored)
    } else {
        read::<P>(&path)?
    };
    Ok(section(machine, stored.as_ref()))
}

/// The earlier measurements; nothing where there are none.
fn read<P: Part>(path: &Path) -> Result<Option<Stored<P>>> {
    match fs::read_to_string(path) {
        Ok(text) => {
            let stored = serde_json::from_str(&text);
            stored.map(Some).with_context(|| format!("{}: no file of tacit-peers page", path.display()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| path.display().to_string()),
    }
}

/// Writes a file whole, or not at all.
pub fn keep(path: &Path, text: &str) -> Result<()> {
    let written = AtomicFile::create(path).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.commit()
    });
    written.with_context(|| format!("{}: cannot be written", path.display()))
}

fn section<P: Part>(machine: &Machine, stored: Option<&Stored<P>>) -> String {
    let body = match stored {
        None => "**Not measured.**\n".to_owned(),
        Some(stored) if stored.machine != *machine => "**Not measured on this machine.**\n".to_owned(),
        Some(Stored { outcome: Measurement::Skipped(why), .. }) => format!("**Skipped: {why}.**\n"),
        Some(Stored { outcome: Measurement::Measured(part), run, .. }) => {
            format!("{}\n{}", filled(&run.to_string()), part.text())
        }
    };
    format!("## {}\n\n{body}", P::HEADING)
}

fn page(machine: &Machine, parts: &[String]) -> String {
    let how = format!(
        "`./ci.sh peers --quick` tries everything once and writes nothing. Programs that are compared run in turn on one \
         machine, {PAIRS} times each. A ratio is that of two runs next to each other. Tables have the median, with the least and the \
         largest behind it. On a shared machine the ratios say more than the times."
    );
    format!(
        "# Beside the peers\n\nWritten by `tacit-peers page`; text typed here is lost. One command makes it again:\n\n\
         ```sh\n./ci.sh peers\n```\n\n{}\n## Machine\n\n{machine}\n{}",
        filled(&how),
        parts.join("\n")
    )
}
