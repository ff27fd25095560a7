//! `tacit sweep`.

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use tacit_analysis::plot::Plot;
use tacit_analysis::report::{PlotFormat, Sweep};
use tacit_runs::batches::{Batches, Directory, Format, grid};
use tacit_scenario::InputError;

use crate::args::{PlotArgs, SweepArgs, SweepFormat};
use crate::output::{Failure, note, print, print_json};
use crate::progress::{cache, watched};

/// Default file of a plot.
const DEFAULT_PLOT: &str = "tacit-plot.svg";
/// Maximum number of warnings that are printed. A grid may cause one per place.
const WARNINGS_SHOWN: usize = 5;

pub fn run(args: &SweepArgs) -> Result<ExitCode, Failure> {
    let SweepArgs { schemes, clients, seeds, .. } = args;
    let (scenario, assignments) =
        args.link.scenario(args.scenario.as_deref(), &args.assignments, clients.iter().copied().max())?;
    // Also checked before delegating to workers, so that this program reports invalid values.
    let sweep = Batches::new(&scenario, &assignments, &grid(&args.sweeps)?, schemes, clients, *seeds)?;
    let warnings = sweep.warnings()?;
    for warning in warnings.iter().take(WARNINGS_SHOWN) {
        note(&format!("tacit: warning: {warning}"));
    }
    if warnings.len() > WARNINGS_SHOWN {
        note(&format!("tacit: warning: {} more of this kind", warnings.len() - WARNINGS_SHOWN));
    }
    let format = match args.format {
        SweepFormat::Parquet => Format::Parquet,
        SweepFormat::Csv => Format::Csv,
    };
    let plot = args.plot.plot.as_ref();
    let plot = plot.map(|words| Plot::parse(words, &sweep.assignments(), sweep.clients())).transpose()?;
    let files = plot_files(&args.plot)?;
    if let Some(address) = &args.dask {
        if plot.is_some() {
            let what = "workers of Dask return files, of which nothing is drawn";
            return Err(InputError::new("--plot", what).allowed("--dask without --plot").into());
        }
        if format != Format::Parquet {
            let what = format!("workers of Dask give no {} files", format.extension());
            return Err(InputError::new("--format", what).allowed("parquet with --dask").into());
        }
        return elsewhere(args, address, &scenario, &assignments);
    }
    let directory = Directory::open(&args.out, sweep)?.with_format(format);
    let mut values = plot.map(Plot::collected);
    let swept = watched(cache(args.no_cache).as_ref(), |control| match &mut values {
        None => directory.complete(control),
        Some(values) => directory.complete_and_read(control, Some(&mut |at, runs| values.add(at, runs))),
    })?;
    if let Some(values) = values {
        save(&values.sweep(directory.sweep().scenario_name())?, &files)?;
    }
    if args.json {
        print_json(&swept)?;
        return Ok(ExitCode::SUCCESS);
    }
    print(&format!("{} runs in {} files, {} of them reused\n", swept.runs, swept.files, swept.reused))?;
    note(&format!("results: {}/**/*.{}", directory.runs().display(), format.extension()));
    Ok(ExitCode::SUCCESS)
}

/// The files of a plot, whose formats are known.
pub fn plot_files(args: &PlotArgs) -> Result<Vec<PathBuf>, InputError> {
    let files = if args.output.is_empty() { vec![DEFAULT_PLOT.into()] } else { args.output.clone() };
    files.iter().try_for_each(|file| PlotFormat::from_path(file).map(drop))?;
    Ok(files)
}

/// Writes a plot to `files`, and names them.
pub fn save(plot: &Sweep, files: &[PathBuf]) -> Result<(), Failure> {
    for file in files {
        plot.save(file)?;
        note(&format!("plot: {}", file.display()));
    }
    Ok(())
}

/// Replaces this process by the Python program that uses Dask, with the arguments of this call.
fn elsewhere(
    args: &SweepArgs,
    address: &str,
    scenario: &str,
    assignments: &[String],
) -> Result<ExitCode, Failure> {
    let python = python();
    let has_it = Command::new(&python)
        .args(["-c", "import tacit.dask"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !has_it {
        let what = format!("{} lacks the package tacit with Dask", python.display());
        return Err(InputError::new("--dask", what)
            .allowed("a Python with pip install 'tacit[dask]'; TACIT_PYTHON names another one")
            .into());
    }
    let mut command = Command::new(&python);
    command.args(["-m", "tacit.dask", address, scenario]);
    let lists = [("--sweep", args.sweeps.as_slice()), ("--set", assignments)];
    for (name, values) in lists {
        for value in values {
            command.args([name, value]);
        }
    }
    if !args.schemes.is_empty() {
        command.args(["--schemes", &args.schemes.join(",")]);
    }
    if !args.clients.is_empty() {
        let clients: Vec<String> = args.clients.iter().map(u32::to_string).collect();
        command.args(["--clients", &clients.join(",")]);
    }
    if let Some(seeds) = args.seeds {
        command.args(["--seeds", &seeds.to_string()]);
    }
    command.arg("--out").arg(&args.out);
    if args.json {
        command.arg("--json");
    }
    let error = command.exec();
    Err(InputError::new("--dask", format!("{}: {error}", python.display())).into())
}

/// The Python interpreter: the one in `TACIT_PYTHON`, otherwise the one next to this program, as in a wheel's
/// environment, otherwise the one in the search path.
fn python() -> PathBuf {
    let named = std::env::var_os("TACIT_PYTHON").map(PathBuf::from);
    let beside = || {
        let program = std::env::current_exe().ok()?;
        Some(program.parent()?.join("python3")).filter(|path| path.is_file())
    };
    named.or_else(beside).unwrap_or_else(|| "python3".into())
}
