//! `tacit doctor`.

#[cfg(feature = "network")]
mod udp;

use std::process::ExitCode;

use tacit_hop::doctor::examine;
use tacit_scenario::table::hanging;

use crate::args::DoctorArgs;
use crate::output::{FAILED, Failure, print, print_json, terminal_width};

pub fn run(args: &DoctorArgs) -> Result<ExitCode, Failure> {
    let mut diagnosis = examine();
    diagnosis.checks.extend(tacit_kernel::doctor());
    #[cfg(feature = "network")]
    diagnosis.checks.extend(udp::for_tack());
    if args.json {
        print_json(&diagnosis)?;
    } else {
        print(&diagnosis.to_text(|lead, words| hanging(lead, words, terminal_width())))?;
    }
    Ok(if diagnosis.live { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}
