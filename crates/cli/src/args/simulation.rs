//! Arguments of commands that simulate, and of those that show what came of it.

use std::path::PathBuf;

use clap::Args;

use super::HopArgs;
use crate::gate::GateArgs;

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Names of scenarios that come with the program, or paths of TOML files
    #[arg(value_name = "SCENARIO", default_value = tacit_papers::compare::DEFAULT_SCENARIO)]
    pub scenarios: Vec<String>,
    /// Numbers of clients, with commas [default: as the scenario says, else 1,10]
    #[arg(long, value_delimiter = ',', value_name = "N,…")]
    pub clients: Vec<u32>,
    /// Schemes, with commas; all is every one [default: all but the baselines of other transports]
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub schemes: Vec<String>,
    /// Runs with different draws per scheme [default: as the scenario says]
    #[arg(long, value_name = "N")]
    pub seeds: Option<u32>,
    /// Change the scenario, such as wifi.rate=65Mbps; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub assignments: Vec<String>,
    /// Compare at each of these values, such as 'wifi.distance=5 m,20 m'; several make a grid
    #[arg(long = "sweep", value_name = "KEY=VALUE,…")]
    pub sweeps: Vec<String>,
    /// Fewer and shorter runs: at most 3 seeds and about 5 s
    #[arg(long)]
    pub quick: bool,
    /// Make every run, whatever was run before
    #[arg(long)]
    pub no_cache: bool,
    /// Print JSON instead of tables
    #[arg(long)]
    pub json: bool,
    /// Directory of the HTML report and the results; finished runs found in it are not run again
    #[arg(long, value_name = "DIR", default_value = "tacit-report")]
    pub report: PathBuf,
    /// Write no report and keep no results
    #[arg(long, conflicts_with = "report")]
    pub no_report: bool,
    #[command(flatten)]
    pub gate: GateArgs,
}

