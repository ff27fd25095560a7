//! The command line.

mod captures;
mod hop;
#[cfg(feature = "network")]
mod http;
mod simulation;
#[cfg(feature = "network")]
mod tack;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub use captures::*;
pub use hop::*;
#[cfg(feature = "network")]
pub use http::*;
pub use simulation::*;
#[cfg(feature = "network")]
pub use tack::*;

const AFTER_HELP: &str = "\
Without a command, tacit runs `compare` with its defaults.

Exit codes: 0 done; 1 a claim failed, a condition of --fail-if holds, a replay differs or an invariant broke; 2 bad input; 130 interrupted.
`tacit shell` and `tacit rre run` end with the status of their command, or 125 where there is none;
`tacit fetch` with 3, 4 or 5 where there is no file, `tacit cp` with 3 or 4 where nothing could be copied.";
/// What stands above it where commands are missing.
#[cfg(not(feature = "network"))]
const LACKING: &str = "\
This program was built without the feature `network`: fetch, http-proxy, serve, cp, ls, proxy and keys are missing.
";
#[cfg(feature = "network")]
const LACKING: &str = "";

/// Taming acknowledgments on wireless: compare, audit, reproduce
#[derive(Debug, Parser)]
#[command(name = "tacit", version = tacit_runs::VERSION, after_help = format!("{LACKING}{AFTER_HELP}"))]
pub struct Cli {
    /// What to do
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a scenario under each scheme, side by side on the same draws
    Compare(CompareArgs),
    /// Make many runs over a grid of settings, into Parquet files, on this machine or on a Dask cluster
    Sweep(SweepArgs),
    /// Say why one scheme carries more than another, from what the bottleneck's time went for
    Why(WhyArgs),
    /// Say which ACK frequency or mechanism suits a link, what it gains and what it costs
    Advise(AdviseArgs),
    /// Say what the acknowledgments in a capture cost, and what each scheme would make of them
    Audit(AuditArgs),
    /// Compress TCP/IP headers in captures, both ways, and say what that takes
    Rohc(RohcArgs),
    /// Run a scenario once
    Run(RunArgs),
    /// Make one HTML file in which everything on the air of a run is looked at, under two schemes side by side
    Explore(ExploreArgs),
    /// Say what each setting of a scenario is, what it means and where it comes from
    Explain(ExplainArgs),
    /// Make a stored run again and say whether it comes out the same
    Replay(ReplayArgs),
    /// Run a command behind a real-time Wi-Fi hop
    #[command(after_help = SHELL_AFTER_HELP)]
    Shell(ShellArgs),
    /// Give TCP sockets of this machine a congestion control that slow uplinks do not slow down
    #[command(after_help = RRE_AFTER_HELP)]
    Rre(RreArgs),
    #[cfg(feature = "network")]
    /// Fetch a file over HTTP, and fetch again what a Wi-Fi hop under FWP lost of it
    #[command(after_help = FETCH_AFTER_HELP)]
    Fetch(FetchArgs),
    #[cfg(feature = "network")]
    /// Do so for programs that can use an HTTP proxy
    #[command(after_help = PROXY_AFTER_HELP)]
    HttpProxy(HttpProxyArgs),
    #[cfg(feature = "network")]
    /// Let others copy files from here, or to here, over TACK
    #[command(after_help = SERVE_AFTER_HELP)]
    Serve(ServeArgs),
    #[cfg(feature = "network")]
    /// Copy files and directories to or from a server, over TACK
    #[command(after_help = CP_AFTER_HELP)]
    Cp(CpArgs),
    #[cfg(feature = "network")]
    /// List files of a server, over TACK
    #[command(after_help = LS_AFTER_HELP)]
    Ls(LsArgs),
    #[cfg(feature = "network")]
    /// Carry TCP connections over TACK: a SOCKS5 proxy and forwarded ports
    #[command(after_help = TACK_PROXY_AFTER_HELP)]
    Proxy(ProxyArgs),
    #[cfg(feature = "network")]
    /// Make this user's key, and say whose keys are trusted
    #[command(after_help = KEYS_AFTER_HELP)]
    Keys(KeysArgs),
    /// Say what this machine can do for live hops, and why not
    Doctor(DoctorArgs),
    /// Draw the report of a directory of results again, without running anything
    Report(ReportArgs),
    /// Reproduce the papers' figures and hold their claims against the result
    Figure(FigureArgs),
    /// Say what a Wi-Fi hop carries at most, in closed form
    Theory(TheoryArgs),
    /// List the scenarios and schemes that come with the program
    Scenarios(ScenariosArgs),
    /// Measure what a simulated second costs
    Bench(BenchArgs),
    /// Print completions for a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write one for each command
    Man(ManArgs),
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write the pages of all commands into this directory instead
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Print the names of the files written as JSON
    #[arg(long, requires = "dir")]
    pub json: bool,
}
