//! Arguments of commands that speak HTTP and repair FWP's losses.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

pub(super) const FETCH_AFTER_HELP: &str = "\
Data goes to FILE.part until the file is complete. Another attempt at the same address resumes, if
the server's file and the part are unchanged. The file is checked against --sha256, or a digest
from the server. https is fetched without repair.

  tacit fetch http://198.18.0.1/video.mp4
  tacit shell --scheme fwp --server -- nginx -g 'daemon off;' -- tacit fetch http://198.18.0.1/a.mp4

Exit codes: 0 done; 1 another SHA-256; 2 bad input, or the file cannot be written; 3 the server has
no such file; 4 no connection, or it broke; 5 the file kept changing, or a hole could not be filled.";

pub(super) const PROXY_AFTER_HELP: &str = "\
For programs that read http_proxy. GET is repaired, other methods pass unchanged. CONNECT is
refused, because TLS cannot be repaired. By default it serves this machine's programs only and
connects to public addresses only.

  tacit http-proxy --allow-host 198.18.0.1 & http_proxy=http://127.0.0.1:3128 curl http://198.18.0.1/

Exit codes: 0 stopped by a signal; 2 bad input, or an address that cannot be listened on.";

/// Arguments of `fetch`.
#[derive(Debug, Args)]
pub struct FetchArgs {
    /// Address of the file: http[s]://HOST[:PORT]/PATH
    pub url: String,
    /// File to write; - is standard output [default: the last component of the address]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Use the last component of the address as file name (the default)
    #[arg(short = 'O', long, conflicts_with = "output")]
    pub remote_name: bool,
    /// Discard the part of an earlier attempt
    #[arg(long)]
    pub restart: bool,
    /// Keep the file only if it has this SHA-256
    #[arg(long, value_name = "HEX")]
    pub sha256: Option<String>,
    /// Give up after this long without data
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub timeout: u32,
    /// Number of repair connections
    #[arg(long, value_name = "N", default_value_t = PARALLEL, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub parallel: u32,
    /// Print statistics as JSON
    #[arg(long)]
    pub json: bool,
    /// Print errors only
    #[arg(short, long, conflicts_with = "json")]
    pub quiet: bool,
}

/// Default number of repair connections.
const PARALLEL: u32 = tacit_net::connection::PARALLEL_MAX as u32;

/// Arguments of `http-proxy`.
#[derive(Debug, Args)]
pub struct HttpProxyArgs {
    /// Address to listen on: loopback only, unless --open
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:3128")]
    pub listen: SocketAddr,
    /// Accept connections from other machines
    #[arg(long)]
    pub open: bool,
    /// Also connect to this host, by name or address, even if it is not public; repeatable
    #[arg(long = "allow-host", value_name = "HOST")]
    pub allow_hosts: Vec<String>,
    /// Also connect to this port, besides 80, 8000, 8008, 8080 and 8888, and 443 by CONNECT; repeatable
    #[arg(long = "allow-port", value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub allow_ports: Vec<u16>,
    /// Limit of requests in progress, and of tunnels; idle client connections do not count
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub connections: u32,
    /// Repair connections per body
    #[arg(long, value_name = "N", default_value_t = PARALLEL, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub parallel: u32,
    /// Print a JSON line per answer
    #[arg(long)]
    pub json: bool,
}
