//! `bench/copies.sh` compares `tacit cp` with scp and rsync. This test checks that each of them copies through a hop
//! and is timed; it does not check the durations.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::support::{output_text, shared_machine};

#[test]
fn three_programs_copy_one_file_and_many() {
    let Some(_machine) = shared_machine(&["ssh", "sshd", "scp", "rsync"]) else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../bench/copies.sh");
    let mut command = Command::new(script);
    command.args([
        "--tacit",
        env!("CARGO_BIN_EXE_tacit"),
        "--rounds",
        "1",
        "--bytes",
        "2000000",
        "--files",
        "30",
    ]);
    let output = command.args(["--hop", "wlan-11n-300 wired.delay=5ms"]).output().unwrap();
    assert!(output.status.success(), "{}", output_text(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().map_while(|line| serde_json::from_str::<Value>(line).ok());
    let copies: Vec<_> = lines
        .map(|line| {
            assert!(line["duration_s"].as_f64().is_some_and(|seconds| seconds > 0.0), "{line}");
            [&line["what"], &line["tool"]].map(|name| name.as_str().unwrap().to_owned())
        })
        .collect();
    let expected = ["large", "small"].map(|what| ["tack-cp", "scp", "rsync"].map(|tool| [what, tool]));
    assert_eq!(copies, expected.as_flattened(), "{text}");
    assert!(text.contains("medians of 1 in seconds; large: 2000000 bytes, small: 30 files"), "{text}");
}
