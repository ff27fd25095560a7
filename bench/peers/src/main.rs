//! One program that moves data over several transports, so that they are compared under the same words:
//! `tacit-peers STACK send|receive ADDRESS`, or requests (`answer`, `ask`), or objects (`serve`, `fetch`), or connections that
//! rest (`hold`, `rest`). Beside that it drives them all (`compare`, and `stacks` over airtime), and writes the page of numbers
//! beside other programs (`page`).
//!
//! Each end writes a line of JSON when it has ended. Stacks have one thread and, without `--windows own`, windows of 64 MiB
//! and the sockets' buffers of TACK; they are otherwise as their authors left them.

mod certificate;
mod compare;
mod fetch;
mod hop;
#[cfg(feature = "noq")]
mod noq_stack;
mod page;
mod quinn_family;
mod quinn_stack;
#[cfg(feature = "s2n")]
mod s2n_stack;
mod stack;
mod stacks;
mod tack_stack;
mod tcp_stack;
mod wire;
mod work;

use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::quinn_stack::Flavour;
use crate::stack::{Congestion, Settings, Windows};
use crate::work::{Job, client, server};

/// The task.
#[derive(Debug, Parser)]
#[command(
    about = "Bulk transfers and requests over TACK, QUIC and TCP, for comparisons",
    args_conflicts_with_subcommands = true
)]
struct Cli {
    #[command(subcommand)]
    all: Option<All>,
    #[command(flatten)]
    one: Option<One>,
}

/// Tasks that concern all stacks.
#[derive(Debug, Subcommand)]
enum All {
    /// Print a table of all stacks on this machine
    Compare(compare::Arguments),
    /// Measure QUIC stacks, TCP and TACK through live hops, and write a page of it
    Stacks(stacks::Arguments),
    /// Measure a client and a server of your own through live hops
    Stack(stacks::OwnArguments),
    /// Run a program several times, and print the times that it took
    #[command(hide = true)]
    Repeat(stacks::RepeatArguments),
    /// Measure beside ns-3, librohc, TCP and QUIC, and write a page of it
    Page(page::Arguments),
    /// Simulate once, and print the time that it took
    #[command(hide = true)]
    Simulate(page::SimulateArguments),
}

/// One end of a job.
#[derive(Debug, Args)]
struct One {
    stack: Stack,
    job: Job,
    /// Where to listen, or whom to connect to
    address: SocketAddr,
    /// End after this time [default: when the data does]
    #[arg(long)]
    seconds: Option<u64>,
    /// Number of bytes to send, or of each object to fetch [default: until the receiver has had enough]
    #[arg(long)]
    bytes: Option<u64>,
    /// Of the sender; TCP's is that of its route
    #[arg(long, default_value = "default")]
    congestion: Congestion,
    #[arg(long, default_value = "large")]
    windows: Windows,
    /// Requests to make one after the other
    #[arg(long, default_value_t = 2_000)]
    requests: u32,
    /// Connections to hold, or to send on, at once
    #[arg(long, default_value_t = 1)]
    connections: usize,
    /// Objects to fetch over a connection: the first, then all others at once
    #[arg(long, default_value_t = 1)]
    objects: u32,
    /// Connections to fetch over, one after the other
    #[arg(long, default_value_t = 1)]
    times: u32,
}

