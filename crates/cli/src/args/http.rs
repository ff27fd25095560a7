//! Arguments of commands that speak HTTP and repair what FWP loses.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

pub(super) const FETCH_AFTER_HELP: &str = "\
What comes is kept in FILE.part until it is whole; another attempt at the same address goes on with it, if
the server says that it is still the same file. A part that changed since is begun anew. The whole is checked
against --sha256, or a digest that the server gives. https is fetched without repair.

  tacit fetch http://198.18.0.1/video.mp4
  tacit shell --scheme fwp --server -- nginx -g 'daemon off;' -- tacit fetch http://198.18.0.1/video.mp4

Exit codes: 0 done; 1 another SHA-256; 2 bad input, or a file that cannot be written; 3 the server has no such
file; 4 no connection, or none that lasts; 5 the file changed, or a hole could not be filled.";

pub(super) const PROXY_AFTER_HELP: &str = "\
For programs that read http_proxy. GET is repaired, other methods pass as they are; CONNECT is refused, for
what TLS protects cannot be repaired. Only this machine's programs reach it, and it reaches public servers.

  tacit http-proxy --allow-host 198.18.0.1 & http_proxy=http://127.0.0.1:3128 curl http://198.18.0.1/

Exit codes: 0 stopped by a signal; 2 bad input, or an address that cannot be listened at.";

/// Arguments of `fetch`.
#[derive(Debug, Args)]
pub struct FetchArgs {
    /// Address of the file: http://HOST[:PORT]/PATH, or with https
    pub url: String,
    /// Where to put it; - is standard output [default: its name in the address]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Put it where its name in the address says, which is so in any case
    #[arg(short = 'O', long, conflicts_with = "output")]
    pub remote_name: bool,
    /// Begin anew, whatever an earlier attempt left
    #[arg(long)]
    pub restart: bool,
    /// Keep the file only if it has this SHA-256
    #[arg(long, value_name = "HEX")]
    pub sha256: Option<String>,
    /// Give up when nothing came for so long
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub timeout: u32,
    /// Connections that ask for lost octets at once
    #[arg(long, value_name = "N", default_value_t = PARALLEL, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub parallel: u32,
    /// Print what it cost as JSON
    #[arg(long)]
    pub json: bool,
    /// Print nothing unless it fails
    #[arg(short, long, conflicts_with = "json")]
    pub quiet: bool,
}

/// Connections that ask for lost octets at once.
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
    /// Answers to programs at once; a connection that a program keeps idle is none
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub connections: u32,
    /// Connections that ask for lost octets at once, for each body
    #[arg(long, value_name = "N", default_value_t = PARALLEL, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub parallel: u32,
    /// Print a JSON line about each answer
    #[arg(long)]
    pub json: bool,
}
