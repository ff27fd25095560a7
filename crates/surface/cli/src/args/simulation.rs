//! Arguments of commands that simulate, or show results of simulations.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};

use tacit_analysis::compare::DEFAULT_SCENARIO;
use tacit_scenario::ScenarioError;
use tacit_scenario::link::LinkWords;

use super::HopArgs;
use crate::gate::GateArgs;
use crate::output::terminal_width;

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Bundled scenarios by name, or TOML files by path [default: wlan-11n-150]
    #[arg(value_name = "SCENARIO")]
    pub scenarios: Vec<String>,
    #[command(flatten)]
    pub link: LinkArgs,
    /// Numbers of clients, separated by commas [default: the scenario's, else 1,10]
    #[arg(long, value_delimiter = ',', value_name = "N,…")]
    pub clients: Vec<u32>,
    /// Schemes, separated by commas, or all [default: all except the baselines of other transports]
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub schemes: Vec<String>,
    /// Some clients with a scheme, the others with stock, such as tack=1,stock=9; repeatable
    #[arg(long = "mix", value_name = "SCHEME=N,stock=N", conflicts_with_all = ["clients", "schemes"])]
    pub mixes: Vec<String>,
    /// Number of seeds per scheme [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub seeds: Option<u32>,
    /// Override a setting, such as wifi.rate=65Mbps; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub assignments: Vec<String>,
    /// Compare at each of these values, such as 'wifi.distance=5 m,17 m'; several make a grid
    #[arg(long = "sweep", value_name = "KEY=VALUE,…")]
    pub sweeps: Vec<String>,
    /// Fewer and shorter runs: at most 3 seeds and about 5 s
    #[arg(long)]
    pub quick: bool,
    /// Run everything again, even if a result is cached
    #[arg(long)]
    pub no_cache: bool,
    /// Print JSON instead of tables
    #[arg(long)]
    pub json: bool,
    /// Print CSV instead of tables
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Directory of the HTML report and the results; its finished runs are reused
    #[arg(long, value_name = "DIR", default_value = "tacit-report")]
    pub report: PathBuf,
    /// Write no report and keep no results
    #[arg(long, conflicts_with = "report")]
    pub no_report: bool,
    #[command(flatten)]
    pub width: WidthArgs,
    #[command(flatten)]
    pub gate: GateArgs,
}

/// A link in place of a scenario, and what is said beside either.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "The link, in place of a scenario")]
pub struct LinkArgs {
    /// The generation or amendment of Wi-Fi, such as 6, wifi6 or 11ax [default: 802.11n]
    #[arg(long, value_name = "NAME", visible_alias = "phy")]
    wifi: Option<String>,
    /// The rate of data frames, such as 1200Mbps [default: the highest]
    #[arg(long, value_name = "RATE")]
    rate: Option<String>,
    /// The channel width, such as 80MHz [default: 80MHz, or the widest below]
    #[arg(long, value_name = "WIDTH")]
    width: Option<String>,
    /// Spatial streams [default: 2]
    #[arg(long, value_name = "N")]
    streams: Option<u8>,
    /// Round-trip time without queues, such as 40ms [default: the scenario's]
    #[arg(long, value_name = "TIME")]
    pub rtt: Option<String>,
    /// Number of clients that upload, or all, while the others download [default: the scenario's]
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "all")]
    uploads: Option<String>,
}

impl LinkArgs {
    /// The scenario and all assignments: those of the link, then `assignments`. `clients` is the number asked for.
    pub fn scenario(
        &self,
        scenario: Option<&str>,
        assignments: &[String],
        clients: Option<u32>,
    ) -> Result<(String, Vec<String>), ScenarioError> {
        let (name, mut set) = self.words().scenario(scenario, DEFAULT_SCENARIO, clients)?;
        set.extend(assignments.iter().cloned());
        Ok((name, set))
    }

    /// Whether it describes a link.
    pub fn is_given(&self) -> bool {
        self.words().describes().is_some()
    }

