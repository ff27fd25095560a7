//! `tacit theory`.

use std::process::ExitCode;

use tacit_theory::hop::{bounds, parse};

use crate::args::TheoryArgs;
use crate::output::{Failure, print, print_json};

pub fn run(args: &TheoryArgs) -> Result<ExitCode, Failure> {
    let bounds = bounds(&parse(&args.hop.phy, &args.hop.rate)?);
    if args.json {
        print_json(&bounds)?;
    } else {
        print(&bounds.to_text())?;
    }
    Ok(ExitCode::SUCCESS)
}
