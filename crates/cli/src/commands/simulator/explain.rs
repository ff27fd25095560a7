//! `tacit explain`.

use std::process::ExitCode;

use tacit_scenario::explain::explain;

use crate::args::ExplainArgs;
use crate::output::{Failure, print, print_json, terminal_width};

pub fn run(args: &ExplainArgs) -> Result<ExitCode, Failure> {
    let explanation = explain(&args.scenario, &args.assignments, args.scheme.as_deref(), &args.keys)?;
    if args.json {
        print_json(&explanation)?;
    } else {
        print(&explanation.to_text(terminal_width()))?;
    }
    Ok(ExitCode::SUCCESS)
}
