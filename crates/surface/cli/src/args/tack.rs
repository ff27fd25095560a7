//! Arguments of commands over TACK.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use tacit_apps::copy::Exclude;
use tacit_apps::proxy::allow::Rule;
use tracing_subscriber::filter::Targets;

pub(super) const KEYS_AFTER_HELP: &str = "\
The private key is in ~/.config/tacit/identity, or below $XDG_CONFIG_HOME, readable by its owner
only. serve, cp and proxy create it if it is missing. Peers' keys are lines of known-peers beside
it.

  tacit keys show
  tacit keys trust laptop KEY --client
  tacit keys trust box.example.org:4433 KEY

Or with a short code: one machine prints it and waits, the other one enters it. The first trusts the
second as a client; the second trusts the first as a server at the ports of serve and proxy.

  tacit keys pair --listen 0.0.0.0:4435 --timeout 60
  tacit keys pair box.example.org 123-456-789 --name laptop

Exit codes: 0 done; 1 no such peer, or a wrong code; 2 bad input, another key exists or is known, or
a key file cannot be used; 4 pair: no connection, or no peer connected.";

pub(super) const SERVE_AFTER_HELP: &str = "\
Clients are those whose key `tacit keys trust NAME KEY --client` added, and programs with the
server's own key. Others are refused. Names and links that lead out of PATH are refused.

  tacit serve .
  tacit serve /srv/files --write --listen 0.0.0.0:4433
  tacit serve photos --invite

Exit codes: 0 stopped by a signal, after running copies or --grace; 2 bad input, or an address that
cannot be listened on.";

pub(super) const CP_AFTER_HELP: &str = "\
One side is tack://[CODE@]HOST[:PORT]/PATH, with PATH relative to the served directory; the other is
local. CODE is that of `tacit serve --invite`: the two machines learn each other's keys by it.
DIR/ copies the contents of DIR, DIR the directory itself. A DEST that does not exist is the new
name of a single SRC, or a directory if it ends in a slash; missing parents are created. The server
expands *, ? and [...] in SRC. - is standard input or output. An interrupted copy is resumed; every
file is verified by its BLAKE3 hash. cp asks about an unknown server on a terminal, and refuses it
otherwise.

  tacit cp -- photos notes.txt tack://box/
  tacit cp 'tack://box:4433/photos/2024/*.jpg' .
  tar c photos | tacit cp - tack://box/photos.tar

Exit codes: 0 all copied; 1 some paths failed, or with --strict were skipped; 2 bad input, or an
untrusted server key; 3 the server refuses; 4 no connection, or it broke; 130 interrupted.";

pub(super) const LS_AFTER_HELP: &str = "\
Lists a directory, or the paths that match a pattern, with size and modification time (UTC). Names
of directories end in a slash; symbolic links are followed by their target.

  tacit ls tack://box/photos
  tacit ls 'tack://box/photos/*/*.jpg'

Exit codes: 0 listed; 1 some paths could not be listed; 2 bad input, or an untrusted server key;
3 the server refuses; 4 no connection, or it broke.";

pub(super) const TACK_PROXY_AFTER_HELP: &str = "\
Local programs' TCP connections become streams of one TACK connection. The server opens them again,
to targets of --allow only. A RULE is HOST:PORTS. HOST is a name, *.example.org, *, an address, or a
network such as 10.0.0.0/8; PORTS is a port, 8000-8999 or *. Addresses that are not public must be
allowed as addresses. Clients authenticate as for tacit serve.

  tacit proxy --serve --listen 0.0.0.0:4434 --allow '*:443'
  tacit proxy box.example.org --socks5 & curl --socks5-hostname 127.0.0.1:1080 https://example.org/
  tacit proxy box.example.org --forward 127.0.0.1:8080=10.0.0.5:80

Exit codes: 0 stopped by a signal; 2 bad input, an address that cannot be listened on, or an
untrusted server key; 3 the server refuses; 4 no connection at the start.";