/// Transport of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Stack {
    /// TACK, of this project
    Tack,
    /// QUIC by quinn, unchanged
    Quinn,
    /// quinn that asks for an ACK per 11 packets or round trip (draft-ietf-quic-ack-frequency)
    QuinnAckFrequency,
    /// quinn with the controller of `tacit-quinn`, which asks for nothing
    TacitQuinn,
    /// quinn with that controller, and TACK's ACK law of a path that is known
    TacitQuinnKnownPath,
    /// QUIC by noq, unchanged
    #[cfg(feature = "noq")]
    Noq,
    /// noq that asks for an ACK per 11 packets or round trip
    #[cfg(feature = "noq")]
    NoqAckFrequency,
    /// QUIC by s2n-quic
    #[cfg(feature = "s2n")]
    S2n,
    /// The kernel's TCP, without encryption
    Tcp,
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    match &cli.all {
        Some(All::Compare(arguments)) => return compare::run(arguments),
        Some(All::Stacks(arguments)) => return stacks::run(arguments),
        Some(All::Stack(arguments)) => return stacks::run_own(arguments),
        Some(All::Repeat(arguments)) => return stacks::repeat(arguments),
        Some(All::Page(arguments)) => return page::run(arguments),
        Some(All::Simulate(arguments)) => return page::simulate(arguments),
        None => {}
    }
    let one = cli.one.context("STACK, JOB and ADDRESS are needed; --help says more")?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(run(one))
}

async fn run(arguments: One) -> Result<()> {
    let settings = Settings {
        congestion: arguments.congestion,
        windows: arguments.windows,
        seconds: arguments.seconds,
        bytes: arguments.bytes,
        requests: arguments.requests,
        connections: arguments.connections,
        objects: arguments.objects,
        times: arguments.times,
    };
    let (address, job) = (arguments.address, arguments.job);
    if job.serves() {
        let quinn = |flavour| quinn_stack::listen(address, &settings, flavour);
        #[cfg(feature = "noq")]
        let noq = |flavour| noq_stack::listen(address, &settings, flavour);
        match arguments.stack {
            Stack::Tack => server(job, tack_stack::listen(address, &settings)?, &settings).await,
            Stack::Quinn => server(job, quinn(Flavour::Plain)?, &settings).await,
            Stack::QuinnAckFrequency => server(job, quinn(Flavour::AckFrequency)?, &settings).await,
            Stack::TacitQuinn => server(job, quinn(Flavour::Tacit)?, &settings).await,
            Stack::TacitQuinnKnownPath => server(job, quinn(Flavour::TacitKnownPath)?, &settings).await,
            #[cfg(feature = "noq")]
            Stack::Noq => server(job, noq(noq_stack::Flavour::Plain)?, &settings).await,
            #[cfg(feature = "noq")]
            Stack::NoqAckFrequency => server(job, noq(noq_stack::Flavour::AckFrequency)?, &settings).await,
            #[cfg(feature = "s2n")]
            Stack::S2n => server(job, s2n_stack::listen(address, &settings)?, &settings).await,
            Stack::Tcp => server(job, tcp_stack::listen(address).await?, &settings).await,
        }
    } else {
        let quinn = |flavour| quinn_stack::dial(address, &settings, flavour);
        #[cfg(feature = "noq")]
        let noq = |flavour| noq_stack::dial(address, &settings, flavour);
        match arguments.stack {
            Stack::Tack => client(job, tack_stack::dial(address, &settings).await?, &settings).await,
            Stack::Quinn => client(job, quinn(Flavour::Plain)?, &settings).await,
            Stack::QuinnAckFrequency => client(job, quinn(Flavour::AckFrequency)?, &settings).await,
            Stack::TacitQuinn => client(job, quinn(Flavour::Tacit)?, &settings).await,
            Stack::TacitQuinnKnownPath => client(job, quinn(Flavour::TacitKnownPath)?, &settings).await,
            #[cfg(feature = "noq")]
            Stack::Noq => client(job, noq(noq_stack::Flavour::Plain)?, &settings).await,
            #[cfg(feature = "noq")]
            Stack::NoqAckFrequency => client(job, noq(noq_stack::Flavour::AckFrequency)?, &settings).await,
            #[cfg(feature = "s2n")]
            Stack::S2n => client(job, s2n_stack::dial(address, &settings)?, &settings).await,
            Stack::Tcp => client(job, tcp_stack::dial(address), &settings).await,
        }
    }
}
