//! Commands about simulated runs, live hops, captures and figures.

mod advise;
mod audit;
mod bench;
mod compare;
mod doctor;
mod explain;
mod explore;
mod figure;
mod replay;
mod report;
mod rohc;
mod rre;
mod run;
mod scenarios;
mod shell;
mod sweep;
mod theory;
mod thin;
mod transfers;
mod why;

use std::process::ExitCode;

use crate::args::SimulatorCommand;
use crate::output::Failure;

pub fn dispatch(command: SimulatorCommand) -> Result<ExitCode, Failure> {
    match command {
        SimulatorCommand::Compare(args) => compare::run(&args),
        SimulatorCommand::Sweep(args) => sweep::run(&args),
        SimulatorCommand::Why(args) => why::run(args),
        SimulatorCommand::Advise(args) => advise::run(&args),
        SimulatorCommand::Audit(args) => audit::run(&args),
        SimulatorCommand::Rohc(args) => rohc::run(args),
        SimulatorCommand::Run(args) => run::run(args),
        SimulatorCommand::Explore(args) => explore::run(args),
        SimulatorCommand::Explain(args) => explain::run(&args),
        SimulatorCommand::Replay(args) => replay::run(&args),
        SimulatorCommand::Shell(args) => shell::run(args),
        SimulatorCommand::Rre(args) => rre::run(args.command),
        SimulatorCommand::Thin(args) => thin::run(args),
        SimulatorCommand::Doctor(args) => doctor::run(&args),
        SimulatorCommand::Report(args) => report::run(&args),
        SimulatorCommand::Figure(args) => figure::run(args),
        SimulatorCommand::Theory(args) => theory::run(&args),
        SimulatorCommand::Scenarios(args) => scenarios::run(&args),
        SimulatorCommand::Bench(args) => bench::run(&args),
    }
}
