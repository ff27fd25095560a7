//! Every command in the README and in `docs/` works.
//!
//! The rule: each line after `$ ` in a ```` ```console ```` block and each line of a ```` ```sh ```` block is run, in
//! the order of the page and in a separate directory per page. It must exit with 0, and its output must contain the
//! output shown below it on the page. [`EXCEPTIONS`] lists commands to which this does not apply, each with one of a
//! few reasons. If such a command is tacit's, the program still parses its arguments, and names of scenarios and
//! figures are looked up. A table of means and intervals takes minutes of simulation, so its command is run in a
//! shortened form and only the columns are compared.
//!
//! Options mentioned in prose and in synopses are looked up in `--help`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::markdown::{blocks, code_spans};
use crate::shown::{missing, missing_headings, missing_labels};
use crate::{all_pages, name, root};

/// Treatment of a command that is not run as shown.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Instead {
    /// Only parsed: it creates a live hop, or checks whether this machine can create one. The live tests run such
    /// commands.
    LiveHop,
    /// Run for one second instead of eight if live hops work, otherwise only parsed.
    ShortLive,
    /// Only parsed: it needs another machine or a server that keeps running.
    TwoMachines,
    /// Only parsed: it takes minutes, or compiles.
    Long,
    /// Only parsed: it installs something, changes the machine, or needs something that not every machine has.
    Installs,
    /// Run with these additional arguments, because it would take minutes otherwise. Only the table headings are
    /// compared.
    Shortened(&'static str),
    /// Run on a capture from the simulator instead of the reader's own. Only the labels of the lines are compared.
    OtherCapture,
    /// Run, and must exit with this code.
    Fails(i32),
}

use Instead::{Fails, Installs, LiveHop, Long, OtherCapture, ShortLive, Shortened, TwoMachines};

/// Arguments for few and short runs.
const SHORT: &str = "--seeds 1 --set run.duration=1200ms --set run.measure-from=1s";

/// Creates captures that replace those of the reader.
const CAPTURE: &str = "for file in my web; do test -e $file.pcap || tacit run hack-2014-11n-150 --pcap $file.pcap \
    --set 'run.duration=300 ms' --set 'run.measure-from=100 ms' >/dev/null || exit; done";

/// Exceptions by the beginning of the command. The first match counts.
const EXCEPTIONS: &[(&str, Instead)] = &[
    ("./ci.sh ", Long),
    ("cargo ", Long),
    ("make -C crates/surface/c", Long),
    ("sudo ", Installs),
    ("pip ", Installs),
    ("dask ", TwoMachines),
    ("tacit sweep wlan-11n-150 --sweep 'wifi.distance=5 m,17 m' --seeds 1000 --dask", TwoMachines),
    ("curl ", TwoMachines),
    ("tacit audit my.pcap", OtherCapture),
    ("tacit audit web.pcap", OtherCapture),
    ("tacit rohc stats my.pcap", OtherCapture),
    ("tacit shell ", LiveHop),
    ("target/release/tacit-peers ", LiveHop),
    ("tacit rre ", LiveHop),
    // It would take the routes of this machine.
    ("tacit thin ", Installs),
    ("tacit doctor", LiveHop),
    ("tacit serve ", TwoMachines),
    ("tacit cp ", TwoMachines),
    ("tacit proxy ", TwoMachines),
    ("tacit figure hack/fig10", Long),
    ("tacit figure hack/rule", Long),
    ("tacit figure hack/ofdma-count", Long),
    ("tacit figure fwp/fig7", Long),
    ("tacit advise ", Shortened(SHORT)),
    ("tacit compare wlan-11ac-866 --clients 1,4", Shortened(SHORT)),
    ("tacit why wlan-11n-150 --schemes hack-batch,stock --clients 20", Shortened(SHORT)),
    ("tacit man --dir", Installs),
    ("tacit run wlan-11n-150 --set wifi.rat=", Fails(2)),
];

/// A command on a page, and the output shown below it.
struct Shown {
    page: String,
    line: usize,
    command: String,
    output: String,
}

impl Shown {
    fn at(&self) -> String {
        format!("{}:{}: {}", self.page, self.line, self.command)
    }

    fn instead(&self) -> Option<Instead> {
        if self.command.starts_with("tacit shell ") && self.command.contains("iperf3 -c") {
            return Some(ShortLive);
        }
        EXCEPTIONS.iter().find(|(begin, _)| self.command.starts_with(begin)).map(|(_, instead)| *instead)
    }
}

