//! Arguments of commands that speak TACK to each other.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use tacit_apps::copy::Exclude;
use tacit_apps::proxy::allow::Rule;
use tracing_subscriber::filter::Targets;

pub(super) const KEYS_AFTER_HELP: &str = "\
The private key is ~/.config/tacit/identity (below $XDG_CONFIG_HOME where that is set), for its owner's eyes
only; serve, cp and proxy make one where there is none. Keys of peers are lines of known-peers beside it.

  tacit keys show
  tacit keys trust laptop KEY --client
  tacit keys trust box.example.org:4433 KEY

Or without reading keys out: the one prints a code, which the other answers once. It is trusted as a client
there, and the first one here as a server at the ports of tacit serve and tacit proxy.

  tacit keys pair --listen 0.0.0.0:4435 --timeout 60
  tacit keys pair box.example.org 123-456-789 --name laptop

Exit codes: 0 done; 1 there is no such peer, or a wrong code; 2 bad input, another key is there or known, or a
file of keys that cannot be used; 4 pair: no connection, or nobody came.";

pub(super) const SERVE_AFTER_HELP: &str = "\
Clients are those with a key that tacit keys trust NAME KEY --client named, and programs with the key of
this server itself, which its user's are; others hear nothing but that they may not. Names and links that
lead out of PATH are refused.

  tacit serve .
  tacit serve /srv/files --write --listen 0.0.0.0:4433

Exit codes: 0 stopped by a signal, when running copies were done or --grace was over; 2 bad input, or an
address that cannot be listened at.";

pub(super) const CP_AFTER_HELP: &str = "\
One side is tack://HOST[:PORT]/PATH, PATH being relative to what tacit serve serves there; the other is here.
As with other programs, DIR/ copies what is in DIR without DIR itself, and a DEST that is not there is the
new name of one SRC, or a directory where it ends in a slash; directories on the way are made. * ? and [...]
in PATH of SRC are expanded by the server. - is standard input or output. An interrupted copy is resumed; every
file is verified by its BLAKE3 before it gets its name. A server that is not known is
asked about on a terminal, and refused without one.

  tacit cp -- photos notes.txt tack://box/
  tacit cp 'tack://box:4433/photos/2024/*.jpg' .
  tar c photos | tacit cp - tack://box/photos.tar

Exit codes: 0 all is there; 1 some paths failed, or with --strict were skipped; 2 bad input, or a server with
a key that is not trusted; 3 the server refuses; 4 no connection, or it broke; 130 interrupted.";

pub(super) const LS_AFTER_HELP: &str = "\
Lists the contents of a directory, with size and time of last change (UTC), or the paths that a pattern matches. A
directory's name ends in a slash; behind a symbolic link stands where it points.

  tacit ls tack://box/photos
  tacit ls 'tack://box/photos/*/*.jpg'

Exit codes: 0 listed; 1 some paths could not be; 2 bad input, or a server with a key that is not trusted; 3 the
server refuses; 4 no connection, or it broke.";

pub(super) const TACK_PROXY_AFTER_HELP: &str = "\
TCP connections of programs here go through one TACK connection, a stream each; the server's end makes them
again, to targets that --allow names and to no others. A RULE is HOST:PORTS: a name, *.example.org, *, an
address or a network such as 10.0.0.0/8; a port, 8000-8999 or *. Addresses that are not public must be
named as addresses. Who may connect is said as for tacit serve.

  tacit proxy --serve --listen 0.0.0.0:4434 --allow '*:443'
  tacit proxy box.example.org --socks5 & curl --socks5-hostname 127.0.0.1:1080 https://example.org/
  tacit proxy box.example.org --forward 127.0.0.1:8080=10.0.0.5:80

Exit codes: 0 stopped by a signal; 2 bad input, an address that cannot be listened at, or a server with a key
that is not trusted; 3 the server refuses; 4 no connection at the start.";

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

