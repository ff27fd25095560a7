//! `tacit theory`.

use std::process::ExitCode;

use tacit_lab::LabError;
use tacit_lab::hop::{bounds, parse};

use crate::args::TheoryArgs;
use crate::output::{Failure, print, print_json};

pub fn run(args: &TheoryArgs) -> Result<ExitCode, Failure> {
    let bounds = bounds(&parse(&args.hop.phy, &args.hop.rate).map_err(LabError::from)?);
    if args.json {
        print_json(&bounds)?;
    } else {
        print(&bounds.to_text())?;
    }
    Ok(ExitCode::SUCCESS)
}