    /// Without the round-trip time.
    pub fn without_rtt(&self) -> Self {
        Self { rtt: None, ..self.clone() }
    }

    fn words(&self) -> LinkWords<'_> {
        LinkWords {
            wifi: self.wifi.as_deref(),
            rate: self.rate.as_deref(),
            width: self.width.as_deref(),
            streams: self.streams,
            rtt: self.rtt.as_deref(),
            uploads: self.uploads.as_deref(),
        }
    }
}

/// How wide tables are.
#[derive(Clone, Copy, Debug, Args)]
pub struct WidthArgs {
    /// Show every column, wider than the terminal
    #[arg(long)]
    wide: bool,
}

impl WidthArgs {
    /// Characters per line that text may take; `None` for no limit, as in files and pipes.
    pub fn limit(self) -> Option<usize> {
        if self.wide { None } else { terminal_width() }
    }
}

/// Arguments of `sweep`.
#[derive(Debug, Args)]
pub struct SweepArgs {
    /// A bundled scenario by name, or a TOML file by path [default: wlan-11n-150]
    pub scenario: Option<String>,
    #[command(flatten)]
    pub link: LinkArgs,
    /// Run at each of these values, such as 'wifi.distance=5 m,17 m'; several make a grid
    #[arg(long = "sweep", value_name = "KEY=VALUE,…")]
    pub sweeps: Vec<String>,
    /// Schemes, separated by commas, or all [default: the scenario as written]
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub schemes: Vec<String>,
    /// Numbers of clients, separated by commas [default: the scenario's]
    #[arg(long, value_delimiter = ',', value_name = "N,…")]
    pub clients: Vec<u32>,
    /// Number of seeds at each point [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub seeds: Option<u32>,
    /// Override a setting, such as wifi.rate=65Mbps; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub assignments: Vec<String>,
    /// Directory of the files; its finished batches are reused
    #[arg(long, value_name = "DIR", default_value = "tacit-sweep")]
    pub out: PathBuf,
    /// Format of the files
    #[arg(long, value_name = "FORMAT", default_value = "parquet")]
    pub format: SweepFormat,
    #[command(flatten)]
    pub plot: PlotArgs,
    /// Run on the workers of this Dask scheduler; needs the Python package (pip install 'tacit[dask]')
    #[arg(long, value_name = "ADDRESS")]
    pub dask: Option<String>,
    /// Run everything again, even if a result is cached
    #[arg(long)]
    pub no_cache: bool,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// A plot of a sweep.
#[derive(Debug, Args)]
pub struct PlotArgs {
    /// Plot a metric over a swept key with 95 % intervals, such as goodput:wired.delay
    #[arg(long, value_name = "METRIC[:KEY]")]
    pub plot: Option<String>,
    /// File of the plot, which ends in .svg, .pdf or .csv; repeatable [default: tacit-plot.svg]
    #[arg(short, long, value_name = "FILE", requires = "plot")]
    pub output: Vec<PathBuf>,
}

/// Format of the files of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SweepFormat {
    /// Parquet, with the scenario and the command in its metadata
    Parquet,
    /// Comma-separated values with a line of names
    Csv,
}

/// Arguments of `why`.
#[derive(Debug, Args)]
pub struct WhyArgs {
    /// A results directory of `tacit compare`, or a scenario to compare, by name or path
    #[arg(value_name = "RESULTS_DIR|SCENARIO", required_unless_present_any = ["wifi", "rate", "width", "streams"])]
    pub subject: Option<String>,
    #[command(flatten)]
    pub link: LinkArgs,
    /// Two schemes, separated by a comma [default: the best and stock]
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    pub schemes: Vec<String>,
    /// Account for the time of the first flow's station, not of the bottleneck that it shares with others
    #[arg(long)]
    pub station: bool,
    /// Numbers of clients, separated by commas; of a scenario [default: the scenario's, else 1,10]
    #[arg(long, value_delimiter = ',', value_name = "N,…")]
    pub clients: Vec<u32>,
    /// Number of seeds per scheme; of a scenario [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub seeds: Option<u32>,
    /// Override a setting, such as wifi.rate=65Mbps; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub assignments: Vec<String>,
    /// Fewer and shorter runs: at most 3 seeds and about 5 s
    #[arg(long)]
    pub quick: bool,
    /// Run everything again, even if a result is cached
    #[arg(long)]
    pub no_cache: bool,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub width: WidthArgs,
}

