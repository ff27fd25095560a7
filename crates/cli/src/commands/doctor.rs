//! `tacit doctor`.

use std::process::ExitCode;

use tacit_live::doctor::{Check, examine};

use crate::args::DoctorArgs;
use crate::output::{FAILED, Failure, print, print_json};

pub fn run(args: &DoctorArgs) -> Result<ExitCode, Failure> {
    let mut diagnosis = examine();
    diagnosis.checks.push(tacit_kernel::doctor());
    diagnosis.checks.push(tack());
    if args.json {
        print_json(&diagnosis)?;
    } else {
        print(&diagnosis.to_text())?;
    }
    Ok(if diagnosis.live { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// What UDP does here for TACK.
fn tack() -> Check {
    let machine = tacit_tack::machine();
    let works = machine.is_ok();
    let found = machine.map_or_else(
        |error| error.to_string(),
        |machine| {
            let most = |octets: usize| format!("{:.1} MB", octets as f64 / 1e6);
            format!(
                "GSO {}, GRO {}, ECN {}, buffers {} out and {} in (net.core.wmem_max, rmem_max)",
                machine.send_segments,
                machine.receive_segments,
                if machine.ecn { "yes" } else { "no" },
                most(machine.send_buffer),
                most(machine.receive_buffer),
            )
        },
    );
    Check { name: "udp", works, found, needed_for: "TACK", required: false }
}