/// Logs and qlog.
#[derive(Debug, Args)]
pub struct LogArgs {
    /// Log to standard error at this level: error, warn, info, debug or trace; or levels per module, such as tacit_tack::path=debug,warn
    #[arg(long, value_name = "FILTER")]
    pub log: Option<Targets>,
    /// Format of log lines
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub log_format: LogFormat,
    /// Write a qlog file per connection into this directory, for qvis
    #[arg(long, value_name = "DIR")]
    pub qlog: Option<PathBuf>,
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum LogFormat {
    /// Plain text
    Text,
    /// A JSON object per line
    Json,
}

/// Metrics.
#[derive(Debug, Args)]
pub struct MetricsArgs {
    /// Serve Prometheus metrics at this address, such as 127.0.0.1:9101
    #[arg(long, value_name = "ADDR:PORT")]
    pub metrics: Option<SocketAddr>,
    /// Serve the metrics to other machines, too
    #[arg(long, requires = "metrics")]
    pub metrics_open: bool,
}

/// The memory limit of a program's connections.
#[derive(Debug, Args)]
pub struct MemoryArgs {
    /// MiB for the stream buffers of all connections; when they are full, the fullest stream of the peer that holds most is reset
    #[arg(long, value_name = "MIB", default_value_t = 512, value_parser = clap::value_parser!(u32).range(16..=1 << 20))]
    pub memory: u32,
}

/// A file of arguments.
#[derive(Debug, Args)]
pub struct FileArgs {
    /// Read arguments from this TOML file, with keys named as the flags; flags override it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Only check the arguments and their preconditions
    #[arg(long)]
    pub check: bool,
}

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Directory or file to share
    #[arg(required_unless_present = "config")]
    pub path: Option<PathBuf>,
    #[command(flatten)]
    pub file: FileArgs,
    #[command(flatten)]
    pub seen: LogArgs,
    #[command(flatten)]
    pub metrics: MetricsArgs,
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// Address to listen on; 0.0.0.0:4433 or [::]:4433 for other machines [default: 127.0.0.1:4433, 0.0.0.0:4433 with --invite]
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<SocketAddr>,
    /// Accept files, too
    #[arg(long)]
    pub write: bool,
    /// Print a command with a code for another machine; admit the first one that runs it
    #[arg(long, conflicts_with = "anyone")]
    pub invite: bool,
    /// Let unknown clients read; with --write let them add files instead, and not read
    #[arg(long)]
    pub anyone: bool,
    /// On a signal, wait this long for running copies
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(0..=86_400))]
    pub grace: u32,
    /// Print a JSON line per copy
    #[arg(long)]
    pub json: bool,
    /// Print errors only
    #[arg(short, long, conflicts_with = "json")]
    pub quiet: bool,
}

/// Arguments of `cp`.
#[derive(Debug, Args)]
pub struct CpArgs {
    /// Sources, and the destination last
    #[arg(value_names = ["SRC", "DEST"], num_args = 2.., required = true)]
    pub paths: Vec<String>,
    /// Compare the contents of existing files, not size and time
    #[arg(long)]
    pub checksum: bool,
    /// Remove paths from directories of DEST that SRC lacks
    #[arg(long)]
    pub delete: bool,
    /// Change nothing; print the changes
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Neither copy nor remove matching paths: a name anywhere, or a path below DEST; repeatable
    #[arg(long, value_name = "PATTERN")]
    pub exclude: Vec<Exclude>,
    /// Limit the rate, such as 20Mb/s or 2MB/s, or in rsync's form: KiB per second, or with K, M or G
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub bwlimit: Option<u64>,
    /// Fail if a path is skipped: a device, pipe or socket, a link that leads out, a name that is not UTF-8
    #[arg(long)]
    pub strict: bool,
    /// Print each copied path
    #[arg(short, long, conflicts_with_all = ["quiet", "json"])]
    pub verbose: bool,
    /// Accepted for compatibility: directories are always copied recursively
    #[arg(short, long)]
    pub recursive: bool,
    /// Accepted for compatibility: permissions, times and links are always kept
    #[arg(short, long)]
    pub archive: bool,
    /// Print the result of each path as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub seen: LogArgs,
    /// Print errors only
    #[arg(short, long, conflicts_with = "json")]
    pub quiet: bool,
}

/// Arguments of `ls`.
#[derive(Debug, Args)]
pub struct LsArgs {
    /// Directory or files: tack://HOST[:PORT]/PATH
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<String>,
    /// List subdirectories, too
    #[arg(short, long)]
    pub recursive: bool,
    /// List partial files of interrupted copies (.HASH.tacit-part), too, and count them
    #[arg(short, long)]
    pub all: bool,
    /// Omit matching paths; repeatable
    #[arg(long, value_name = "PATTERN")]
    pub exclude: Vec<Exclude>,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub seen: LogArgs,
}

/// Units of rates, in thousandths of a byte per second.
const RATE_UNITS: [(&str, u64); 11] = [
    ("b/s", 125),
    ("kb/s", 125_000),
    ("Mb/s", 125_000_000),
    ("Gb/s", 125_000_000_000),
    ("kB/s", 1_000_000),
    ("MB/s", 1_000_000_000),
    ("GB/s", 1_000_000_000_000),
    // Units of rsync.
    ("", 1_024_000),
    ("K", 1_024_000),
    ("M", 1_048_576_000),
    ("G", 1_073_741_824_000),
];

