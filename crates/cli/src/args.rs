//! The command line.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use tacit_apps::proxy::allow::Rule;
use tacit_live::AckMode;
use tracing_subscriber::filter::Targets;

const AFTER_HELP: &str = "\
Without a command, tacit runs `compare` with its defaults.

Exit codes: 0 done; 1 a claim failed, a replay differs or an invariant broke; 2 bad input; 130 interrupted.
`tacit shell` and `tacit rre run` end with the status of their command, or 125 where there is none;
`tacit fetch` with 3, 4 or 5 where there is no file, `tacit cp` with 3 or 4 where nothing could be copied.";

const SHELL_AFTER_HELP: &str = "\
The command finds the other side's address in $TACIT_PEER and $TACIT_PEER6. With --server the other side
is a network of its own, and 198.18.0.1; without, it is the network this was started in, which takes root,
and where other hops may have taken that address.

  tacit shell -- iperf3 -c 198.18.0.1 -R --server -- iperf3 -s -1
  tacit shell --scheme hack-more-data --acks 2 --server -- iperf3 -s -1 -- iperf3 -c 198.18.0.1 -R
  tacit shell wlan-11a-54 -- bash

Exit codes: the command's own; 125 the hop could not be made or broke; 126 or 127 the command could not
be started; 2 bad input. A run that fell behind real time ends with the command's status, says so, and
gives no numbers.";

const RRE_AFTER_HELP: &str = "\
TCP-RRE paces by what the receiver's timestamps say, instead of by ACKs as they arrive. It is loaded into
the kernel as eBPF, for the sockets named and no others, and is gone when the command ends, however it ends.

  tacit rre run -- nginx -g 'daemon off;'
  tacit rre attach --cgroup /sys/fs/cgroup/system.slice/nginx.service
  tacit rre status

Exit codes: of `run` the command's own, or 126 or 127 where it could not be started; 125 this machine
cannot, with the reason in one sentence; 2 bad input.";

const FETCH_AFTER_HELP: &str = "\
What comes is kept in FILE.part until it is whole; another attempt at the same address goes on with it, if
the server says that it is still the same file.

  tacit fetch http://198.18.0.1/video.mp4
  tacit shell --scheme fwp --server -- nginx -g 'daemon off;' -- tacit fetch http://198.18.0.1/video.mp4

Exit codes: 0 done; 1 another SHA-256; 2 bad input, https, or a file that cannot be written; 3 the server has
no such file; 4 no connection, or none that lasts; 5 the file changed, or a hole could not be filled.";

const PROXY_AFTER_HELP: &str = "\
For programs that read http_proxy. GET is repaired, other methods pass as they are; CONNECT is refused, for
what TLS protects cannot be repaired. Only this machine's programs reach it, and it reaches public servers.

  tacit http-proxy --allow-host 198.18.0.1 & http_proxy=http://127.0.0.1:3128 curl http://198.18.0.1/

Exit codes: 0 stopped by a signal; 2 bad input, or an address that cannot be listened at.";

const KEYS_AFTER_HELP: &str = "\
The private key is ~/.config/tacit/identity (below $XDG_CONFIG_HOME where that is set), for its owner's eyes
only; serve, cp and proxy make one where there is none. Keys of peers are lines of known-peers beside it.

  tacit keys show
  tacit keys trust laptop KEY --client
  tacit keys trust box.example.org:4433 KEY

Exit codes: 0 done; 1 there is no such peer; 2 bad input, another key is there or known, or a file of keys
that cannot be used.";

const SERVE_AFTER_HELP: &str = "\
Clients are those with a key that tacit keys trust NAME KEY --client named, and programs with the key of
this server itself, which its user's are; others hear nothing but that they may not. Names and links that
lead out of PATH are refused.

  tacit serve .
  tacit serve /srv/files --write --listen 0.0.0.0:4433

Exit codes: 0 stopped by a signal, when running copies were done or --grace was over; 2 bad input, or an
address that cannot be listened at.";

