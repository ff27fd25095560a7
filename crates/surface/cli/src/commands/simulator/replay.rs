//! `tacit replay`.

use std::process::ExitCode;

use tacit_runs::replay::replay;

use crate::args::ReplayArgs;
use crate::output::{FAILED, Failure, print_json, print_page};

pub fn run(args: &ReplayArgs) -> Result<ExitCode, Failure> {
    let replayed = replay(&args.result, args.row)?;
    if args.json {
        print_json(&replayed)?;
    } else {
        print_page(&replayed.to_text())?;
    }
    Ok(if replayed.same { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}
