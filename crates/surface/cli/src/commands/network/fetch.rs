//! `tacit fetch`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use tacit_net::NetError;
use tacit_net::connection::Settings;
use tacit_net::fetch::{Options, fetch};
use tacit_net::target::Target;

use crate::args::FetchArgs;
use crate::output::{Failure, note, print, print_json};
use crate::progress;

/// In place of a file name: standard output.
const STDOUT: &str = "-";

pub fn run(args: FetchArgs) -> Result<ExitCode, Failure> {
    let target = Target::parse(&args.url)?;
    let destination = match args.output {
        Some(path) if path == Path::new(STDOUT) => None,
        Some(path) => Some(path),
        None => Some(PathBuf::from(
            target
                .file_name()
                .ok_or_else(|| NetError::Argument(format!("{} has no file name; add -o FILE", args.url)))?,
        )),
    };
    let mut settings =
        Settings { idle_timeout: Duration::from_secs(args.timeout.into()), ..Settings::for_files() };
    settings.head_timeout = settings.idle_timeout;
    settings.connect_timeout = settings.connect_timeout.min(settings.idle_timeout);
    settings.repair.parallel_max = args.parallel as usize;
    let to_stdout = destination.is_none();
    let options =
        Options { url: args.url, destination, restart: args.restart, sha256: args.sha256, settings };
    let report = progress::show_bytes(!args.quiet, |bar| {
        tacit_net::block_on(fetch(&options, &mut |bytes, whole| bar.draw(bytes, whole)))
    })?;
    match (args.json, args.quiet) {
        // Standard output carries the file.
        (true, _) if to_stdout => note(&serde_json::to_string(&report).map_err(std::io::Error::from)?),
        (true, _) => print_json(&report)?,
        (_, true) => (),
        _ if to_stdout => note(report.to_text().trim_end()),
        _ => print(&report.to_text())?,
    }
    Ok(ExitCode::SUCCESS)
}
