//! `tacit theory`.

use std::process::ExitCode;

use serde::Serialize;
use tacit_scenario::InputError;
use tacit_scenario::input::{argument, duration};
use tacit_theory::Hop;
use tacit_theory::hop::{bounds, parse, shared_bounds};
use tacit_theory::link_bounds;

use crate::args::TheoryArgs;
use crate::output::{Failure, print_json, print_page};

pub fn run(args: &TheoryArgs) -> Result<ExitCode, Failure> {
    let limit =
        args.txop_limit.as_deref().map(|limit| argument("--txop-limit", limit, duration)).transpose()?;
    let hop = |rate: &str| -> Result<Hop, Failure> {
        let hop = Hop { txop_limit: limit, ..parse(&args.hop.phy, rate)? };
        let most = hop.block_ack_window;
        let window = args.window.unwrap_or(most);
        if !(1..=most).contains(&window) {
            let what = format!("{} has no window of {window}", hop.phy.standard.name());
            return Err(InputError::new("--window", what).allowed(format!("1 to {most}")).into());
        }
        Ok(Hop { block_ack_window: window, ..hop })
    };
    if !args.links.is_empty() {
        let links: Vec<Hop> = std::iter::once(&args.hop.rate)
            .chain(&args.links)
            .map(|rate| hop(rate))
            .collect::<Result<_, _>>()?;
        let bounds = link_bounds(&links)?;
        return write(args, &bounds, || bounds.to_text());
    }
    let hop = hop(&args.hop.rate)?;
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