/// All commands on a page.
fn commands_of(path: &Path) -> Vec<Shown> {
    let page = fs::read_to_string(path).unwrap();
    let mut found: Vec<Shown> = Vec::new();
    for block in blocks(&page) {
        let is_console = match block.language.as_str() {
            "console" => true,
            "sh" => false,
            _ => continue,
        };
        let mut lines = block.text.lines().enumerate();
        while let Some((number, line)) = lines.next() {
            let begun = if is_console { line.strip_prefix("$ ") } else { Some(line) };
            let Some(begun) = begun else {
                let last = found.last_mut().unwrap_or_else(|| panic!("{}: output of no command", name(path)));
                last.output.push_str(line);
                last.output.push('\n');
                continue;
            };
            let mut command = without_remark(begun).to_owned();
            while let Some(begin) = command.strip_suffix('\\') {
                let (_, next) = lines.next().unwrap();
                command = format!(
                    "{}{}",
                    begin.trim_end_matches(' '),
                    format_args!(" {}", without_remark(next.trim()))
                );
            }
            // A here-document belongs to its command.
            if let Some((_, end)) = command.split_once("<<'") {
                let end = end.trim_end_matches('\'').to_owned();
                for (_, next) in lines.by_ref() {
                    command.push('\n');
                    command.push_str(next);
                    if next == end {
                        break;
                    }
                }
            }
            if !command.is_empty() {
                let line = block.line + number;
                found.push(Shown { page: name(path), line, command, output: String::new() });
            }
        }
    }
    found
}

/// A command without a trailing comment.
fn without_remark(line: &str) -> &str {
    if line.starts_with('#') { "" } else { line.split("  #").next().unwrap().trim_end() }
}

/// A shell in `directory` with this build's `tacit` and a separate home directory. Pages share cached results, because
/// many show the same runs.
fn shell(directory: &Path, script: &str) -> Command {
    let built = Path::new(env!("CARGO_BIN_EXE_tacit")).parent().unwrap();
    let path = format!("{}:{}", built.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(directory).env("PATH", path).env("HOME", directory);
    command
        .env("TACIT_CACHE_DIR", concat!(env!("CARGO_TARGET_TMPDIR"), "/runs-of-pages"))
        .env_remove("XDG_CONFIG_HOME");
    command
}

pub(super) fn is_installed(program: &str) -> bool {
    Command::new("sh").args(["-c", &format!("command -v {program} >/dev/null")]).status().unwrap().success()
}

/// Runs `script`. Returns its exit code, and its standard output followed by its standard error.
fn run(directory: &Path, script: &str) -> (Option<i32>, String) {
    let output = shell(directory, script).output().unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code(), text)
}

/// Whether this machine can make a live hop.
pub(super) fn hops_work(directory: &Path) -> bool {
    run(directory, "tacit doctor").0 == Some(0)
}

/// Whether this machine can run commands of the pages in a live hop.
fn live_hops_work(directory: &Path) -> bool {
    static WORK: OnceLock<bool> = OnceLock::new();
    *WORK.get_or_init(|| {
        let work = is_installed("iperf3") && hops_work(directory);
        if !work {
            eprintln!("SKIPPED: no live hops or no iperf3 here, their commands are only parsed");
        }
        work
    })
}

/// The error in a command that is not run, as found by tacit's own parser.
pub(super) fn parse_fault(directory: &Path, command: &str) -> Option<String> {
    if let Some(rest) = command.strip_prefix("./ci.sh ") {
        let wanted = rest.split(' ').next().unwrap();
        let script = fs::read_to_string(root().join("ci.sh")).unwrap();
        return (!script.contains(&format!("\n  {wanted} "))).then(|| format!("ci.sh has no {wanted}"));
    }
    if command.starts_with("cargo ") {
        return cargo_fault(command);
    }
    let words = command.strip_prefix("tacit ")?;
    // The command inside a hop and the words after a pipe are not parsed by tacit.
    let arguments = words.split(" -- ").next().unwrap().trim_end_matches(" --server");
    let mut is_quoted = false;
    let end = arguments.find(|c: char| {
        is_quoted ^= c == '\'';
        !is_quoted && ";>|&".contains(c)
    });
    let arguments = &arguments[..end.unwrap_or(arguments.len())];
    let (code, help) = run(directory, &format!("tacit {arguments} --help"));
    (code != Some(0)).then_some(help)
}

