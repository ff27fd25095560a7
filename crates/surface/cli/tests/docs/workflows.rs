//! The workflows of this repository: their commands are ones of `ci.sh`, all parts run, and a release uploads each file.
//! `./ci.sh workflows` checks their syntax, with actionlint.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::jobs::{Step, read, script, steps};
use crate::{files_below, root};

/// The first words behind each `./ci.sh` of a text.
fn called(text: &str) -> BTreeSet<String> {
    let rest = text.split("./ci.sh ").skip(1);
    rest.map(|rest| rest.split([' ', '\n', '`', ';', ':']).next().unwrap().to_owned()).collect()
}

/// The parts of `./ci.sh all`.
fn parts() -> BTreeSet<String> {
    let text = read("ci.sh");
    let list = text.split("\nPARTS=(").nth(1).unwrap().split(')').next().unwrap();
    list.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn commands_of_the_workflows_are_ones_of_the_script() {
    let mut known = parts();
    for line in read("ci.sh").split("\ncase \"${1:-}\" in").nth(1).unwrap().lines() {
        if let Some(names) =
            line.strip_prefix("    ").and_then(|line| line.split_once(')')).map(|(names, _)| names)
        {
            known.extend(names.split(" | ").map(str::to_owned));
        }
    }
    for file in files_below(&root().join(".github/workflows")) {
        for step in steps(&fs::read_to_string(&file).unwrap()) {
            let Step::Run(text) = step else { continue };
            for word in called(&text) {
                assert!(known.contains(&word), "{}: ./ci.sh {word}", file.display());
            }
        }
    }
}

#[test]
fn jobs_of_a_push_run_every_part() {
    let missing: Vec<_> = parts().difference(&called(&read(".github/workflows/ci.yml"))).cloned().collect();
    assert_eq!(missing, Vec::<String>::new(), "no job of ci.yml runs these");
}

/// A step of a workflow, in `directory`, with its stand-ins, as of this tag.
fn run(text: &str, directory: &Path, tag: &str) -> Output {
    let path = format!("{}:{}", directory.join("stand-ins").display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("bash");
    command.args(["-e", "-c", text]).current_dir(directory).env("PATH", path);
    command
        .env("GITHUB_REF_NAME", tag)
        .env("GITHUB_REPOSITORY", "Tacit-Net/tacit")
        .env("GITHUB_ACTOR", "someone");
    command.env("TOKEN", "none").env("GH_TOKEN", "none").output().unwrap()
}

fn commands(job: &str) -> Vec<String> {
    let workflow = read(".github/workflows/release.yml");
    let begin = format!("\n  {job}:\n");
    let text = workflow.split_once(begin.as_str()).unwrap_or_else(|| panic!("no job {job}")).1;
    // The next job is a key with as many blanks.
    let end = text
        .lines()
        .position(|line| line.starts_with("  ") && !line.starts_with("   "))
        .unwrap_or(usize::MAX);
    let job_lines: Vec<&str> = text.lines().take(end).collect();
    let runs = steps(&job_lines.join("\n")).into_iter().filter_map(|step| match step {
        Step::Run(text) => Some(text),
        Step::Uses(_) => None,
    });
    runs.collect()
}

#[test]
fn a_tag_that_is_not_the_version_makes_no_release() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let at = directory.path();
    let check = commands("files").into_iter().find(|text| text.contains("GITHUB_REF_NAME")).unwrap();
    fs::write(at.join("Cargo.toml"), "[workspace.package]\nversion = \"1.2.3\"\n").unwrap();
    let heading = |text: &str| fs::write(at.join("CHANGELOG.md"), text).unwrap();
    heading("## [Unreleased]\n\n## [1.2.3] - 2026-11-25\n");
    assert!(run(&check, at, "v1.2.3").status.success());
    assert!(!run(&check, at, "v1.2.4").status.success(), "another version");
    heading("## [Unreleased]\n\n## [1.2.2] - 2026-11-25\n");
    assert!(!run(&check, at, "v1.2.3").status.success(), "no heading");
}

#[test]
fn a_release_uploads_each_file_with_its_checksum_and_one_image_for_both_processors() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let at = directory.path();
    fs::create_dir_all(at.join("stand-ins")).unwrap();
    fs::create_dir_all(at.join("files")).unwrap();
    for program in ["buildah", "gh"] {
        script(&at.join("stand-ins").join(program), &format!("#!/bin/sh\necho \"{program} $*\" >>calls\n"));
    }
    let names = ["a.deb", "b.crate", "x86_64.oci.tar", "aarch64.oci.tar", "c.whl"];
    for name in names {
        fs::write(at.join("files").join(name), name).unwrap();
    }
    // The list of the machine that came last.
    fs::write(at.join("files/SHA256SUMS"), "of one processor\n").unwrap();
    for text in commands("upload") {
        let output = run(&text, at, "v1.2.3");
        assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    }
    let sums = Command::new("sha256sum")
        .args(["--check", "--strict", "SHA256SUMS"])
        .current_dir(at.join("files"))
        .output();
    let checked = String::from_utf8(sums.unwrap().stdout).unwrap();
    let fine: BTreeSet<&str> = checked.lines().filter_map(|line| line.strip_suffix(": OK")).collect();
    assert_eq!((fine, checked.lines().count()), (names.into(), names.len()), "{checked}");
    let calls = fs::read_to_string(at.join("calls")).unwrap();
    let upload = calls.lines().find(|line| line.starts_with("gh release create v1.2.3 ")).unwrap();
    for name in names.into_iter().chain(["SHA256SUMS"]) {
        assert!(upload.contains(&format!(" files/{name}")), "{name} is not uploaded: {upload}");
    }
    for processor in ["x86_64", "aarch64"] {
        assert!(
            calls.contains(&format!("buildah manifest add tacit oci-archive:files/{processor}.oci.tar\n")),
            "{calls}"
        );
    }
    assert!(
        calls.contains("docker://ghcr.io/tacit-net/tacit:1.2.3\n"),
        "names of images have small letters: {calls}"
    );
}

