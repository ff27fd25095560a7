//! Files with arguments. Each long flag of a command is a key of the same name, and so is each positional argument. The
//! command line takes precedence.

use std::ffi::OsString;
use std::path::Path;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, CommandFactory as _, Parser as _};
use tacit_input::{InputError, Node, Tree, Value, did_you_mean};

use crate::args::{Cli, Command};
use crate::output::{Failure, usage_error};

/// Arguments that are not allowed in a file.
const NO_KEYS: [&str; 4] = ["config", "check", "help", "version"];

/// Maximum size of a file in bytes (our choice).
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The command that results from the arguments of this program and the file at `path`.
pub fn merged(path: &Path) -> Result<Option<Command>, Failure> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let source = path.display().to_string();
    let text = read(path).map_err(|error| InputError::new(&source, error.to_string()))?;
    Ok(Cli::try_parse_from(with_file(&source, &text, &words)?)
        .map_err(|error| wrong(&source, &error))?
        .command)
}

fn read(path: &Path) -> std::io::Result<String> {
    use std::io::Read as _;
    let mut text = String::new();
    std::fs::File::open(path)?.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

fn wrong(source: &str, error: &clap::Error) -> InputError {
    InputError::new(source, usage_error(error.kind(), &error.to_string()))
}

/// `words` without `--config`, plus the values from the file for arguments that `words` lacks.
fn with_file(source: &str, text: &str, words: &[OsString]) -> Result<Vec<OsString>, InputError> {
    let mut cli = Cli::command();
    cli.build();
    let matches = cli.clone().try_get_matches_from(words).map_err(|error| wrong(source, &error))?;
    let Some((name, given)) = matches.subcommand() else { return Ok(words.to_vec()) };
    let Some(command) = cli.find_subcommand(name) else { return Ok(words.to_vec()) };
    let keys: Vec<&Arg> = command.get_arguments().filter(|arg| !NO_KEYS.contains(&key_of(arg))).collect();
    let tree = Tree::parse(source, text)?;
    let (mut flags, mut places) = (Vec::new(), Vec::new());
    for (key, node) in &tree.entries {
        let Some(arg) = keys.iter().find(|arg| key_of(arg) == key) else {
            let names = || keys.iter().map(|arg| key_of(arg));
            let meant = did_you_mean(key, names());
            let allowed = names().collect::<Vec<_>>().join(", ");
            return Err(InputError::new(&node.origin, format!("unknown key {key:?}{meant}")).allowed(allowed));
        };
        let arguments = arguments(arg, key, node)?;
        for word in &arguments {
            try_alone(name, arg, word, key, node)?;
        }
        if !is_given(given, arg) {
            if arg.is_positional() { places.extend(arguments) } else { flags.extend(arguments) }
        }
    }
    let at = words.iter().position(|word| word == name).map_or(words.len(), |at| at + 1);
    let mut merged = words[..at].to_vec();
    merged.extend(flags.into_iter().map(OsString::from));
    merged.extend(without_config(&words[at..]));
    if !places.is_empty() {
        merged.push("--".into());
        merged.extend(places.into_iter().map(OsString::from));
    }
    Ok(merged)
}

fn key_of(arg: &Arg) -> &str {
    arg.get_long().unwrap_or(arg.get_id().as_str())
}

fn is_given(matches: &ArgMatches, arg: &Arg) -> bool {
    matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
}

/// The command-line arguments equivalent to a key.
fn arguments(arg: &Arg, key: &str, node: &Node) -> Result<Vec<String>, InputError> {
    let is_list = matches!(arg.get_action(), ArgAction::Append);
    let mismatch = |allowed: &str| {
        let what = format!("{key}: {} is {}", node.value, node.value.kind());
        InputError::new(&node.origin, what).allowed(allowed)
    };
    if matches!(arg.get_action(), ArgAction::SetTrue) {
        return match node.value {
            Value::Flag(true) => Ok(vec![format!("--{key}")]),
            Value::Flag(false) => Ok(Vec::new()),
            _ => Err(mismatch("true or false")),
        };
    }
    let allowed =
        if is_list { "a string in quotes, or a list of them" } else { "a string in quotes, or a number" };
    let text = |value: &Value| match value {
        Value::Text(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        _ => Err(mismatch(allowed)),
    };
    let texts = match &node.value {
        Value::List(items) if is_list => {
            items.iter().map(|item| text(&item.value)).collect::<Result<Vec<_>, _>>()?
        }
        value => vec![text(value)?],
    };
    let word = |text: String| if arg.is_positional() { text } else { format!("--{key}={text}") };
    Ok(texts.into_iter().map(word).collect())
}

/// Checks the value of a single key, so that an error names it. Conflicts between keys are detected for the whole
/// command line.
fn try_alone(name: &str, arg: &Arg, word: &str, key: &str, node: &Node) -> Result<(), InputError> {
    let dashes = if arg.is_positional() { Some("--") } else { None };
    let words = ["tacit", name].into_iter().chain(dashes).chain([word]);
    let Err(error) = Cli::try_parse_from(words) else { return Ok(()) };
    if !matches!(error.kind(), ErrorKind::ValueValidation | ErrorKind::InvalidValue) {
        return Ok(());
    }
    let why = std::error::Error::source(&error).map(ToString::to_string);
    let why = why.unwrap_or_else(|| usage_error(error.kind(), &error.to_string()));
    Err(InputError::new(&node.origin, format!("{key}: {}: {why}", node.value)))
}

/// `words` without `--config FILE`.
fn without_config(words: &[OsString]) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            kept.push(word.clone());
            kept.extend(words.cloned());
            break;
        }
        if word == "--config" {
            words.next();
        } else if !word.to_str().is_some_and(|word| word.starts_with("--config=")) {
            kept.push(word.clone());
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(text: &str, words: &[&str]) -> Result<Vec<String>, String> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let merged = with_file("F", text, &words).map_err(|error| error.to_string())?;
        Ok(merged.into_iter().map(|word| word.into_string().expect("words that came from text")).collect())
    }

    #[test]
    fn the_command_line_overrides_the_file() {
        let words = ["tacit", "serve", "--config", "F", "--grace", "5"];
        assert_eq!(
            merged("path = \"/srv\"\ngrace = 9\nwrite = true\njson = false\n", &words).unwrap(),
            ["tacit", "serve", "--write", "--grace", "5", "--", "/srv"]
        );
        let words = ["tacit", "proxy", "--config=F"];
        assert_eq!(
            merged("serve = true\nallow = [\"a:1\", \"b:2\"]\n", &words).unwrap(),
            ["tacit", "proxy", "--allow=a:1", "--allow=b:2", "--serve"]
        );
    }

    #[test]
    fn errors_name_their_line() {
        let words = ["tacit", "serve", "--config", "F"];
        let wrong = |text: &str| merged(text, &words).unwrap_err();
        assert!(
            wrong("\nlissten = 1\n").starts_with("F:2: unknown key \"lissten\", did you mean \"listen\"?")
        );
        assert!(wrong("check = true").contains("unknown key"));
        assert_eq!(wrong("grace = 1\nlisten = \"x\""), "F:2: listen: \"x\": invalid socket address syntax");
        assert!(wrong("grace = -1").starts_with("F:1: grace: -1: "), "{}", wrong("grace = -1"));
        assert!(wrong("write = 1").starts_with("F:1: write: 1 is a whole number; allowed: true or false"));
        assert!(wrong("path = [\"a\"]").contains("allowed: a string in quotes"));
        assert!(wrong("path =").contains("F:1: not TOML"));
    }

    #[test]
    fn every_flag_is_a_key() {
        let mut cli = Cli::command();
        cli.build();
        for (name, text) in [("serve", "path = \"p\"\n"), ("proxy", "serve = true\n")] {
            let command = cli.find_subcommand(name).expect("it is a command");
            for arg in command.get_arguments().filter(|arg| !NO_KEYS.contains(&key_of(arg))) {
                let key = key_of(arg);
                // A table is never valid, and the error names its type.
                let error =
                    merged(&format!("{key} = {{}}\n"), &["tacit", name, "--config", "F"]).unwrap_err();
                assert!(error.starts_with(&format!("F:1: {key}: {{ }} is a table")), "{error}");
            }
            merged(text, &["tacit", name, "--config", "F"]).unwrap();
        }
    }
}
