//! `tacit audit`.

use std::path::Path;
use std::process::ExitCode;

use tacit_captures::audit::{Report, audit_file, audit_live};
use tacit_scenario::input::parse_rtt;
use tacit_theory::hop;

use crate::args::AuditArgs;
use crate::output::{Failure, print_answer, print_json};
use crate::progress::counted_live;

pub fn run(args: &AuditArgs) -> Result<ExitCode, Failure> {
    let hop = hop::parse_optional(args.phy.as_deref(), args.rate.as_deref())?;
    let rtt = parse_rtt(&args.rtt)?;
    let audit = if args.capture == Path::new("-") {
        counted_live(|progress| audit_live(std::io::stdin().lock(), "standard input", progress))?
    } else {
        audit_file(&args.capture)?
    };
    let prediction = audit.predict(&hop.map_or_else(|| audit.hops(), |hop| vec![hop]), rtt);
    let report = Report { audit, prediction };
    if args.json {
        print_json(&report)?;
    } else {
        print_answer(&report.to_text(args.width.limit()))?;
    }
    Ok(ExitCode::SUCCESS)
}