const CP_AFTER_HELP: &str = "\
One side is tack://HOST[:PORT]/PATH, PATH being relative to what tacit serve serves there; the other is here.
As with other programs, DIR/ copies what is in DIR without DIR itself, and a DEST that is not there is the
new name of one SRC. What an interrupted copy left is gone on with; every file is verified by its BLAKE3
before it gets its name. A server that is not known is asked about on a terminal, and refused without one.

  tacit cp -- photos notes.txt tack://box/
  tacit cp tack://box:4433/photos/2024 .

Exit codes: 0 all is there; 1 some paths failed; 2 bad input, or a server with a key that is not trusted;
3 the server refuses; 4 no connection, or it broke; 130 interrupted.";

const TACK_PROXY_AFTER_HELP: &str = "\
TCP connections of programs here go through one TACK connection, a stream each; the server's end makes them
again, to targets that --allow names and to no others. A RULE is HOST:PORTS: a name, *.example.org, *, an
address or a network such as 10.0.0.0/8; a port, 8000-8999 or *. Addresses that are not public must be
named as addresses. Who may connect is said as for tacit serve.

  tacit proxy --serve --listen 0.0.0.0:4434 --allow '*:443'
  tacit proxy box.example.org --socks5 & curl --socks5-hostname 127.0.0.1:1080 https://example.org/
  tacit proxy box.example.org --forward 127.0.0.1:8080=10.0.0.5:80

Exit codes: 0 stopped by a signal; 2 bad input, an address that cannot be listened at, or a server with a key
that is not trusted; 3 the server refuses; 4 no connection at the start.";

/// Taming acknowledgments on wireless: compare, audit, reproduce
#[derive(Debug, Parser)]
#[command(name = "tacit", version = tacit_runs::VERSION, after_help = AFTER_HELP)]
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
    /// Say what the acknowledgments in a capture cost, and what each scheme would make of them
    Audit(AuditArgs),
    /// Compress TCP/IP headers in captures, both ways, and say what that takes
    Rohc(RohcArgs),
    /// Run a scenario once
    Run(RunArgs),
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
    /// Fetch a file over HTTP, and fetch again what a Wi-Fi hop under FWP lost of it
    #[command(after_help = FETCH_AFTER_HELP)]
    Fetch(FetchArgs),
    /// Do so for programs that can use an HTTP proxy
    #[command(after_help = PROXY_AFTER_HELP)]
    HttpProxy(HttpProxyArgs),
    /// Let others copy files from here, or to here, over TACK
    #[command(after_help = SERVE_AFTER_HELP)]
    Serve(ServeArgs),
    /// Copy files and directories to or from a server, over TACK
    #[command(after_help = CP_AFTER_HELP)]
    Cp(CpArgs),
    /// Carry TCP connections over TACK: a SOCKS5 proxy and forwarded ports
    #[command(after_help = TACK_PROXY_AFTER_HELP)]
    Proxy(ProxyArgs),
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

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

/// Arguments of `fetch`.
#[derive(Debug, Args)]
pub struct FetchArgs {
    /// Address of the file: http://HOST[:PORT]/PATH
    pub url: String,
    /// Where to put it; - is standard output [default: its name in the address]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Begin anew, whatever an earlier attempt left
    #[arg(long)]
    pub restart: bool,
    /// Keep the file only if it has this SHA-256
    #[arg(long, value_name = "HEX")]
    pub sha256: Option<String>,
    /// Give up when nothing came for so long
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub timeout: u32,
    /// Requests for lost octets at once
    #[arg(long, value_name = "N", default_value_t = PARALLEL, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub parallel: u32,
    /// Print what it cost as JSON
    #[arg(long)]
    pub json: bool,
    /// Print nothing unless it fails
    #[arg(short, long, conflicts_with = "json")]
    pub quiet: bool,
}

/// Requests for lost octets at once.
const PARALLEL: u32 = tacit_net::connection::PARALLEL_MAX as u32;

