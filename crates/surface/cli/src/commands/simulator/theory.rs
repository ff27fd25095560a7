//! `tacit theory`.

use std::process::ExitCode;

use serde::Serialize;
use tacit_scenario::input::{argument, duration};
use tacit_theory::Hop;
use tacit_theory::hop::{bounds, parse, shared_bounds};

use crate::args::TheoryArgs;
use crate::output::{Failure, print_json, print_page};

pub fn run(args: &TheoryArgs) -> Result<ExitCode, Failure> {
    let limit =
        args.txop_limit.as_deref().map(|limit| argument("--txop-limit", limit, duration)).transpose()?;
    let hop = Hop { txop_limit: limit, ..parse(&args.hop.phy, &args.hop.rate)? };
    match args.users {
        Some(users) => {
            let bounds = shared_bounds(&hop, users)?;
            write(args, &bounds, || bounds.to_text())
        }
        None => {
            let bounds = bounds(&hop);
            write(args, &bounds, || bounds.to_text())
        }
    }
}

fn write(args: &TheoryArgs, bounds: &impl Serialize, text: impl Fn() -> String) -> Result<ExitCode, Failure> {
    if args.json {
        print_json(bounds)?;
    } else {
        print_page(&text())?;
    }
    Ok(ExitCode::SUCCESS)
}
