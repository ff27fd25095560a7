//! `tacit rre`.

use std::process::ExitCode;
use std::time::Duration;

use tacit_kernel::run::{Scope, attach};
use tacit_kernel::{cgroup, read_flows, serve, to_text};

use crate::args::RreCommand;
use crate::output::{Failure, note, print, print_json};

fn milliseconds(count: u16) -> Duration {
    Duration::from_millis(count.into())
}

pub fn run(command: RreCommand) -> Result<ExitCode, Failure> {
    match command {
        RreCommand::Run { target_ms, command } => {
            let ended = tacit_kernel::run::run(&command, target_ms.map(milliseconds))?;
            if ended.refused_sockets > 0 {
                note(&format!("tacit: the kernel let {} sockets not use TCP-RRE", ended.refused_sockets));
            }
            return Ok(ExitCode::from(ended.status));
        }
        RreCommand::Attach { cgroup: Some(path), target_ms, .. } => {
            attach(Scope::Cgroup(&path), target_ms.map(milliseconds), |control| {
                note(&format!(
                    "tacit: new sockets of {} use {control}, until this is stopped",
                    path.display()
                ));
            })?;
        }
        RreCommand::Attach { netns, target_ms, .. } => {
            // Clap ensures that there is either a group or a namespace.
            let name = netns.unwrap_or_default();
            attach(Scope::Namespace(&name), target_ms.map(milliseconds), |control| {
                note(&format!("tacit: new sockets of namespace {name} use {control}, until this is stopped"));
            })?;
        }
        RreCommand::Status { metrics: Some(address), .. } => {
            serve(&address, |address| note(&format!("tacit: metrics at http://{address}/metrics")))?;
        }
        RreCommand::Status { json: true, .. } => print_json(&read_flows()?)?,
        RreCommand::Status { .. } => print(&to_text(&read_flows()?))?,
        RreCommand::Watch { path } => cgroup::watch(&path)?,
    }
    Ok(ExitCode::SUCCESS)
}