/// Arguments of `http-proxy`.
#[derive(Debug, Args)]
pub struct HttpProxyArgs {
    /// Where to listen: an address of this machine only, unless --open
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:3128")]
    pub listen: SocketAddr,
    /// Let other machines use it
    #[arg(long)]
    pub open: bool,
    /// Also reach this server, by name or address, although its address is not public; may be repeated
    #[arg(long = "allow-host", value_name = "HOST")]
    pub allow_hosts: Vec<String>,
    /// Also reach this port, beside 80, 8000, 8008, 8080 and 8888; may be repeated
    #[arg(long = "allow-port", value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub allow_ports: Vec<u16>,
    /// Connections of programs at once
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub connections: u32,
    /// Requests for lost octets at once, for each body
    #[arg(long, value_name = "N", default_value_t = PARALLEL, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub parallel: u32,
    /// Print a JSON line about each answer
    #[arg(long)]
    pub json: bool,
}

/// Where log lines and qlogs go.
#[derive(Debug, Args)]
pub struct LogArgs {
    /// Log to standard error: error, warn, info, debug or trace, or such levels of targets as in tacit_tack::path=debug,warn
    #[arg(long, value_name = "FILTER")]
    pub log: Option<Targets>,
    /// How a log line looks
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub log_format: LogFormat,
    /// Write what happens to each connection to a file in this directory: qlog, for qvis
    #[arg(long, value_name = "DIR")]
    pub qlog: Option<PathBuf>,
}

/// How a log line looks.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum LogFormat {
    /// For people
    Text,
    /// An object of JSON
    Json,
}

/// Counts for others.
#[derive(Debug, Args)]
pub struct MetricsArgs {
    /// Answer Prometheus at this address, such as 127.0.0.1:9101
    #[arg(long, value_name = "ADDR:PORT")]
    pub metrics: Option<SocketAddr>,
    /// Let other machines read them
    #[arg(long, requires = "metrics")]
    pub metrics_open: bool,
}

/// Arguments that stand in a file.
#[derive(Debug, Args)]
pub struct FileArgs {
    /// Read arguments from this TOML file, each a key named as its flag; flags win
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Only say whether all that is needed is there, and what is wrong
    #[arg(long)]
    pub check: bool,
}

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The directory or file
    #[arg(required_unless_present = "config")]
    pub path: Option<PathBuf>,
    #[command(flatten)]
    pub file: FileArgs,
    #[command(flatten)]
    pub seen: LogArgs,
    #[command(flatten)]
    pub metrics: MetricsArgs,
    /// Where to listen; 0.0.0.0:4433 or [::]:4433 for other machines
    #[arg(long, value_name = "ADDR:PORT", default_value = tacit_apps::SERVE_ADDRESS)]
    pub listen: SocketAddr,
    /// Take files, too
    #[arg(long)]
    pub write: bool,
    /// Let anyone read, whatever their key
    #[arg(long, conflicts_with = "write")]
    pub anyone: bool,
    /// When stopped, wait so long for copies that are running
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(0..=86_400))]
    pub grace: u32,
    /// Print a JSON line about each copy
    #[arg(long)]
    pub json: bool,
    /// Print nothing unless it fails
    #[arg(short, long, conflicts_with = "json")]
    pub quiet: bool,
}

/// Arguments of `cp`.
#[derive(Debug, Args)]
pub struct CpArgs {
    /// What to copy, and last where to
    #[arg(value_names = ["SRC", "DEST"], num_args = 2.., required = true)]
    pub paths: Vec<String>,
    /// Compare contents of files that are there, not size and time
    #[arg(long)]
    pub checksum: bool,
    /// Remove from directories of DEST what those of SRC have not
    #[arg(long)]
    pub delete: bool,
    /// Change nothing, say what would happen
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Print what became of each path as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub seen: LogArgs,
    /// Print nothing unless it fails
    #[arg(short, long, conflicts_with = "json")]
    pub quiet: bool,
}

