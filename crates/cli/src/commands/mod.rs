//! One file per command.

mod advise;
mod audit;
mod bench;
mod compare;
mod completions;
mod config;
mod cp;
mod doctor;
mod explain;
mod fetch;
mod figure;
mod http_proxy;
mod keys;
mod live;
mod proxy;
mod replay;
mod report;
mod rohc;
mod rre;
mod run;
mod scenarios;
mod seen;
mod serve;
mod shell;
mod theory;
mod transfers;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Cli, Command, FileArgs, ProxyArgs, ServeArgs};
use crate::output::Failure;

/// Does what the user asked for.
pub fn dispatch(command: Option<Command>) -> Result<ExitCode, Failure> {
    match command {
        // The main job, with the defaults its arguments declare.
        None => dispatch(Cli::parse_from(["tacit", "compare"]).command),
        Some(Command::Compare(args)) => compare::run(&args),
        Some(Command::Advise(args)) => advise::run(&args),
        Some(Command::Audit(args)) => audit::run(&args),
        Some(Command::Rohc(args)) => rohc::run(args),
        Some(Command::Run(args)) => run::run(args),
        Some(Command::Shell(args)) => shell::run(args),
        Some(Command::Rre(args)) => rre::run(args.command),
        Some(Command::Fetch(args)) => fetch::run(args),
        Some(Command::HttpProxy(args)) => http_proxy::run(args),
        Some(Command::Serve(ServeArgs { file: FileArgs { config: Some(path), .. }, .. }))
        | Some(Command::Proxy(ProxyArgs { file: FileArgs { config: Some(path), .. }, .. })) => {
            dispatch(config::merged(&path)?)
        }
        Some(Command::Serve(args)) => serve::run(&args),
        Some(Command::Cp(args)) => cp::run(&args),
        Some(Command::Proxy(args)) => proxy::run(&args),
        Some(Command::Keys(args)) => keys::run(args.command),
        Some(Command::Doctor(args)) => doctor::run(&args),
        Some(Command::Report(args)) => report::run(&args),
        Some(Command::Figure(args)) => figure::run(args),
        Some(Command::Theory(args)) => theory::run(&args),
        Some(Command::Scenarios(args)) => scenarios::run(&args),
        Some(Command::Bench(args)) => bench::run(&args),
        Some(Command::Explain(args)) => explain::run(&args),
        Some(Command::Replay(args)) => replay::run(&args),
        Some(Command::Completions(args)) => completions::completions(&args),
        Some(Command::Man(args)) => completions::man(&args),
    }
}