/// Arguments of `advise`.
#[derive(Debug, Args)]
pub struct AdviseArgs {
    /// A bundled scenario by name, or a TOML file by path [default: wlan-11n-150]
    pub scenario: Option<String>,
    #[command(flatten)]
    pub link: LinkArgs,
    /// Number of active clients [default: the scenario's or the capture's]
    #[arg(long, value_name = "N")]
    pub clients: Option<u32>,
    /// Read round-trip time, clients and the receivers' ACK frequency from this pcap or pcapng file
    #[arg(long, value_name = "FILE")]
    pub capture: Option<PathBuf>,
    /// Seeds that every scheme begins with [default: 3]
    #[arg(long, value_name = "N")]
    pub seeds: Option<u32>,
    /// Most seeds of schemes whose intervals overlap [default: 12, with --quick 6]
    #[arg(long, value_name = "N")]
    pub max_seeds: Option<u32>,
    /// Override a setting, such as wifi.distance='20 m'; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub assignments: Vec<String>,
    /// Fewer and shorter runs: about 5 s, at most 6 seeds
    #[arg(long)]
    pub quick: bool,
    /// Run everything again, even if a result is cached
    #[arg(long)]
    pub no_cache: bool,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub width: WidthArgs,
    /// Directory for an HTML report of all runs [default: none]
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// A bundled scenario by name, or a TOML file by path
    #[arg(required_unless_present_any = ["wifi", "rate", "width", "streams"])]
    pub scenario: Option<String>,
    #[command(flatten)]
    pub link: LinkArgs,
    /// Override a setting, such as wifi.rate=65Mbps; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub assignments: Vec<String>,
    /// Scheme to apply [default: the scenario as written]
    #[arg(long, value_name = "NAME")]
    pub scheme: Option<String>,
    /// Number of clients [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub clients: Option<u32>,
    /// Seed of the random streams
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Shorten the run to about 5 s
    #[arg(long)]
    pub quick: bool,
    /// Run everything again, even if a result is cached
    #[arg(long)]
    pub no_cache: bool,
    /// Print JSON instead of tables
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub width: WidthArgs,
    /// Print a table of the results as CSV instead: without TABLE the run with every metric
    #[arg(
        long,
        value_name = "TABLE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "runs",
        value_parser = PossibleValuesParser::new(tacit_runs::store::table_names()),
        conflicts_with = "json"
    )]
    pub csv: Option<String>,
    /// Capture the air to this file: pcapng with radiotap, for Wireshark
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// Encode and decode every packet on the path, as a check; the digest does not change
    #[arg(long)]
    pub wire: bool,
    #[command(flatten)]
    pub gate: GateArgs,
}

