//! `tacit scenarios`.

use std::process::ExitCode;
use std::sync::Arc;

use serde::Serialize;
use tacit_scenario::{Scenario, library, scheme};

use crate::args::ScenariosArgs;
use crate::output::{Failure, listing, print, print_json};

#[derive(Serialize)]
struct Listing {
    scenarios: Vec<Entry>,
    schemes: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    name: String,
    description: String,
}

/// One scenario in the form in which runs record it.
#[derive(Serialize)]
struct FullScenario {
    name: String,
    description: String,
    scenario_text: Arc<str>,
}

pub fn run(args: &ScenariosArgs) -> Result<ExitCode, Failure> {
    if let Some(name) = &args.scenario {
        let Scenario { name, description, text, .. } = Scenario::load(name, &[])?;
        if args.json {
            print_json(&FullScenario { name, description, scenario_text: text })?;
        } else {
            print(&text)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let describe = |name| {
        Scenario::load(name, &[])
            .map(|scenario| Entry { name: name.to_owned(), description: scenario.description })
    };
    let scenarios = library::names().map(describe).collect::<Result<Vec<_>, _>>()?;
    let schemes = scheme::ALL
        .iter()
        .map(|scheme| Entry { name: scheme.name.to_owned(), description: scheme.summary.to_owned() });
    let listing = Listing { scenarios, schemes: schemes.collect() };
    if args.json {
        print_json(&listing)?;
    } else {
        print(&format!("{}\n{}", list("scenario", &listing.scenarios), list("scheme", &listing.schemes)))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn list(what: &str, entries: &[Entry]) -> String {
    let width = entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    let lines = listing(entries.iter().map(|entry| (entry.name.as_str(), entry.description.clone())));
    format!("{what}\n{}\n{lines}", "─".repeat(width))
}
