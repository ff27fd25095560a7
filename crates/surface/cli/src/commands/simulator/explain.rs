//! `tacit explain`.

use std::process::ExitCode;

use tacit_scenario::explain::explain;

use crate::args::ExplainArgs;
use crate::output::{Failure, print, print_json, terminal_width};

pub fn run(args: &ExplainArgs) -> Result<ExitCode, Failure> {
    // A link is in place of the scenario: the first word is then a key like the others.
    let is_link = args.link.is_given();
    let named = args.scenario.as_deref().filter(|_| !is_link);
    let keys: Vec<String> = args.scenario.iter().filter(|_| is_link).chain(&args.keys).cloned().collect();
    let clients = args.clients.map(|clients| format!("clients.count={clients}"));
    let assignments: Vec<String> = clients.into_iter().chain(args.assignments.iter().cloned()).collect();
    let (scenario, assignments) = args.link.scenario(named, &assignments, args.clients)?;
    let explanation = explain(&scenario, &assignments, args.scheme.as_deref(), &keys)?;
    if args.json {
        print_json(&explanation)?;
    } else {
        print(&explanation.to_text(terminal_width()))?;
    }
    Ok(ExitCode::SUCCESS)
}
