//! `tacit fetch` and `tacit http-proxy` in a hop under FWP, from nginx.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use super::support::{machine, said, shell};

/// One frame in ten of what goes down is lost, and nobody repeats it.
const HOP: [&str; 4] = ["--scheme", "fwp", "--set", "wifi.mpdu-error={ down = \"10 %\", up = \"0 %\" }"];

/// A file, and nginx's configuration to serve it.
fn served(octets: usize) -> (TempDir, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    // No two packets of it are alike.
    let content: Vec<u8> =
        (0..octets as u32).map(|place| (place.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(folder.path().join("file"), &content).unwrap();
    let configuration = format!(
        "daemon off; pid {0}/pid; error_log {0}/errors; events {{}}\nhttp {{ access_log off; server {{ listen 80; root \
         {0}; }} }}\n",
        folder.path().display()
    );
    fs::write(folder.path().join("nginx.conf"), configuration).unwrap();
    // nginx's workers are somebody else.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    (folder, content)
}

/// The hop's report of a client that runs `script`, which finds the program in `$TACIT`.
fn run(folder: &Path, script: &str) -> Value {
    let conf = folder.join("nginx.conf").display().to_string();
    let mut words = vec!["--json"];
    words.extend(HOP);
    words.extend(["--", "sh", "-c", script, "--server", "--", "nginx", "-c", &conf]);
    let mut command = shell(&words);
    let output = command.env("TACIT", env!("CARGO_BIN_EXE_tacit")).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_file_is_fetched_whole_over_a_link_that_loses_a_tenth() {
    let Some(_machine) = machine(&["nginx"]) else { return };
    let (folder, content) = served(8_000_000);
    let report = run(folder.path(), "$TACIT fetch http://198.18.0.1/file -o got --json > report.json");
    assert!(fs::read(folder.path().join("got")).unwrap() == content, "the file is another one");
    let fetched: Value =
        serde_json::from_slice(&fs::read(folder.path().join("report.json")).unwrap()).unwrap();
    println!("{fetched:#}\n{}", report["fwp"]);
    assert_eq!(fetched["shim"], "registered");
    assert_eq!(fetched["repair"]["fell_back"], false, "{fetched}");
    assert!(fetched["repair"]["holes"].as_u64().unwrap() > 50, "{fetched}");
    assert!(report["fwp"]["registered_flows"].as_u64().unwrap() > 1, "{report}");
    assert_eq!(report["fwp"]["failed_flows"], 0, "{report}");
}

#[test]
fn a_program_gets_a_whole_file_through_the_proxy() {
    let Some(_machine) = machine(&["nginx", "curl"]) else { return };
    let (folder, content) = served(3_000_000);
    let script = "$TACIT http-proxy --allow-host 198.18.0.1 --json > served.json 2> said & proxy=$!
        until grep -q http_proxy said; do sleep 0.1; done
        http_proxy=http://127.0.0.1:3128 curl -sS --max-time 60 -o got http://198.18.0.1/file; status=$?
        kill $proxy; wait $proxy; exit $status";
    run(folder.path(), script);
    assert!(fs::read(folder.path().join("got")).unwrap() == content, "the file is another one");
    let served: Value =
        serde_json::from_slice(&fs::read(folder.path().join("served.json")).unwrap()).unwrap();
    assert_eq!((&served["repaired"], &served["complete"]), (&true.into(), &true.into()), "{served}");
    assert!(served["holes"].as_u64().unwrap() > 20, "{served}");
}