/// Arguments of `explore`.
#[derive(Debug, Args)]
pub struct ExploreArgs {
    /// A bundled scenario by name, or a TOML file by path [default: wlan-11n-150]
    #[arg(value_name = "SCENARIO")]
    pub scenario: Option<String>,
    #[command(flatten)]
    pub link: LinkArgs,
    /// One scheme, or two to show side by side, separated by a comma [default: stock,hack-more-data; stock with --against]
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    pub schemes: Vec<String>,
    /// Setting of a second run to show beside the first, such as wifi.protection=rts-cts; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub against: Vec<String>,
    /// Number of clients [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub clients: Option<u32>,
    /// Seed of the random streams
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Override a setting, such as wifi.rate=65Mbps; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub assignments: Vec<String>,
    /// Shorten the runs to about 5 s
    #[arg(long)]
    pub quick: bool,
    /// Omit frames before this time, such as 1.5s [default: none]
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Keep frames for this long, such as 100ms [default: to the end of the run]
    #[arg(long = "for", value_name = "TIME")]
    pub length: Option<String>,
    /// Print JSON about the page instead of text
    #[arg(long)]
    pub json: bool,
    /// File to write
    #[arg(short, long, value_name = "FILE", default_value = tacit_analysis::explore::FILE)]
    pub output: PathBuf,
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// A bundled scenario by name, or a TOML file by path; beside a link the first key
    #[arg(required_unless_present_any = ["wifi", "rate", "width", "streams"])]
    pub scenario: Option<String>,
    /// Only these settings or tables, such as tcp.sack or wifi
    #[arg(value_name = "KEY")]
    pub keys: Vec<String>,
    #[command(flatten)]
    pub link: LinkArgs,
    /// Number of clients [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub clients: Option<u32>,
    /// Override a setting, such as wifi.rate=65Mbps; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub assignments: Vec<String>,
    /// Scheme to apply [default: the scenario as written]
    #[arg(long, value_name = "NAME")]
    pub scheme: Option<String>,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// Output of `tacit run --json` (.json), a results directory, or its runs.parquet
    pub result: PathBuf,
    /// Number of the run, counted from 1, if there are several
    #[arg(long, value_name = "N")]
    pub row: Option<usize>,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `figure`.
#[derive(Debug, Args)]
pub struct FigureArgs {
    /// Figures by ID, such as hack/fig1a, or TOML files by path
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
    /// Run everything again, even if a result is cached
    #[arg(long)]
    pub no_cache: bool,
    /// Print JSON instead of text: an object for one ID, an array for several, --all and --list
    #[arg(long)]
    pub json: bool,
    /// Run nothing: judge and draw the results in DIR, which an earlier --report wrote
    #[arg(long, value_name = "DIR", conflicts_with = "no_cache")]
    pub from: Option<PathBuf>,
    /// Directory of the pictures, the page and the results; its finished runs are reused
    /// [default: that of --from, else tacit-report/figures]
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    /// Write no pictures and keep no results
    #[arg(long, conflicts_with = "report")]
    pub no_report: bool,
    /// Write a Markdown page with the verdict of every claim; requires full runs of all figures
    #[arg(long, value_name = "FILE", requires = "all", conflicts_with = "quick")]
    pub summary: Option<PathBuf>,
}

/// Arguments of `theory`.
#[derive(Debug, Args)]
pub struct TheoryArgs {
    #[command(flatten)]
    pub hop: HopArgs,
    /// Users of each PPDU of 802.11ax: OFDMA [default: one user alone]
    #[arg(long, value_name = "N")]
    pub users: Option<u32>,
    /// Rates of further links of 802.11be, which share the Block Ack window, such as 2882Mbps,576Mbps [default: one link]
    #[arg(long, value_name = "RATE,…", value_delimiter = ',', conflicts_with = "users")]
    pub links: Vec<String>,
    /// MPDUs in the Block Ack window [default: the standard's]
    #[arg(long, value_name = "MPDUS")]
    pub window: Option<u32>,
    /// Longest exchange; 4ms in the HACK paper [default: as long as the standard's PPDUs]
    #[arg(long, value_name = "TIME")]
    pub txop_limit: Option<String>,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Results directories of comparisons, sweeps or figures
    #[arg(value_name = "DIR", required = true)]
    pub directories: Vec<PathBuf>,
    /// Directory of the common page, if there are several
    #[arg(long, value_name = "DIR", default_value = "tacit-report")]
    pub report: PathBuf,
    #[command(flatten)]
    pub plot: PlotArgs,
    /// Print JSON instead of tables
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub width: WidthArgs,
}

/// Arguments of `scenarios`.
#[derive(Debug, Args)]
pub struct ScenariosArgs {
    /// Print this scenario's complete TOML, with its bases merged
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
    /// Runs per row; the median is reported
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeats: u32,
    /// Measure one row once, in this process
    #[arg(long, hide = true, value_name = "NAME")]
    pub row: Option<String>,
}