/// Parses a rate to bytes per second. As in rsync, 0 means no limit.
fn rate(text: &str) -> Result<u64, String> {
    let allowed =
        || "a rate is a number with b/s, kb/s, Mb/s, Gb/s, kB/s, MB/s or GB/s, or with K, M or G".to_owned();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim());
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let (_, scale) = RATE_UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(allowed)?;
    // Three decimals are enough for every unit.
    let is_number = !whole.is_empty() && (1..=3).contains(&part.len());
    let digits = format!("{whole}{part:0<3}");
    let thousandths: u128 = digits.parse().ok().filter(|_| is_number).ok_or_else(allowed)?;
    let bytes = thousandths.saturating_mul(u128::from(*scale)) / 1_000_000;
    u64::try_from(bytes).map_err(|_| allowed())
}

/// Arguments of `proxy`.
#[derive(Debug, Args)]
pub struct ProxyArgs {
    /// The server: HOST[:PORT], default port 4434
    #[arg(required_unless_present_any = ["serve", "config"], conflicts_with = "serve")]
    pub server: Option<String>,
    #[command(flatten)]
    pub file: FileArgs,
    #[command(flatten)]
    pub seen: LogArgs,
    #[command(flatten)]
    pub metrics: MetricsArgs,
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// Run the server
    #[arg(long)]
    pub serve: bool,
    /// Allow these targets, HOST:PORTS; repeatable
    #[arg(long, value_name = "RULE", requires = "serve")]
    pub allow: Vec<Rule>,
    /// Listen for SOCKS5 clients
    #[arg(long, conflicts_with = "serve")]
    pub socks5: bool,
    /// Address to listen on [default: 127.0.0.1:1080 for SOCKS5, 127.0.0.1:4434 with --serve]
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<SocketAddr>,
    /// Forward connections from LOCAL to TARGET, ADDR:PORT=HOST:PORT; repeatable
    #[arg(long, value_name = "LOCAL=TARGET", conflicts_with = "serve", required_unless_present_any = ["socks5", "serve", "config"])]
    pub forward: Vec<String>,
    /// Accept clients from other machines
    #[arg(long, conflicts_with = "serve")]
    pub open: bool,
    /// Limit of carried connections
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=16_384))]
    pub connections: u32,
    /// On a signal, wait this long for carried connections
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=86_400))]
    pub grace: u32,
    /// Print a JSON line per finished connection
    #[arg(long)]
    pub json: bool,
}

/// Pairing listens on all addresses, because another machine has to connect.
const PAIR_ADDRESS: &str = "0.0.0.0:4435";

/// Arguments of `keys`.
#[derive(Debug, Args)]
pub struct KeysArgs {
    /// The subcommand
    #[command(subcommand)]
    pub command: KeysCommand,
}

/// Subcommands of `keys`.
#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Create this user's key, if it is missing
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
        /// HOST:PORT of a server, as given to cp and proxy; any name for a client
        name: String,
        /// Its public key, printed by `tacit keys show` there
        key: String,
        /// Let it connect to servers here
        #[arg(long)]
        client: bool,
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
    },
    /// Stop trusting a peer
    Forget {
        /// Its name
        name: String,
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
    },
    /// Exchange keys of two machines by a short code: without HOST, print a code and wait; with HOST and CODE, enter it
    Pair {
        /// The machine that printed the code: HOST[:PORT], default port 4435
        #[arg(requires = "code")]
        host: Option<String>,
        /// The code
        code: Option<String>,
        /// Address to listen on
        #[arg(long, value_name = "ADDR:PORT", default_value = PAIR_ADDRESS, conflicts_with = "host")]
        listen: SocketAddr,
        /// Name of this machine on the other one [default: the host name]
        #[arg(long, value_name = "NAME", requires = "host")]
        name: Option<String>,
        /// How long to wait
        #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u32).range(1..=86_400))]
        timeout: u32,
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
    },
    /// List the trusted peers
    List {
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_units_or_are_those_of_rsync() {
        for (text, bytes) in [
            ("20Mb/s", 2_500_000),
            ("20 Mb/s", 2_500_000),
            ("1.5MB/s", 1_500_000),
            ("8 b/s", 1),
            ("1000", 1_024_000),
            ("2.5M", 2_621_440),
            ("0", 0),
        ] {
            assert_eq!(rate(text), Ok(bytes), "{text}");
        }
        for wrong in ["", "Mb/s", "-1", "1.M", "1..5", "5 mb/s", "1e3", "99999999999999999999G", "1.2345"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }
}