/// Arguments of `proxy`.
#[derive(Debug, Args)]
pub struct ProxyArgs {
    /// The server's end: HOST[:PORT], the port 4434 unless said
    #[arg(required_unless_present_any = ["serve", "config"], conflicts_with = "serve")]
    pub server: Option<String>,
    #[command(flatten)]
    pub file: FileArgs,
    #[command(flatten)]
    pub seen: LogArgs,
    #[command(flatten)]
    pub metrics: MetricsArgs,
    /// Be the server's end
    #[arg(long)]
    pub serve: bool,
    /// Connect to these targets, HOST:PORTS; may be repeated
    #[arg(long, value_name = "RULE", requires = "serve")]
    pub allow: Vec<Rule>,
    /// Take programs by SOCKS5
    #[arg(long, conflicts_with = "serve")]
    pub socks5: bool,
    /// Where to listen [default: 127.0.0.1:1080 for SOCKS5, 127.0.0.1:4434 with --serve]
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<SocketAddr>,
    /// Carry connections to LOCAL to TARGET, ADDR:PORT=HOST:PORT; may be repeated
    #[arg(long, value_name = "LOCAL=TARGET", conflicts_with = "serve", required_unless_present_any = ["socks5", "serve", "config"])]
    pub forward: Vec<String>,
    /// Let programs of other machines use it
    #[arg(long, conflicts_with = "serve")]
    pub open: bool,
    /// Connections of programs at once
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=16_384))]
    pub connections: u32,
    /// When stopped, wait so long for connections that are carried
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=86_400))]
    pub grace: u32,
    /// Print a JSON line about each connection that was carried
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `keys`.
#[derive(Debug, Args)]
pub struct KeysArgs {
    /// What to do
    #[command(subcommand)]
    pub command: KeysCommand,
}

/// What `keys` does.
#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Make this user's key
    Make {
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
    },
    /// Print this user's public key
    Show {
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
    },
    /// Trust a peer
    Trust {
        /// Of a server HOST:PORT, as it is connected to; of a client any name
        name: String,
        /// Its public key, as tacit keys show prints it there
        key: String,
        /// It may connect to servers here
        #[arg(long)]
        client: bool,
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
    },
    /// Trust a peer no more
    Forget {
        /// Its name
        name: String,
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
    },
    /// List the peers that are trusted
    List {
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
    },
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