/// Checks that the packages, features and test programs named in a cargo command exist.
fn cargo_fault(command: &str) -> Option<String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let package = words.windows(2).find(|pair| pair[0] == "-p").map(|pair| pair[1]);
    let room = package.map(|package| package.strip_prefix("tacit-").unwrap_or("cli"));
    if let Some(room) = room {
        let floors = fs::read_dir(root().join("crates")).unwrap().map(|floor| floor.unwrap().path());
        let Some(home) = floors.map(|floor| floor.join(room)).find(|home| home.is_dir()) else {
            return Some(format!("no package {room}"));
        };
        for test in words.windows(2).filter(|pair| pair[0] == "--test").map(|pair| pair[1]) {
            let tests = home.join("tests");
            if !tests.join(format!("{test}.rs")).exists() && !tests.join(test).is_dir() {
                return Some(format!("no test program {test}"));
            }
        }
    }
    None
}

/// The error in the scenarios and figures that a tacit command names.
fn name_fault(command: &str, scenarios: &BTreeSet<String>) -> Option<String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let rooms = ["hack", "tack", "rre", "fwp", "baselines", "quic", "thin", "validation"];
    if words.get(1) == Some(&"figure") {
        for word in &words[2..] {
            let is_figure = word.split_once('/').is_some_and(|(room, _)| rooms.contains(&room));
            if is_figure && !root().join(format!("figures/{word}.toml")).exists() {
                return Some(format!("no figure {word}"));
            }
        }
    }
    let takes_one = ["run", "compare", "explain", "shell", "advise"];
    let scenario = words.get(2).filter(|word| {
        takes_one.contains(&words[1])
            && word.contains('-')
            && !word.starts_with('-')
            && !word.ends_with(".toml")
    });
    let unknown = scenario.filter(|word| !scenarios.contains(**word))?;
    Some(format!("no scenario {unknown}"))
}

