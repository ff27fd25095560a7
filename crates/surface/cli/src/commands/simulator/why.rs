//! `tacit why`.

use std::path::Path;
use std::process::ExitCode;

use tacit_analysis::compare::Options;
use tacit_analysis::why::{Scope, explain_directory, explain_scenario};
use tacit_scenario::InputError;

use crate::args::WhyArgs;
use crate::output::{Failure, print_answer, print_json};
use crate::progress::{cache, watched};

pub fn run(args: WhyArgs) -> Result<ExitCode, Failure> {
    let directory = args.subject.as_deref().map(Path::new).filter(|path| path.is_dir());
    let scope = if args.station { Scope::FirstStation } else { Scope::Bottleneck };
    let why = if let Some(directory) = directory {
        if args.link.is_given()
            || args.quick
            || args.seeds.is_some()
            || !args.clients.is_empty()
            || !args.assignments.is_empty()
        {
            let what = format!(
                "{} is a results directory, which takes --schemes and --station only",
                directory.display()
            );
            let allowed = "a scenario with --clients, --seeds, --set and --quick; results with --schemes and --station alone";
            return Err(InputError::new("tacit why", what).allowed(allowed).into());
        }
        explain_directory(directory, &args.schemes, scope)?
    } else {
        let most = args.clients.iter().copied().max();
        let (scenario, assignments) = args.link.scenario(args.subject.as_deref(), &args.assignments, most)?;
        let options = Options {
            scenario,
            assignments,
            clients: args.clients,
            schemes: args.schemes,
            seeds: args.seeds,
            quick: args.quick,
            ..Options::default()
        };
        watched(cache(args.no_cache).as_ref(), |control| explain_scenario(&options, scope, control))?
    };
    if args.json {
        print_json(&why)?;
    } else {
        print_answer(&why.to_text(args.width.limit()))?;
    }
    Ok(ExitCode::SUCCESS)
}
