//! `tacit completions` and `tacit man`: both generate their output from the declaration of the arguments.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_mangen::Man;

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::output::{Failure, print, print_json};

pub fn completions(args: &CompletionsArgs) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tacit", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

pub fn man(args: &ManArgs) -> Result<ExitCode, Failure> {
    let mut command = Cli::command();
    // Sets the full names of nested commands.
    command.build();
    let Some(directory) = &args.dir else {
        print(&String::from_utf8_lossy(&page(&command)?))?;
        return Ok(ExitCode::SUCCESS);
    };
    std::fs::create_dir_all(directory).map_err(cannot_write(directory))?;
    let mut files = Vec::new();
    write_pages(&command, directory, &mut files)?;
    let names: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    if args.json {
        print_json(&names)?;
    } else {
        print(&format!("{}\n", names.join("\n")))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn page(command: &clap::Command) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    Man::new(command.clone()).render(&mut text)?;
    Ok(text)
}

/// Writes the page of `command` and those of its subcommands: `tacit-rohc-stats.1`.
fn write_pages(command: &clap::Command, directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let path = directory.join(format!("{name}.1"));
    let cannot = |error: std::io::Error| Failure::Machine(format!("{}: {error}", path.display()));
    std::fs::create_dir_all(directory)
        .and_then(|()| std::fs::write(&path, page(command)?))
        .map_err(cannot)?;
    files.push(path);
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        write_pages(below, directory, files)?;
    }
    Ok(())
}

fn cannot_write(path: &Path) -> impl FnOnce(std::io::Error) -> Failure {
    move |error| Failure::Machine(format!("{}: {error}", path.display()))
}
