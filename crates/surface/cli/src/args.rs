//! The command line.

#[cfg(feature = "simulator")]
mod captures;
#[cfg(feature = "simulator")]
mod hop;
#[cfg(feature = "network")]
mod http;
#[cfg(feature = "simulator")]
mod simulation;
#[cfg(feature = "network")]
mod tack;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

#[cfg(feature = "simulator")]
pub use captures::*;
#[cfg(feature = "simulator")]
pub use hop::*;
#[cfg(feature = "network")]
pub use http::*;
#[cfg(feature = "simulator")]
pub use simulation::*;
#[cfg(feature = "network")]
pub use tack::*;

const AFTER_HELP: &str = "\
Without a command, tacit runs `compare` with its defaults.

Exit codes: 0 done; 1 a claim failed, a condition of --fail-if holds, a replay differs or an
invariant broke; 2 bad input; 130 interrupted. `tacit shell` and `tacit rre run` exit with their
command's status, or 125 without one; `tacit fetch` with 3, 4 or 5 without a file; `tacit cp` with 3
or 4 if it copied nothing.";
/// Printed before `AFTER_HELP` by builds that lack a feature.
const LACKING: &str = if !cfg!(feature = "network") {
    "\
This program was built without the feature `network`: fetch, http-proxy, serve, cp, ls, proxy and keys are missing.
"
} else if !cfg!(feature = "simulator") {
    "\
This program was built without the feature `simulator`: it has the commands that speak to other machines, no others.
"
} else {
    ""
};

#[cfg(feature = "simulator")]
use tacit_runs::VERSION;
/// The version without the commit, because only the simulator's runs record a commit.
#[cfg(not(feature = "simulator"))]
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Taming acknowledgments on wireless: compare, audit, reproduce
#[derive(Debug, Parser)]
#[command(name = "tacit", version = VERSION, after_help = format!("{LACKING}{AFTER_HELP}"))]
pub struct Cli {
    /// The subcommand
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Subcommands of `tacit`.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "there is one in a process")]
pub enum Command {
    #[cfg(feature = "simulator")]
    #[command(flatten)]
    Simulator(SimulatorCommand),
    #[cfg(feature = "network")]
    #[command(flatten)]
    Network(NetworkCommand),
    /// Print the completion script of a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write one for each command
    Man(ManArgs),
}

/// Commands about simulated runs, live hops, captures and figures.
#[cfg(feature = "simulator")]
#[derive(Debug, Subcommand)]
pub enum SimulatorCommand {
    /// Compare schemes in a scenario, on equal random draws
    Compare(CompareArgs),
    /// Run a grid of settings into Parquet or CSV files, on this machine or a Dask cluster
    Sweep(SweepArgs),
    /// Explain why one scheme carries more than another, by the use of the bottleneck's time
    Why(WhyArgs),
    /// Recommend an ACK frequency or mechanism for a link, with its gain and cost
    Advise(AdviseArgs),
    /// Compute the cost of the ACKs in a capture, and their cost under each scheme
    Audit(AuditArgs),
    /// Compress and decompress the TCP/IP headers of captures, and measure it
    Rohc(RohcArgs),
    /// Run a scenario once
    Run(RunArgs),
    /// Write an HTML page with every frame on the air of a run, two schemes side by side
    Explore(ExploreArgs),
    /// Print each setting of a scenario: value, meaning, and origin
    Explain(ExplainArgs),
    /// Repeat a stored run and check that the result is the same
    Replay(ReplayArgs),
    /// Run a command behind a real-time Wi-Fi hop
    #[command(after_help = SHELL_AFTER_HELP)]
    Shell(ShellArgs),
    /// Use TCP-RRE for TCP sockets of this machine: downloads stay fast beside slow uplinks
    #[command(after_help = RRE_AFTER_HELP)]
    Rre(RreArgs),
    /// Send fewer TCP ACKs through a slow uplink of this machine
    #[command(after_help = THIN_AFTER_HELP)]
    Thin(ThinArgs),
    /// Check whether this machine can run live hops
    Doctor(DoctorArgs),
    /// Redraw the report of a results directory, without running anything
    Report(ReportArgs),
    /// Reproduce figures of the papers and check their claims
    Figure(FigureArgs),
    /// Compute the capacity of a Wi-Fi hop in closed form
    Theory(TheoryArgs),
    /// List the bundled scenarios and schemes
    Scenarios(ScenariosArgs),
    /// Measure the CPU time of a simulated second
    Bench(BenchArgs),
}

/// Commands that speak to other machines.
#[cfg(feature = "network")]
#[derive(Debug, Subcommand)]
pub enum NetworkCommand {
    /// Fetch a file over HTTP, and repair the losses of a Wi-Fi hop under FWP
    #[command(after_help = FETCH_AFTER_HELP)]
    Fetch(FetchArgs),
    /// Repair FWP's losses for programs that can use an HTTP proxy
    #[command(after_help = PROXY_AFTER_HELP)]
    HttpProxy(HttpProxyArgs),
    /// Share files over TACK, for `tacit cp` and `tacit ls`
    #[command(after_help = SERVE_AFTER_HELP)]
    Serve(ServeArgs),
    /// Copy files and directories to or from a server, over TACK
    #[command(after_help = CP_AFTER_HELP)]
    Cp(CpArgs),
    /// List files on a server, over TACK
    #[command(after_help = LS_AFTER_HELP)]
    Ls(LsArgs),
    /// Carry TCP connections over TACK: a SOCKS5 proxy and forwarded ports
    #[command(after_help = TACK_PROXY_AFTER_HELP)]
    Proxy(ProxyArgs),
    /// Manage this user's key and the trusted peers
    #[command(after_help = KEYS_AFTER_HELP)]
    Keys(KeysArgs),
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
