//! One file per command, and what several share.

mod advise;
mod audit;
mod bench;
#[cfg(feature = "network")]
mod client;
#[cfg(feature = "network")]
mod clients;
mod compare;
mod completions;
#[cfg(feature = "network")]
mod config;
#[cfg(feature = "network")]
mod copy_summary;
#[cfg(feature = "network")]
mod cp;
mod doctor;
mod explain;
mod explore;
#[cfg(feature = "network")]
mod fetch;
mod figure;
#[cfg(feature = "network")]
mod http_proxy;
#[cfg(feature = "network")]
mod identity;
#[cfg(feature = "network")]
mod keys;
mod live;
#[cfg(feature = "network")]
mod ls;
#[cfg(feature = "network")]
mod pair;
#[cfg(feature = "network")]
mod proxy;
#[cfg(feature = "network")]
mod remote;
mod replay;
mod report;
mod rohc;
mod rre;
mod run;
mod scenarios;
#[cfg(feature = "network")]
mod seen;
#[cfg(feature = "network")]
mod serve;
mod shell;
#[cfg(feature = "network")]
mod signals;
#[cfg(feature = "network")]
mod streams;
mod sweep;
mod theory;
mod transfers;
mod why;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Cli, Command};
#[cfg(feature = "network")]
use crate::args::{FileArgs, ProxyArgs, ServeArgs};
use crate::output::Failure;

/// Does what the user asked for.
pub fn dispatch(command: Option<Command>) -> Result<ExitCode, Failure> {
    match command {
        // The main job, with the defaults its arguments declare.
        None => dispatch(Cli::parse_from(["tacit", "compare"]).command),
        Some(Command::Compare(args)) => compare::run(&args),
        Some(Command::Sweep(args)) => sweep::run(&args),
        Some(Command::Why(args)) => why::run(args),
        Some(Command::Advise(args)) => advise::run(&args),
        Some(Command::Audit(args)) => audit::run(&args),
        Some(Command::Rohc(args)) => rohc::run(args),
        Some(Command::Run(args)) => run::run(args),
        Some(Command::Shell(args)) => shell::run(args),
        Some(Command::Rre(args)) => rre::run(args.command),
        #[cfg(feature = "network")]
        Some(Command::Fetch(args)) => fetch::run(args),
        #[cfg(feature = "network")]
        Some(Command::HttpProxy(args)) => http_proxy::run(args),
        #[cfg(feature = "network")]
        Some(Command::Serve(ServeArgs { file: FileArgs { config: Some(path), .. }, .. }))
        | Some(Command::Proxy(ProxyArgs { file: FileArgs { config: Some(path), .. }, .. })) => {
            dispatch(config::merged(&path)?)
        }
        #[cfg(feature = "network")]
        Some(Command::Serve(args)) => serve::run(&args),
        #[cfg(feature = "network")]
        Some(Command::Cp(args)) => cp::run(&args),
        #[cfg(feature = "network")]
        Some(Command::Ls(args)) => ls::run(&args),
        #[cfg(feature = "network")]
        Some(Command::Proxy(args)) => proxy::run(&args),
        #[cfg(feature = "network")]
        Some(Command::Keys(args)) => keys::run(args.command),
        Some(Command::Doctor(args)) => doctor::run(&args),
        Some(Command::Report(args)) => report::run(&args),
        Some(Command::Figure(args)) => figure::run(args),
        Some(Command::Theory(args)) => theory::run(&args),
        Some(Command::Scenarios(args)) => scenarios::run(&args),
        Some(Command::Bench(args)) => bench::run(&args),
        Some(Command::Explore(args)) => explore::run(args),
        Some(Command::Explain(args)) => explain::run(&args),
        Some(Command::Replay(args)) => replay::run(&args),
        Some(Command::Completions(args)) => completions::completions(&args),
        Some(Command::Man(args)) => completions::man(&args),
    }
}