/// The bill of materials has what is compiled into the program, not what only builds or tests it.
#[test]
fn components_are_those_that_are_compiled_in() {
    let rustc = Command::new("rustc").arg("-vV").output().unwrap();
    let version_text = String::from_utf8(rustc.stdout).unwrap();
    let host = version_text.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let output = match Command::new("python3").arg("packaging/sbom.py").arg(host).current_dir(root()).output()
    {
        Ok(output) => output,
        Err(error) => {
            eprintln!("SKIPPED: python3: {error}: no bill of materials");
            return;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let bill: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(bill["bomFormat"], "CycloneDX");
    assert_eq!(bill["specVersion"], "1.6");
    assert_eq!(bill["metadata"]["component"]["name"], "tacit");
    let lock = read("Cargo.lock");
    let mut names = BTreeSet::new();
    for part in bill["components"].as_array().unwrap() {
        let name = part["name"].as_str().unwrap();
        let entry = format!("name = \"{name}\"\nversion = {}\n", part["version"]);
        assert!(lock.contains(&entry), "{part} is not in Cargo.lock");
        assert!(part["licenses"][0]["expression"].is_string(), "{name} has no licence");
        let is_own = name.starts_with("tacit-");
        let is_in_lock = part["hashes"][0]["content"].as_str().is_some_and(|hash| lock.contains(hash));
        assert!(is_own || is_in_lock, "{name} has no checksum of Cargo.lock");
        names.insert(name);
    }
    for needed in ["tacit-sim", "tacit-tack", "aws-lc-sys", "serde", "clap"] {
        assert!(names.contains(needed), "{needed} is compiled in");
    }
    for foreign in ["proptest", "cc", "serde_derive", "assert_cmd", "libbpf-rs", "pyo3", "criterion"] {
        assert!(!names.contains(foreign), "{foreign} is not compiled in");
    }
    let refs: BTreeSet<&str> =
        bill["components"].as_array().unwrap().iter().map(|part| part["bom-ref"].as_str().unwrap()).collect();
    for used in bill["dependencies"].as_array().unwrap() {
        for name in used["dependsOn"].as_array().unwrap() {
            assert!(refs.contains(name.as_str().unwrap()), "{name} is used and not listed");
        }
    }
}
