//! `tacit audit`.

use std::process::ExitCode;

use tacit_captures::audit::{Report, audit_file};
use tacit_theory::hop::{parse, parse_rtt};

use crate::args::AuditArgs;
use crate::output::{Failure, print, print_json};

pub fn run(args: &AuditArgs) -> Result<ExitCode, Failure> {
    let hop = parse(&args.hop.phy, &args.hop.rate)?;
    let rtt = parse_rtt(&args.rtt)?;
    let audit = audit_file(&args.capture)?;
    let prediction = Some(audit.predict(&hop, rtt));
    let report = Report { audit, prediction };
    if args.json {
        print_json(&report)?;
    } else {
        print(&report.to_text())?;
    }
    Ok(ExitCode::SUCCESS)
}