/// What a program may hold of what its connections carry.
#[derive(Debug, Args)]
pub struct MemoryArgs {
    /// MiB that the buffers of all connections together take at most; where they are full, the fullest stream of the peer that
    /// holds most is given up
    #[arg(long, value_name = "MIB", default_value_t = 512, value_parser = clap::value_parser!(u32).range(16..=1 << 20))]
    pub memory: u32,
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
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// Where to listen; 0.0.0.0:4433 or [::]:4433 for other machines
    #[arg(long, value_name = "ADDR:PORT", default_value = tacit_apps::SERVE_ADDRESS)]
    pub listen: SocketAddr,
    /// Take files, too
    #[arg(long)]
    pub write: bool,
    /// Let anyone read, whatever their key; with --write instead let them add new files, and read nothing
    #[arg(long)]
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
    /// Neither copy nor remove matching paths: a name anywhere, or a path as it arrives; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub exclude: Vec<Exclude>,
    /// Carry at most this, as 20Mb/s or 2MB/s, or as rsync has it: in KiB per second, or with K, M or G
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub bwlimit: Option<u64>,
    /// Fail where something is skipped, too: devices, pipes, sockets, links that lead out, names that are no text
    #[arg(long)]
    pub strict: bool,
    /// Print each path that is copied
    #[arg(short, long, conflicts_with_all = ["quiet", "json"])]
    pub verbose: bool,
    /// Accepted: directories are copied with all that is in them in any case
    #[arg(short, long)]
    pub recursive: bool,
    /// Accepted: permissions, times and links are kept in any case
    #[arg(short, long)]
    pub archive: bool,
    /// Print what became of each path as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub seen: LogArgs,
    /// Print nothing unless it fails
    #[arg(short, long, conflicts_with = "json")]
    pub quiet: bool,
}

/// Arguments of `ls`.
#[derive(Debug, Args)]
pub struct LsArgs {
    /// The directory or files: tack://HOST[:PORT]/PATH
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<String>,
    /// List directories of directories, too
    #[arg(short, long)]
    pub recursive: bool,
    /// Leave out matching paths; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub exclude: Vec<Exclude>,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub seen: LogArgs,
}

/// Units of rates, and how many thousandths of an octet per second they are.
const RATE_UNITS: [(&str, u64); 11] = [
    ("b/s", 125),
    ("kb/s", 125_000),
    ("Mb/s", 125_000_000),
    ("Gb/s", 125_000_000_000),
    ("kB/s", 1_000_000),
    ("MB/s", 1_000_000_000),
    ("GB/s", 1_000_000_000_000),
    // As rsync has them.
    ("", 1_024_000),
    ("K", 1_024_000),
    ("M", 1_048_576_000),
    ("G", 1_073_741_824_000),
];

/// Octets per second; 0, which is no limit, as in rsync.
fn rate(text: &str) -> Result<u64, String> {
    let allowed =
        || "a rate is a number with b/s, kb/s, Mb/s, Gb/s, kB/s, MB/s or GB/s, or with K, M or G".to_owned();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim());
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let (_, scale) = RATE_UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(allowed)?;
    // Thousandths are enough of any unit.
    let is_number = !whole.is_empty() && (1..=3).contains(&part.len());
    let digits = format!("{whole}{part:0<3}");
    let thousandths: u128 = digits.parse().ok().filter(|_| is_number).ok_or_else(allowed)?;
    let octets = thousandths.saturating_mul(u128::from(*scale)) / 1_000_000;
    u64::try_from(octets).map_err(|_| allowed())
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
    #[command(flatten)]
    pub memory: MemoryArgs,
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

/// Where pairing waits: all addresses, as another machine is to answer.
const PAIR_ADDRESS: &str = "0.0.0.0:4435";

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
    /// Let two machines know each other by a short code: without HOST print one and wait, with HOST and CODE answer it
    Pair {
        /// The machine that prints the code: HOST[:PORT], the port 4435 unless said
        #[arg(requires = "code")]
        host: Option<String>,
        /// The code that it prints
        code: Option<String>,
        /// Where to wait; 0.0.0.0:4435 or [::]:4435 for other machines
        #[arg(long, value_name = "ADDR:PORT", default_value = PAIR_ADDRESS, conflicts_with = "host")]
        listen: SocketAddr,
        /// Name of this machine on the other one [default: its host name]
        #[arg(long, value_name = "NAME", requires = "host")]
        name: Option<String>,
        /// Wait so long
        #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u32).range(1..=86_400))]
        timeout: u32,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_units_or_are_those_of_rsync() {
        for (text, octets) in [
            ("20Mb/s", 2_500_000),
            ("20 Mb/s", 2_500_000),
            ("1.5MB/s", 1_500_000),
            ("8 b/s", 1),
            ("1000", 1_024_000),
            ("2.5M", 2_621_440),
            ("0", 0),
        ] {
            assert_eq!(rate(text), Ok(octets), "{text}");
        }
        for wrong in ["", "Mb/s", "-1", "1.M", "1..5", "5 mb/s", "1e3", "99999999999999999999G", "1.2345"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }
}
