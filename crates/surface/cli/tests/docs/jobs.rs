//! The jobs for CI that `docs/use/ci.md` shows do what they say: on GitHub with `action.yml`, on GitLab, and
//! `contrib/ci/setup.sh`, which both run.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::commands::{hops_work, is_installed, parse_fault};
use crate::markdown::blocks;
use crate::root;

const PAGE: &str = "docs/use/ci.md";
const JOBS: [&str; 2] = ["contrib/ci/examples/github.yml", "contrib/ci/examples/gitlab.yml"];

/// A step of a job.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Lines for a shell.
    Run(String),
    /// An action of GitHub's.
    Uses(String),
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The steps in a file of GitHub's (`run:`, `uses:`) or GitLab's (lists below `script:`), in their order.
pub fn steps(yaml: &str) -> Vec<Step> {
    let mut found = Vec::new();
    let mut script = None;
    let mut lines = yaml.lines().peekable();
    while let Some(line) = lines.next() {
        if script.is_some_and(|depth| indent(line) <= depth) {
            script = None;
        }
        // A key may be the first of an entry in a list.
        let (item, is_entry) = match line.trim_start().strip_prefix("- ") {
            Some(item) => (item, true),
            None => (line.trim_start(), false),
        };
        if let (Some(_), true) = (script, is_entry) {
            found.push(Step::Run(item.to_owned()));
        } else if matches!(item, "script:" | "before_script:") {
            script = Some(indent(line));
        } else if let Some(name) = item.strip_prefix("uses: ") {
            found.push(Step::Uses(name.to_owned()));
        } else if item == "run: |" {
            let mut text = String::new();
            while let Some(next) = lines.next_if(|next| next.is_empty() || indent(next) > indent(line)) {
                text.push_str(next.trim_start());
                text.push('\n');
            }
            found.push(Step::Run(text));
        } else if let Some(command) = item.strip_prefix("run: ") {
            found.push(Step::Run(command.to_owned()));
        }
    }
    found
}

pub fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

#[test]
fn the_page_shows_the_files_of_the_jobs() {
    let page = read(PAGE);
    let shown: Vec<String> =
        blocks(&page).into_iter().filter(|block| block.language == "yaml").map(|block| block.text).collect();
    assert_eq!(shown, JOBS.map(read));
    for job in JOBS {
        assert!(
            page.contains(&format!("<!-- {job} -->\n```yaml\n")),
            "{PAGE} does not say where {job} is from"
        );
    }
}

#[test]
fn commands_of_the_jobs_are_ones_of_tacit() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut parsed = 0;
    for file in JOBS.iter().chain(&["action.yml"]) {
        for step in steps(&read(file)) {
            let Step::Run(text) = step else { continue };
            for line in text.lines().filter(|line| line.starts_with("tacit ")) {
                parsed += 1;
                let fault = parse_fault(directory.path(), line.split(" || ").next().unwrap());
                assert_eq!(fault, None, "{file}: {line}");
            }
        }
    }
    assert!(parsed >= 6, "only {parsed} commands were found");
}

