//! `tacit why`.

use std::path::Path;
use std::process::ExitCode;

use tacit_papers::compare::Options;
use tacit_papers::why::{of_directory, of_scenario};

use crate::args::WhyArgs;
use crate::output::{Failure, print, print_json};
use crate::progress::{cache, watched};

pub fn run(args: WhyArgs) -> Result<ExitCode, Failure> {
    let directory = Path::new(&args.subject);
    let why = if directory.is_dir() {
        of_directory(directory, &args.schemes)?
    } else {
        let options = Options {
            scenario: args.subject,
            assignments: args.assignments,
            clients: args.clients,
            schemes: args.schemes,
            seeds: args.seeds,
            quick: args.quick,
            ..Options::default()
        };
        watched(cache(args.no_cache).as_ref(), |control| of_scenario(&options, control))?
    };
    if args.json {
        print_json(&why)?;
    } else {
        print(&why.to_text())?;
    }
    Ok(ExitCode::SUCCESS)
}
