//! `tacit explore`.

use std::fmt::Write as _;
use std::process::ExitCode;

use tacit_analysis::explore::{Options, WrittenPage, prepare};
use tacit_scenario::table::{count, number};

use crate::args::ExploreArgs;
use crate::output::{Failure, note, print, print_json};
use crate::progress::simulated;

pub fn run(args: ExploreArgs) -> Result<ExitCode, Failure> {
    let (scenario, assignments) =
        args.link.scenario(args.scenario.as_deref(), &args.assignments, args.clients)?;
    let exploration = prepare(&Options {
        scenario,
        assignments,
        against: args.against,
        schemes: args.schemes,
        clients: args.clients,
        seed: args.seed,
        quick: args.quick,
        from: args.from,
        length: args.length,
    })?;
    let length = Some(exploration.length());
    let written = simulated(length, |reached| exploration.write(&args.output, reached))?;
    for warning in &written.warnings {
        note(&format!("tacit: warning: {warning}"));
    }
    if args.json {
        print_json(&written)?;
    } else {
        print(&text(&written))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(written: &WrittenPage) -> String {
    let mut text = String::new();
    for scheme in &written.schemes {
        let goodput = number(scheme.goodput_bps / 1e6, 2);
        let frames = count(scheme.frames as u64, "frame");
        let (label, digest) = (scheme.label(), &scheme.digest);
        let _ = writeln!(text, "{label}: {frames}, {goodput} Mb/s, digest {digest}");
    }
    let size = number(written.bytes as f64 / 1e6, 2);
    let _ = writeln!(text, "written: {} ({size} MB); open it in a browser", written.path.display());
    text
}
