//! `tacit replay`.

use std::process::ExitCode;

use tacit_runs::replay::replay;

use crate::args::ReplayArgs;
use crate::output::{FAILED, Failure, print, print_json};

pub fn run(args: &ReplayArgs) -> Result<ExitCode, Failure> {
    let replayed = replay(&args.result, args.row)?;
    if args.json {
        print_json(&replayed)?;
    } else {
        print(&replayed.to_text())?;
    }
    Ok(if replayed.same { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}