/// Arguments of `shell`.
#[derive(Debug, Args)]
pub struct ShellArgs {
    /// Name of a scenario that comes with the program, or path of a TOML file; its first client is real
    #[arg(default_value = tacit_papers::compare::DEFAULT_SCENARIO)]
    pub scenario: String,
    /// Change the scenario, such as wifi.rate=65Mbps; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub assignments: Vec<String>,
    /// Scheme of the hop, such as stock or hack-more-data [default: the scenario as written]
    #[arg(long, value_name = "NAME")]
    pub scheme: Option<String>,
    /// Simulated clients that compete with the real one
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub background: u32,
    /// Remember no ACKs to compare reconstituted ones with; for tests
    #[arg(long, hide = true)]
    pub no_oracle: bool,
    /// How many ACKs receivers send: kernel (as it likes), packet (one per packet), or one in N packets
    #[arg(long, value_name = "MODE", default_value_t = AckMode::Kernel)]
    pub acks: AckMode,
    /// Congestion control on both sides [default: the kernel's]
    #[arg(long, value_name = "NAME")]
    pub congestion: Option<String>,
    /// Seed of all draws
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Run a second command on the other side: --server -- SERVER -- COMMAND, or -- COMMAND --server -- SERVER
    #[arg(long)]
    pub server: bool,
    /// Write the server's standard output to this file [default: dropped]
    #[arg(long, value_name = "FILE")]
    pub server_log: Option<PathBuf>,
    /// Print JSON instead of text; the command's standard output then goes to standard error
    #[arg(long)]
    pub json: bool,
    /// Write what was on the air to this file: pcapng with radiotap, for Wireshark
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// No counters while the command runs, and no report after it
    #[arg(short, long, conflicts_with = "json")]
    pub quiet: bool,
    /// The command and its arguments [default: a shell]
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Arguments of `rre`.
#[derive(Debug, Args)]
pub struct RreArgs {
    /// What to do
    #[command(subcommand)]
    pub command: RreCommand,
}

/// What `rre` does.
#[derive(Debug, Subcommand)]
pub enum RreCommand {
    /// Run a command whose sockets use it, and those of its children; what it leaves running ends with it
    Run {
        /// Buffer delay to keep to at 250 kb/s and below; less above [default: 80]
        #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u16).range(1..=5000))]
        target_ms: Option<u16>,
        /// The command and its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Make new sockets of a control group or of a network namespace use it, until stopped
    #[command(group = clap::ArgGroup::new("whose").required(true))]
    Attach {
        /// A directory of cgroup2: sockets of processes in it and below
        #[arg(long, value_name = "PATH", group = "whose")]
        cgroup: Option<PathBuf>,
        /// A network namespace: a name that ip netns lists, or a path such as /proc/PID/ns/net
        #[arg(long, value_name = "NAME", group = "whose")]
        netns: Option<String>,
        /// Buffer delay to keep to at 250 kb/s and below; less above [default: 80]
        #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u16).range(1..=5000))]
        target_ms: Option<u16>,
    },
    /// Say of each flow that uses it how fast it sends, how fast that is received, and what waits on the way
    Status {
        /// Print JSON instead of a table
        #[arg(long)]
        json: bool,
        /// Answer Prometheus at this address, such as 127.0.0.1:9100, until stopped
        #[arg(long, value_name = "ADDR", conflicts_with = "json")]
        metrics: Option<String>,
    },
    /// Remove a control group when standard input ends
    #[command(hide = true)]
    Watch {
        /// The group
        path: PathBuf,
    },
}

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `audit`.
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// A pcap or pcapng file: Ethernet, raw IP, Linux cooked, or 802.11 with or without radiotap
    pub capture: PathBuf,
    #[command(flatten)]
    pub hop: HopArgs,
    /// Minimum round-trip time, which TACK's row depends on
    #[arg(long, value_name = "TIME", default_value = "20ms")]
    pub rtt: String,
    /// Print JSON instead of tables
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `rohc`.
#[derive(Debug, Args)]
pub struct RohcArgs {
    /// What to do
    #[command(subcommand)]
    pub command: RohcCommand,
}

/// What `rohc` does.
#[derive(Debug, Subcommand)]
pub enum RohcCommand {
    /// Run a capture through a codec and back, check every octet, count and measure
    Stats {
        /// A pcap or pcapng file
        capture: PathBuf,
        /// strict (RFC 6846), hack (TCP/HACK, ACK by ACK) or hack-batch (the ACKs of a frame as one run)
        #[arg(long, value_name = "CODEC", default_value = "strict")]
        codec: String,
        /// Print JSON instead of tables
        #[arg(long)]
        json: bool,
    },
    /// Compress the TCP packets of a capture into a file of RFC 6846 packets
    Compress {
        /// A pcap or pcapng file
        capture: PathBuf,
        /// The file to write: each ROHC packet behind its length, 16 bits, little-endian
        out: PathBuf,
        /// In how many packets each change is said, 1 to 8
        #[arg(long, value_name = "N", default_value_t = 2)]
        repeat: u8,
        /// How contexts are numbered: small (up to 16) or large (up to 16384)
        #[arg(long, value_name = "SPACE", default_value = "small")]
        cid: String,
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
    },
    /// Decompress such a file into a capture: pcap, raw IP
    Decompress {
        /// A file of ROHC packets, each behind its length, 16 bits, little-endian
        rohc: PathBuf,
        /// The pcap file to write
        out: PathBuf,
        /// How contexts are numbered: small (up to 16) or large (up to 16384)
        #[arg(long, value_name = "SPACE", default_value = "small")]
        cid: String,
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
    },
}

/// Arguments that name a wireless hop.
#[derive(Debug, Args)]
pub struct HopArgs {
    /// The 802.11 amendment
    #[arg(long, value_name = "PHY", default_value = "802.11n")]
    pub phy: String,
    /// The rate of data frames
    #[arg(long, value_name = "RATE", default_value = "150Mbps")]
    pub rate: String,
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
