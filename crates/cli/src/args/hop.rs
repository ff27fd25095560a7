//! Arguments of commands that change this machine's network while they run, and of the one that says whether they can.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use tacit_live::AckMode;

use crate::gate::GateArgs;

pub(super) const SHELL_AFTER_HELP: &str = "\
The command finds the other side's address in $TACIT_PEER and $TACIT_PEER6. With --server the other side
is a network of its own, and 198.18.0.1; without, it is the network this was started in, which takes root,
and where other hops may have taken that address.

  tacit shell -- iperf3 -c 198.18.0.1 -R --server -- iperf3 -s -1
  tacit shell --scheme hack-more-data --acks 2 --server -- iperf3 -s -1 -- iperf3 -c 198.18.0.1 -R
  tacit shell wlan-11a-54 -- bash

Exit codes: the command's own; 125 the hop could not be made or broke; 126 or 127 the command could not
be started; 2 bad input. A run that fell behind real time ends with the command's status, says so, and
gives no numbers. With --fail-if: 1 where the command ended with 0 and a condition holds, 122 where it
cannot be judged because the run was not valid.";

pub(super) const RRE_AFTER_HELP: &str = "\
TCP-RRE paces by what the receiver's timestamps say, instead of by ACKs as they arrive. It is loaded into
the kernel as eBPF, for the sockets named and no others, and is gone when the command ends, however it ends.

  tacit rre run -- nginx -g 'daemon off;'
  tacit rre attach --cgroup /sys/fs/cgroup/system.slice/nginx.service
  tacit rre status

Exit codes: of `run` the command's own, or 126 or 127 where it could not be started; 125 this machine
cannot, with the reason in one sentence; 2 bad input.";

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
    /// Do not fail when the server ends with an error before the command
    #[arg(long)]
    pub server_may_fail: bool,
    /// Write the server's standard output to this file [default: dropped]
    #[arg(long, value_name = "FILE")]
    pub server_log: Option<PathBuf>,
    /// Print JSON instead of text; the command's standard output then goes to standard error
    #[arg(long)]
    pub json: bool,
    /// Write what was on the air to this file: pcapng with radiotap, for Wireshark
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// No counters while the command runs, and no report after it but for a run that is not valid
    #[arg(short, long, conflicts_with = "json")]
    pub quiet: bool,
    /// End with 122 where the run is not valid, whatever the command's status is
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