/// Names of the bundled scenarios.
fn scenarios() -> BTreeSet<String> {
    let files = crate::files_below(&root().join("scenarios"));
    files.iter().map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

/// The error in a command, if there is one.
fn fault(directory: &Path, shown: &Shown, scenarios: &BTreeSet<String>) -> Option<String> {
    if shown.command.starts_with("tacit")
        && let Some(fault) = name_fault(&shown.command, scenarios)
    {
        return Some(fault);
    }
    let (script, expected) = match shown.instead() {
        None => (shown.command.clone(), 0),
        Some(Fails(code)) => (shown.command.clone(), code),
        Some(Shortened(more)) => (format!("{} {more}", shown.command.replace(" --seeds 5", "")), 0),
        Some(OtherCapture) => (format!("{CAPTURE} && {}", shown.command), 0),
        Some(ShortLive) if live_hops_work(directory) => (shown.command.replace(" -t 8 ", " -t 1 "), 0),
        Some(ShortLive | LiveHop | TwoMachines | Long | Installs) => {
            return parse_fault(directory, &shown.command);
        }
    };
    let (code, output) = run(directory, &script);
    if code != Some(expected) {
        return Some(format!("ends with {code:?}\n{output}"));
    }
    let missing_parts = match shown.instead() {
        Some(Shortened(_)) => missing_headings(&shown.output, &output),
        Some(OtherCapture) => missing_labels(&shown.output, &output),
        // On a busy machine a run has no numbers, which its output states.
        Some(ShortLive) if !output.contains("\n  NOT VALID") => missing_labels(&shown.output, &output),
        _ => Vec::new(),
    };
    if !missing_parts.is_empty() {
        return Some(format!("has no {missing_parts:?}\n{output}"));
    }
    if matches!(shown.instead(), Some(Shortened(_) | OtherCapture | ShortLive)) {
        return None;
    }
    missing(&shown.output, &output).map(|lines| format!("does not print\n{lines}\nbut\n{output}"))
}

/// Parent of the directories of the pages.
fn directories() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// The directory of a page below `all`, with the parts of the project that commands refer to.
fn directory(all: &Path, page: &Path) -> PathBuf {
    let directory = all.join(name(page).replace('/', "-"));
    fs::create_dir(&directory).unwrap();
    for part in ["contrib", "scenarios", "figures"] {
        std::os::unix::fs::symlink(root().join(part), directory.join(part)).unwrap();
    }
    // Directories for shell completions, which exist on a machine that uses them.
    for part in [".local/share/bash-completion/completions", ".zfunc"] {
        fs::create_dir_all(directory.join(part)).unwrap();
    }
    directory
}

/// Runs the commands that satisfy `are_meant` on all pages, in page order.
fn commands_do_what_their_pages_show(are_meant: impl Fn(&Shown) -> bool) {
    let scenarios = scenarios();
    let has_tshark = is_installed("tshark");
    let mut counted = [0; 3];
    let mut faults = Vec::new();
    let all = directories();
    for path in all_pages() {
        let directory = directory(all.path(), &path);
        for shown in commands_of(&path).into_iter().filter(&are_meant) {
            if shown.command.starts_with("tshark ") && !has_tshark {
                eprintln!("SKIPPED: tshark: {}", shown.at());
                continue;
            }
            counted[match shown.instead() {
                None | Some(Fails(_)) => 0,
                Some(ShortLive) if !live_hops_work(&directory) => 2,
                Some(Shortened(_) | OtherCapture | ShortLive) => 1,
                Some(_) => 2,
            }] += 1;
            if let Some(fault) = fault(&directory, &shown, &scenarios) {
                faults.push(format!("{}: {fault}", shown.at()));
            }
        }
    }
    println!(
        "commands: {} run as shown, {} run in short or on other captures, {} parsed",
        counted[0], counted[1], counted[2]
    );
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

/// The test that runs a command which any machine can run. Several tests in parallel finish sooner.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Use,
    SystemsAndTutorials,
    Others,
}

/// `None` for a command that runs in a live hop.
fn part_of(shown: &Shown) -> Option<Part> {
    if shown.instead() == Some(ShortLive) {
        return None;
    }
    Some(match shown.page.split('/').nth(1) {
        Some("use") => Part::Use,
        Some("systems" | "tutorials") => Part::SystemsAndTutorials,
        _ => Part::Others,
    })
}

#[test]
fn every_command_does_what_its_page_shows() {
    commands_do_what_their_pages_show(|shown| part_of(shown) == Some(Part::Others));
}

#[test]
fn every_command_of_use_does_what_its_page_shows() {
    commands_do_what_their_pages_show(|shown| part_of(shown) == Some(Part::Use));
}

#[test]
fn every_command_of_systems_and_tutorials_does_what_its_page_shows() {
    commands_do_what_their_pages_show(|shown| part_of(shown) == Some(Part::SystemsAndTutorials));
}

/// These commands have a separate test, which needs an otherwise idle machine.
#[test]
#[ignore = "live hops: ./ci.sh hops"]
fn every_command_behind_a_hop_does_what_its_page_shows() {
    commands_do_what_their_pages_show(|shown| part_of(shown).is_none());
}

#[test]
fn every_exception_is_of_a_command() {
    let commands: Vec<Shown> = all_pages().iter().flat_map(|path| commands_of(path)).collect();
    for (begin, _) in EXCEPTIONS {
        assert!(commands.iter().any(|shown| shown.command.starts_with(begin)), "no page has {begin:?}");
    }
}

#[test]
fn every_option_in_prose_and_synopses_is_one() {
    let all = directories();
    let mut checked: BTreeSet<(String, String)> = BTreeSet::new();
    let mut faults = Vec::new();
    for path in all_pages() {
        let page = fs::read_to_string(&path).unwrap();
        let mut found = code_spans(&page);
        for block in blocks(&page).into_iter().filter(|block| block.language.is_empty()) {
            // Indented lines continue a synopsis.
            for synopsis in block.text.replace("\n   ", " ").lines() {
                found.push((block.line, synopsis.to_owned()));
            }
        }
        for (line, text) in found {
            let Some(words) = text.strip_prefix("tacit ") else { continue };
            let command_line = words.split(" -- ").next().unwrap();
            let mut words = command_line.split(|sign: char| sign.is_whitespace() || "[]|=;,)".contains(sign));
            let Some(command) = words.next().filter(|word| is_a_command(word)) else { continue };
            for option in words.filter(|word| word.starts_with("--") && word.len() > 2) {
                if !checked.insert((command.to_owned(), option.to_owned())) {
                    continue;
                }
                if !help(all.path(), command).contains(option) {
                    faults.push(format!("{}:{line}: {text}: tacit {command} has no {option}", name(&path)));
                }
            }
        }
    }
    assert!(checked.len() > 100, "only {} options were found", checked.len());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn is_a_command(word: &str) -> bool {
    !word.is_empty()
        && word.chars().all(|sign| sign.is_ascii_lowercase() || sign == '-')
        && !word.starts_with('-')
}

/// The `--help` text of a command and its subcommands.
fn help(directory: &Path, command: &str) -> String {
    let (_, mut text) = run(directory, &format!("tacit {command} --help"));
    let within: &[&str] = match command {
        "rohc" => &["stats", "compress", "decompress", "compare"],
        "rre" => &["run", "attach", "status"],
        "thin" => &["status"],
        "keys" => &["make", "show", "list", "trust", "forget"],
        _ => &[],
    };
    for inner in within {
        text += &run(directory, &format!("tacit {command} {inner} --help")).1;
    }
    text
}
