//! Programs that serve and fetch: this one, and those in other languages, compiled or installed on demand.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum as _;

use super::roster::{Contender, Program};
use crate::Stack;
use crate::page::transports::version;

/// Where sources are, and where programs go.
#[derive(Clone, Debug)]
pub struct Workshop {
    /// `bench/peers`.
    pub sources: PathBuf,
    /// Programs that were compiled.
    pub built: PathBuf,
}

/// A program that is ready, and its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Before `serve` or `fetch`.
    pub words: Vec<String>,
    pub version: String,
}

impl Workshop {
    /// Makes a row's program ready; the error says why it is left out.
    pub fn ready(&self, contender: &Contender) -> Result<Ready> {
        match contender.program {
            Program::Own(stack) => ready_own(stack),
            Program::Go => self.go(),
            Program::Cargo { stack, needs } => self.cargo(stack, needs),
            Program::Python(stack) => self.python(stack),
        }
    }

    fn go(&self) -> Result<Ready> {
        let program = fs::canonicalize(&self.built)?.join("quic-go-peer");
        let words = ["build", "-o", text(&program)?, "."];
        done(Command::new("go").args(words).current_dir(self.sources.join("go")))?;
        with_version(vec![text(&program)?.to_owned()])
    }

    /// Each stack has a build directory of its own: two may not link their TLS libraries into one program.
    fn cargo(&self, stack: &str, needs: &str) -> Result<Ready> {
        let target = fs::canonicalize(&self.built)?.join(stack);
        let name = format!("{stack}-peer");
        let flags = ["build", "--release", "--quiet", "--locked", "--features", stack, "--bin", &name];
        let mut cargo = Command::new("cargo");
        cargo.args(flags).arg("--target-dir").arg(&target).current_dir(self.sources.join("rust"));
        if let Err(error) = done(&mut cargo) {
            bail!("its program does not compile, for which it needs {needs}: {}", cause(&error));
        }
        with_version(vec![text(&target.join("release").join(name))?.to_owned()])
    }

    fn python(&self, stack: &str) -> Result<Ready> {
        let environment = fs::canonicalize(&self.built)?.join(stack);
        let python = environment.join("bin/python");
        let sources = fs::canonicalize(self.sources.join("python"))?;
        if !python.exists() {
            done(Command::new(newest_python()).args(["-m", "venv", text(&environment)?]))?;
        }
        let requirements = sources.join(format!("{stack}.txt"));
        done(Command::new(&python).args(["-m", "pip", "install", "--quiet", "-r", text(&requirements)?]))?;
        with_version(vec![
            text(&python)?.to_owned(),
            text(&sources.join("peer.py"))?.to_owned(),
            stack.to_owned(),
        ])
    }
}

/// aiopquic needs 3.12.
fn newest_python() -> &'static str {
    let works = |name: &&str| done(Command::new(name).arg("--version")).is_ok();
    ["python3.14", "python3.13", "python3.12"].into_iter().find(works).unwrap_or("python3")
}

fn ready_own(stack: &str) -> Result<Ready> {
    if Stack::from_str(stack, false).is_err() {
        bail!("this tacit-peers was compiled without it: `--features {stack}`");
    }
    let program = std::env::current_exe()?;
    let package = match stack {
        "tcp" | "tack" => None,
        _ if stack.contains("quinn") => Some("quinn"),
        _ if stack.starts_with("noq") => Some("noq"),
        _ => Some("s2n-quic"),
    };
    let version = match package {
        Some(package) => version(package).to_owned(),
        None if stack == "tcp" => format!("Linux {}", release()?),
        None => tacit_runs::VERSION.to_owned(),
    };
    Ok(Ready { words: vec![text(&program)?.to_owned(), stack.to_owned()], version })
}

/// The kernel's.
fn release() -> Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned())
}

/// Asks a program for its version.
fn with_version(words: Vec<String>) -> Result<Ready> {
    let version = done(Command::new(&words[0]).args(&words[1..]).arg("version"))?;
    Ok(Ready { words, version: version.trim().trim_start_matches('v').to_owned() })
}

/// The first line of what cargo complains of; the rest is a build's log.
fn cause(error: &anyhow::Error) -> String {
    let text = error.to_string();
    let line = text.lines().find_map(|line| line.find("error: ").map(|at| line[at..].to_owned()));
    line.unwrap_or(text)
}

/// What a command printed; an error where it failed.
fn done(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("{name}: cannot be started"))?;
    if !output.status.success() {
        bail!("{name} ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{}: no UTF-8", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stacks::roster::ROSTER;

    #[test]
    fn a_stack_that_was_not_compiled_is_left_out_aloud() {
        let error = ready_own("lsquic").unwrap_err().to_string();
        assert_eq!(error, "this tacit-peers was compiled without it: `--features lsquic`");
    }

    #[test]
    fn versions_stand_beside_every_stack_of_this_program() {
        for contender in ROSTER {
            if let Program::Own(stack) = contender.program
                && let Ok(ready) = ready_own(stack)
            {
                assert!(ready.version.contains('.'), "{}: {}", contender.name, ready.version);
                assert_eq!(ready.words[1], stack);
            }
        }
    }

    #[test]
    fn a_stack_that_does_not_compile_says_what_it_needs_in_one_line() {
        let built = tempfile::tempdir().unwrap();
        let sources = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let workshop = Workshop { sources, built: built.path().to_owned() };
        let error = workshop.cargo("lsquic", "cmake and zlib1g-dev").unwrap_err().to_string();
        let expected = "its program does not compile, for which it needs cmake and zlib1g-dev: error: ";
        assert!(
            error.starts_with(expected) && error.contains("lsquic") && error.lines().count() == 1,
            "{error}"
        );
    }

    #[test]
    fn every_stack_of_the_registry_that_compiles_c_has_a_program_and_a_feature() {
        let manifest = include_str!("../../rust/Cargo.toml");
        for contender in ROSTER {
            if let Program::Cargo { stack, .. } = contender.program {
                let program = format!("name = \"{stack}-peer\"\nrequired-features = [\"{stack}\"]");
                assert!(manifest.contains(&program), "{}: {program}", contender.name);
            }
        }
    }

    #[test]
    fn a_compiler_that_is_not_there_is_named() {
        let error = done(&mut Command::new("no-such-compiler")).unwrap_err().to_string();
        assert_eq!(error, "no-such-compiler: cannot be started");
    }
}
