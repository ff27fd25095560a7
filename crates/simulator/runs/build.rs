//! Passes the commit of the source to the program.

use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn main() {
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    let modified =
        git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|text| !text.is_empty());
    println!("cargo::rustc-env=TACIT_COMMIT={commit}{}", if modified { "-modified" } else { "" });
    if let Some(directory) = git(&["rev-parse", "--git-dir"]) {
        println!("cargo::rerun-if-changed={directory}/HEAD");
        println!("cargo::rerun-if-changed={directory}/logs/HEAD");
    }
    // All sources that a result depends on. A change to any of them rebuilds this crate anyway.
    for path in [
        "../../core/rohc/src",
        "../../core/ack/src",
        "../../core/packet/src",
        "../../core/congestion/src",
        "../../core/tcp/src",
        "../../core/tack-proto/src",
        "../../core/between/src",
        "../link/src",
        "../sim/src",
        "../scenario/src",
        "src",
        "build.rs",
        "../../../scenarios",
        "../../../figures",
    ] {
        println!("cargo::rerun-if-changed={path}");
    }
}