/// Arguments of `sweep`.
#[derive(Debug, Args)]
pub struct SweepArgs {
    /// Name of a scenario that comes with the program, or path of a TOML file
    #[arg(default_value = tacit_papers::compare::DEFAULT_SCENARIO)]
    pub scenario: String,
    /// Run at each of these values, such as 'wifi.distance=5 m,20 m'; several make a grid
    #[arg(long = "sweep", value_name = "KEY=VALUE,…")]
    pub sweeps: Vec<String>,
    /// Schemes, with commas; all is every one [default: the scenario as written]
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub schemes: Vec<String>,
    /// Numbers of clients, with commas [default: as the scenario says]
    #[arg(long, value_delimiter = ',', value_name = "N,…")]
    pub clients: Vec<u32>,
    /// Runs with different draws at each place [default: as the scenario says]
    #[arg(long, value_name = "N")]
    pub seeds: Option<u32>,
    /// Change the scenario, such as wifi.rate=65Mbps; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub assignments: Vec<String>,
    /// Directory of the Parquet files; batches found in it are not run again
    #[arg(long, value_name = "DIR", default_value = "tacit-sweep")]
    pub out: PathBuf,
    /// Let the workers of this Dask scheduler make the runs; needs the Python package (pip install 'tacit[dask]')
    #[arg(long, value_name = "ADDRESS")]
    pub dask: Option<String>,
    /// Make every run, whatever was run before elsewhere
    #[arg(long)]
    pub no_cache: bool,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `why`.
#[derive(Debug, Args)]
pub struct WhyArgs {
    /// Directory that `tacit compare` kept its results in; or a scenario to compare, by name or path
    #[arg(value_name = "RESULTS_DIR|SCENARIO")]
    pub subject: String,
    /// The two schemes, with a comma [default: the best and stock]
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    pub schemes: Vec<String>,
    /// Numbers of clients of a scenario, with commas [default: as the scenario says, else 1,10]
    #[arg(long, value_delimiter = ',', value_name = "N,…")]
    pub clients: Vec<u32>,
    /// Runs of a scenario with different draws per scheme [default: as the scenario says]
    #[arg(long, value_name = "N")]
    pub seeds: Option<u32>,
    /// Change the scenario, such as wifi.rate=65Mbps; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub assignments: Vec<String>,
    /// Fewer and shorter runs: at most 3 seeds and about 5 s
    #[arg(long)]
    pub quick: bool,
    /// Make every run, whatever was run before
    #[arg(long)]
    pub no_cache: bool,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `advise`.
#[derive(Debug, Args)]
pub struct AdviseArgs {
    /// Name of a scenario that comes with the program, or path of a TOML file [default: the one nearest to --phy and --rate]
    #[arg(conflicts_with_all = ["phy", "rate"])]
    pub scenario: Option<String>,
    /// The 802.11 amendment [default: 802.11n]
    #[arg(long, value_name = "PHY", requires = "rate")]
    pub phy: Option<String>,
    /// The rate of data frames [default: 150Mbps]
    #[arg(long, value_name = "RATE")]
    pub rate: Option<String>,
    /// Round-trip time without queues, such as 40ms [default: as the scenario or the capture says]
    #[arg(long, value_name = "TIME")]
    pub rtt: Option<String>,
    /// Clients that load or send at once [default: as the scenario or the capture says]
    #[arg(long, value_name = "N")]
    pub clients: Option<u32>,
    /// Clients send
    #[arg(long)]
    pub uploads: bool,
    /// Take round-trip time, clients and the receivers' ACK frequency from this pcap or pcapng file
    #[arg(long, value_name = "FILE")]
    pub capture: Option<PathBuf>,
    /// Runs with different draws per scheme
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub seeds: u32,
    /// Change the scenario, such as wifi.distance='20 m'; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub assignments: Vec<String>,
    /// Fewer and shorter runs: at most 3 seeds and about 5 s
    #[arg(long)]
    pub quick: bool,
    /// Make every run, whatever was run before
    #[arg(long)]
    pub no_cache: bool,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
    /// Directory of the HTML report of all runs [default: none is written]
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Name of a scenario that comes with the program, or path of a TOML file
    pub scenario: String,
    /// Change the scenario, such as wifi.rate=65Mbps; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub assignments: Vec<String>,
    /// Scheme to run under [default: the scenario as written]
    #[arg(long, value_name = "NAME")]
    pub scheme: Option<String>,
    /// Number of clients [default: as the scenario says]
    #[arg(long, value_name = "N")]
    pub clients: Option<u32>,
    /// Seed of all draws
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// A shorter run: about 5 s
    #[arg(long)]
    pub quick: bool,
    /// Make every run, whatever was run before
    #[arg(long)]
    pub no_cache: bool,
    /// Print JSON instead of tables
    #[arg(long)]
    pub json: bool,
    /// Write what was on the air to this file: pcapng with radiotap, for Wireshark
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// Encode and decode every packet on its way; the digest stays the same
    #[arg(long)]
    pub wire: bool,
    #[command(flatten)]
    pub gate: GateArgs,
}

/// Arguments of `explore`.
#[derive(Debug, Args)]
pub struct ExploreArgs {
    /// Name of a scenario that comes with the program, or path of a TOML file
    #[arg(value_name = "SCENARIO", default_value = tacit_papers::compare::DEFAULT_SCENARIO)]
    pub scenario: String,
    /// One scheme, or two to set side by side, with a comma
    #[arg(long, value_delimiter = ',', value_name = "A,B", default_values_t = tacit_papers::explore::DEFAULT_SCHEMES.map(String::from))]
    pub schemes: Vec<String>,
    /// Number of clients [default: as the scenario says]
    #[arg(long, value_name = "N")]
    pub clients: Option<u32>,
    /// Seed of all draws
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Change the scenario, such as wifi.rate=65Mbps; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub assignments: Vec<String>,
    /// Shorter runs: about 5 s
    #[arg(long)]
    pub quick: bool,
    /// Leave out what is on the air before, such as 1.5s [default: nothing]
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Keep so much from there, such as 100ms [default: to the end of the run]
    #[arg(long = "for", value_name = "TIME")]
    pub length: Option<String>,
    /// Print JSON about the page instead of text
    #[arg(long)]
    pub json: bool,
    /// The page
    #[arg(short, long, value_name = "FILE", default_value = tacit_papers::explore::FILE)]
    pub output: PathBuf,
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Name of a scenario that comes with the program, or path of a TOML file
    pub scenario: String,
    /// Only these settings, or those of these tables, such as wifi or tcp.sack
    #[arg(value_name = "KEY")]
    pub keys: Vec<String>,
    /// Change the scenario, such as wifi.rate=65Mbps; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub assignments: Vec<String>,
    /// Scheme on top of it [default: the scenario as written]
    #[arg(long, value_name = "NAME")]
    pub scheme: Option<String>,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// What `tacit run --json` printed (.json), a directory of results, or its runs.parquet
    pub result: PathBuf,
    /// Which run of several, from 1
    #[arg(long, value_name = "N")]
    pub row: Option<usize>,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `figure`.
#[derive(Debug, Args)]
pub struct FigureArgs {
    /// Figures, such as hack/fig1a
    #[arg(value_name = "ID", required_unless_present_any = ["list", "all"])]
    pub ids: Vec<String>,
    /// List all figures
    #[arg(long, conflicts_with_all = ["ids", "all"])]
    pub list: bool,
    /// Run all figures
    #[arg(long, conflicts_with = "ids")]
    pub all: bool,
    /// Fewer and shorter runs
    #[arg(long)]
    pub quick: bool,
    /// Make every run, whatever was run before
    #[arg(long)]
    pub no_cache: bool,
    /// Print JSON instead of text: an object for one ID, an array for several, --all and --list
    #[arg(long)]
    pub json: bool,
    /// Run nothing: judge and draw again what is stored in DIR, where --report of an earlier call put it
    #[arg(long, value_name = "DIR", conflicts_with = "no_cache")]
    pub from: Option<PathBuf>,
    /// Directory of the pictures, the page and the results; finished runs found in it are not run again
    /// [default: that of --from, else tacit-report/figures]
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    /// Write no pictures and keep no results
    #[arg(long, conflicts_with = "report")]
    pub no_report: bool,
    /// Write what became of every claim as a page of Markdown; takes full runs of all figures
    #[arg(long, value_name = "FILE", requires = "all", conflicts_with = "quick")]
    pub summary: Option<PathBuf>,
}

/// Arguments of `theory`.
#[derive(Debug, Args)]
pub struct TheoryArgs {
    #[command(flatten)]
    pub hop: HopArgs,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Directories of results, of comparisons or of figures
    #[arg(value_name = "DIR", required = true)]
    pub directories: Vec<PathBuf>,
    /// Where the common page of several goes
    #[arg(long, value_name = "DIR", default_value = "tacit-report")]
    pub report: PathBuf,
    /// Print JSON instead of tables
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `scenarios`.
#[derive(Debug, Args)]
pub struct ScenariosArgs {
    /// Print the whole TOML of this scenario, its bases merged in
    pub scenario: Option<String>,
    /// Print JSON instead of tables
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
    /// Runs per row, of which the median counts
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeats: u32,
    /// Measure one row once, in this process
    #[arg(long, hide = true, value_name = "NAME")]
    pub row: Option<String>,
}
