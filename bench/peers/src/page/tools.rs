//! Other programs: asked, compiled, run.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde::de::DeserializeOwned;

/// Output of a program, where there is one and it ends well.
pub fn stdout_of(program: &str, words: &[&str]) -> Option<String> {
    let output =
        Command::new(program).args(words).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// The JSON that a command prints.
pub fn json<T: DeserializeOwned>(command: &mut Command) -> Result<T> {
    let output = command.stdin(Stdio::null()).output().with_context(|| shown(command))?;
    if !output.status.success() {
        bail!("{}: {}: {}", shown(command), output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    serde_json::from_slice(&output.stdout).with_context(|| shown(command))
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// The program `tacit` beside this one.
pub fn tacit() -> Result<Command> {
    Ok(Command::new(std::env::current_exe()?.with_file_name("tacit")))
}

/// Compiles `source` with the flags from pkg-config for `modules`.
pub fn compile(compiler: &[&str], source: &Path, modules: &[&str], program: &Path) -> Result<PathBuf> {
    let words = ["--cflags", "--libs"].iter().chain(modules).copied().collect::<Vec<_>>();
    let flags = stdout_of("pkg-config", &words).with_context(|| format!("pkg-config {}", words.join(" ")))?;
    let mut command = Command::new(compiler[0]);
    command.args(&compiler[1..]).arg("-o").arg(program).arg(source).args(own_flags(&flags));
    let output = command.stdin(Stdio::null()).output().with_context(|| shown(&command))?;
    if !output.status.success() {
        bail!("{}: {}", shown(&command), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(program.to_owned())
}

/// Where headers and libraries are. Paths of the libraries that a library was linked with itself are left out: Debian's
/// ns-3 names some that only its own packages for building bring.
fn own_flags(flags: &str) -> Vec<&str> {
    let wanted = |word: &&str| ["-I", "-D", "-L", "-l"].iter().any(|kind| word.starts_with(kind));
    flags.split_whitespace().filter(wanted).map(|word| word.trim_end_matches("\\;")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_places_and_names_are_taken_from_pkg_config() {
        let flags = r"-I/usr\; -I/usr/include/libxml2 -lns3-wifi /usr/lib/libgsl.so -pthread";
        assert_eq!(own_flags(flags), ["-I/usr", "-I/usr/include/libxml2", "-lns3-wifi"]);
    }

    #[test]
    fn a_program_that_is_not_there_says_nothing() {
        assert_eq!(stdout_of("no-such-program", &[]), None);
        assert_eq!(stdout_of("false", &[]), None);
        assert_eq!(stdout_of("echo", &["two", "words"]).as_deref(), Some("two words"));
    }
}