/// Writes an executable script.
pub fn script(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A release v0 of this build in `directory`, with the sums of its files.
fn release(directory: &Path) -> PathBuf {
    let place = directory.join("releases/v0");
    let text = format!(
        "mkdir -p {0}/tree/bin && cp {1} {0}/tree/bin/tacit && cd {0} \
        && tar -C tree -czf tacit-0-$(uname -m)-unknown-linux-musl.tar.gz bin && sha256sum *.gz >SHA256SUMS",
        place.display(),
        env!("CARGO_BIN_EXE_tacit")
    );
    assert!(Command::new("sh").args(["-c", &text]).status().unwrap().success());
    place
}

#[test]
fn a_program_is_installed_only_if_it_is_the_one_that_the_release_names() {
    if !is_installed("curl") {
        eprintln!("SKIPPED: no curl, which fetches a release");
        return;
    }
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let place = release(directory.path());
    let install = |version: &str| {
        let setup = root().join("contrib/ci/setup.sh");
        let mut command = Command::new(setup);
        command.args(["install", "bin", version]).current_dir(directory.path());
        command.env("TACIT_RELEASES", format!("file://{}", directory.path().join("releases").display()));
        let output = command.output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let program = directory.path().join("bin/tacit");
    let (is_done, stderr) = install("v1");
    assert!(!is_done && !program.exists(), "a release that is not there: {stderr}");
    let sums = place.join("SHA256SUMS");
    let right = fs::read_to_string(&sums).unwrap();
    for wrong in [format!("{}{}", "0".repeat(64), &right[64..]), String::new()] {
        fs::write(&sums, wrong).unwrap();
        let (is_done, stderr) = install("v0");
        assert!(!is_done && !program.exists() && stderr.contains("is not the file"), "{stderr}");
    }
    fs::write(&sums, right).unwrap();
    assert_eq!(install("v0"), (true, String::new()));
    assert!(program.exists());
}

/// A machine of a CI system, whose programs that would change it or need the network have stand-ins.
struct Runner {
    directory: tempfile::TempDir,
}

impl Runner {
    fn new() -> Self {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let at = directory.path();
        release(at);
        fs::create_dir_all(at.join("stand-ins")).unwrap();
        script(&at.join("stand-ins/sudo"), "#!/bin/sh\nexec \"$@\"\n");
        script(&at.join("stand-ins/apt-get"), "#!/bin/sh\n");
        let clone = format!("#!/bin/sh\nfor last; do :; done\nln -sfn {} \"$last\"\n", root().display());
        script(&at.join("stand-ins/git"), &clone);
        script(
            &at.join("my-server"),
            "#!/bin/sh\nexec python3 -m http.server 8080 --bind \"$TACIT_ADDRESS\"\n",
        );
        let fetch = "import os, urllib.request as it; it.urlopen('http://' + os.environ['TACIT_PEER'] + ':8080/my-tests').read()";
        script(&at.join("my-tests"), &format!("#!/bin/sh\nexec python3 -c \"{fetch}\"\n"));
        Self { directory }
    }

    /// Runs a step, and all of an action of this project. Returns what a step printed that had no valid run.
    fn run(&self, step: &Step) -> Option<String> {
        let at = self.directory.path();
        let text = match step {
            Step::Uses(name) if name.starts_with("tacit-net/tacit@") => {
                return steps(&read("action.yml")).iter().filter_map(|step| self.run(step)).next();
            }
            // Others are GitHub's own: checkout, cache, upload.
            Step::Uses(name) => {
                assert!(name.starts_with("actions/"), "unknown action {name}");
                return None;
            }
            Step::Run(text) => text.replace("/tmp/tacit", &format!("{}/clone", at.display())),
        };
        // Steps of GitHub's name directories of programs for the next ones in a file.
        let added = fs::read_to_string(at.join("path")).unwrap_or_default().replace('\n', ":");
        let path = format!("{}:{added}{}", at.join("stand-ins").display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("bash");
        command.args(["-e", "-c", &text]).current_dir(at).env("PATH", path).env("HOME", at);
        command.env("GITHUB_PATH", at.join("path")).env("GITHUB_OUTPUT", at.join("output"));
        command.env("GITHUB_ACTION_PATH", root()).env("RUNNER_TEMP", at.join("temporary"));
        command.env("CI_PROJECT_DIR", at).env("TACIT_VERSION", "v0").env("VERSION", "v0").env("HOPS", "true");
        command.env("TACIT_RELEASES", format!("file://{}/releases", at.display()));
        let output = command.output().unwrap();
        let output_text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        if output.status.code() == Some(122) {
            return Some(output_text);
        }
        assert!(output.status.success(), "{step:?} ends with {:?}\n{output_text}", output.status);
        None
    }
}

/// The steps of a job as its system runs them: those of GitLab in one shell.
fn as_run(steps: Vec<Step>) -> Vec<Step> {
    let lines: Vec<&str> = steps
        .iter()
        .filter_map(|step| if let Step::Run(text) = step { Some(text.as_str()) } else { None })
        .collect();
    if lines.len() == steps.len() { vec![Step::Run(lines.join("\n"))] } else { steps }
}

#[test]
#[ignore = "live hops: ./ci.sh hops"]
fn the_jobs_run() {
    for job in JOBS {
        let runner = Runner::new();
        if !is_installed("curl") || !is_installed("python3") || !hops_work(runner.directory.path()) {
            eprintln!("SKIPPED: no curl, python3 or live hops, which the jobs need");
            return;
        }
        for step in as_run(steps(&read(job))) {
            if let Some(output_text) = runner.run(&step) {
                eprintln!("{job}: {step:?}: the machine was too busy for a verdict\n{output_text}");
            }
        }
        let installed: Vec<_> = ["temporary/tacit/tacit", ".tacit/tacit"]
            .iter()
            .filter(|program| runner.directory.path().join(program).exists())
            .collect();
        assert_eq!(installed.len(), 1, "{job} installed {installed:?}");
    }
}

#[test]
fn steps_of_both_systems_are_found() {
    let github = "steps:\n  - uses: a/b@v1\n    with:\n      c: d\n  - run: e\n  - shell: bash\n    run: |\n      f\n      g\n  - run: h\n";
    let run = |text: &str| Step::Run(text.to_owned());
    assert_eq!(steps(github), [Step::Uses("a/b@v1".to_owned()), run("e"), run("f\ng\n"), run("h")]);
    let gitlab = "x:\n  before_script:\n    - a\n  script:\n    - b: c\n    - d\n  artifacts:\n    - e\n";
    assert_eq!(steps(gitlab), [run("a"), run("b: c"), run("d")]);
}
