//! Arguments of commands that change this machine's network while they run, and of `doctor`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use tacit_hop::AckMode;

use crate::args::LinkArgs;
use crate::gate::GateArgs;

pub(super) const THIN_AFTER_HELP: &str = "\
Needs root, or CAP_NET_ADMIN and CAP_NET_RAW, with CAP_BPF, CAP_PERFMON and Linux 6.6 for the form in
the kernel. A client behind an uplink of some 10 to 200 kb/s gains: its ACKs wait as long as the
uplink is busy, and later ones replace them. On Wi-Fi it is not needed. Everything is as before when
it ends, or is killed.

  tacit thin wwan0
  tacit thin eth0 --uplink 100kbps
  tacit thin status

Exit codes: 0 a signal stopped it; 2 bad input, or a device that was removed; 125 not possible on
this machine, with the reason.";

pub(super) const SHELL_AFTER_HELP: &str = "\
The command finds the other side's address in $TACIT_PEER and $TACIT_PEER6. With --server, the other
side is a network of its own, with the address 198.18.0.1. Without, it is the current network: this
takes root, and another hop may have that address already.

  tacit shell -- iperf3 -c 198.18.0.1 -R --server -- iperf3 -s -1
  tacit shell --scheme hack-more-data --acks 2 --server -- iperf3 -s -1 -- iperf3 -c 198.18.0.1 -R
  tacit shell wlan-11a-54 -- bash

Exit codes: the command's own; 125 the hop could not be made or broke; 126 or 127 the command could
not be started; 2 bad input. A run that fell behind real time is not valid: it says so, gives no
numbers, and exits with the command's status. With --fail-if: 1 if the command ended with 0 and a
condition holds; 122 if it cannot be judged, because the run was not valid.";

pub(super) const RRE_AFTER_HELP: &str = "\
TCP-RRE paces by the receiver's timestamps instead of arriving ACKs. It is loaded into the kernel as
eBPF, for the given sockets only, and is gone when the command ends.

  tacit rre run -- nginx -g 'daemon off;'
  tacit rre attach --cgroup /sys/fs/cgroup/system.slice/nginx.service
  tacit rre status

Exit codes: of `run` the command's own, or 126 or 127 if it could not be started; 125 not possible
on this machine, with the reason; 2 bad input.";

/// Arguments of `shell`.
#[derive(Debug, Args)]
pub struct ShellArgs {
    /// A bundled scenario by name, or a TOML file by path; its first client is real [default: wlan-11n-150]
    pub scenario: Option<String>,
    #[command(flatten)]
    pub link: LinkArgs,
    /// Override a setting, such as wifi.rate=65Mbps; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub assignments: Vec<String>,
    /// Scheme of the hop, such as stock or hack-more-data [default: the scenario as written]
    #[arg(long, value_name = "NAME")]
    pub scheme: Option<String>,
    /// Number of simulated clients beside the real one
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub background: u32,
    /// Number of clients, the real one among them: one more than --background
    #[arg(long, value_name = "N", conflicts_with = "background", value_parser = clap::value_parser!(u32).range(1..))]
    pub clients: Option<u32>,
    /// Do not compare reconstituted ACKs with the originals; for tests
    #[arg(long, hide = true)]
    pub no_oracle: bool,
    /// ACKs of receivers: kernel (unchanged), packet (one per packet), or a number N (one per N packets)
    #[arg(long, value_name = "MODE", default_value_t = AckMode::Kernel)]
    pub acks: AckMode,
    /// Congestion control of both sides [default: the kernel's]
    #[arg(long, value_name = "NAME")]
    pub congestion: Option<String>,
    /// Seed of the random streams
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Run a second command on the other side: --server -- SERVER -- COMMAND, or -- COMMAND --server -- SERVER
    #[arg(long)]
    pub server: bool,
    /// Do not fail when the server ends with an error before the command
    #[arg(long)]
    pub server_may_fail: bool,
    /// Write the server's standard output to this file [default: discarded]
    #[arg(long, value_name = "FILE")]
    pub server_log: Option<PathBuf>,
    /// Print JSON instead of text; the command's standard output then goes to standard error
    #[arg(long)]
    pub json: bool,
    /// Capture the air to this file: pcapng with radiotap, for Wireshark
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// Print no counters during the run, and no report unless the run is not valid
    #[arg(short, long, conflicts_with = "json")]
    pub quiet: bool,
    /// Exit with 122 if the run is not valid, regardless of the command's status
    #[arg(long)]
    pub require_valid: bool,
    #[command(flatten)]
    pub gate: GateArgs,
    /// The command and its arguments [default: a shell]
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Arguments of `rre`.
#[derive(Debug, Args)]
pub struct RreArgs {
    /// The subcommand
    #[command(subcommand)]
    pub command: RreCommand,
}

/// Subcommands of `rre`.
#[derive(Debug, Subcommand)]
pub enum RreCommand {
    /// Run a command with TCP-RRE for its sockets and its children's; processes that it leaves behind are ended
    Run {
        /// Target buffer delay at rates up to 250 kb/s; it falls above [default: 80]
        #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u16).range(1..=5000))]
        target_ms: Option<u16>,
        /// The command and its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Use TCP-RRE for new sockets of a control group or network namespace, until stopped
    #[command(group = clap::ArgGroup::new("whose").required(true))]
    Attach {
        /// A cgroup2 directory: sockets of processes in it and below
        #[arg(long, value_name = "PATH", group = "whose")]
        cgroup: Option<PathBuf>,
        /// A network namespace: a name that ip netns lists, or a path such as /proc/PID/ns/net
        #[arg(long, value_name = "NAME", group = "whose")]
        netns: Option<String>,
        /// Target buffer delay at rates up to 250 kb/s; it falls above [default: 80]
        #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u16).range(1..=5000))]
        target_ms: Option<u16>,
    },
    /// Print sending rate, receive rate and queue of each flow that uses TCP-RRE
    Status {
        /// Print JSON instead of a table
        #[arg(long)]
        json: bool,
        /// Serve Prometheus metrics at this address, such as 127.0.0.1:9100, until stopped
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

/// Arguments of `thin`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    arg_required_else_help = true,
    subcommand_negates_reqs = true
)]
pub struct ThinArgs {
    /// Print what runs
    #[command(subcommand)]
    pub command: Option<ThinCommand>,
    /// The device of the uplink
    #[arg(required = true)]
    pub device: Option<String>,
    /// Rate of the uplink, if its queue is not this machine's but a modem's, such as 50kbps [default: learned]
    #[arg(long, value_name = "RATE")]
    pub uplink: Option<String>,
    /// Lead packets through this program even where the kernel could thin
    #[arg(long)]
    pub no_ebpf: bool,
    /// Change nothing: count for a minute what an uplink of that --uplink would drop at least
    #[arg(long, requires = "uplink")]
    pub dry_run: bool,
    /// Print the counters at the end as JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// Subcommands of `thin`.
#[derive(Debug, Subcommand)]
pub enum ThinCommand {
    /// Print the counters of each device that is thinned
    Status {
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
    },
}

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}
