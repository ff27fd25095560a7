//! `tacit fetch` and `tacit http-proxy` in a hop under FWP, from nginx.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use super::helper::words;
use super::player::byte;
use super::support::{machine, output_text, shell};

/// The bytes of a file, in which no two packets are equal.
fn content(bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(byte).collect()
}

/// A directory with a file, and an nginx configuration that serves it.
pub fn served(bytes: usize) -> (TempDir, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let content = content(bytes);
    fs::write(folder.path().join("file"), &content).unwrap();
    let configuration = format!(
        "daemon off; pid {0}/pid; error_log {0}/errors; events {{}}\nhttp {{ access_log off; types {{ text/html html; \
         image/bmp bmp; }} server {{ listen 80; root {0}; }} }}\n",
        folder.path().display()
    );
    fs::write(folder.path().join("nginx.conf"), configuration).unwrap();
    // nginx's workers run as another user.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    (folder, content)
}

/// The hop's report of a client that runs `script` with FWP; `$TACIT` contains the path of the program. A fraction
/// `fer` of the downlink frames is lost, and the link does not retransmit.
pub fn run(folder: &Path, fer: &str, script: &str) -> Value {
    run_in(&["--scheme", "fwp"], folder, fer, script)
}

/// The same for a hop with the options `hop`.
pub fn run_in(hop: &[&str], folder: &Path, fer: &str, script: &str) -> Value {
    let conf = folder.join("nginx.conf").display().to_string();
    let losses = format!("wifi.mpdu-error={{ down = \"{fer}\", up = \"0 %\" }}");
    let words = [
        hop,
        &["--json", "--set", &losses],
        &["--", "sh", "-c", script, "--server", "--", "nginx", "-c", &conf],
    ];
    let mut command = shell(&words.concat());
    command.env("PLAYER", self::words("player", "play").join(" "));
    let output = command.env("TACIT", env!("CARGO_BIN_EXE_tacit")).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", output_text(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A script that runs `programs` with a proxy, which writes a line per request.
pub fn through_proxy(programs: &str) -> String {
    format!(
        "$TACIT http-proxy --allow-host 198.18.0.1 --parallel ${{PARALLEL:-16}} --json > served.json 2> stderr & proxy=$!
        until grep -q http_proxy stderr; do sleep 0.1; done
        export http_proxy=http://127.0.0.1:3128
        {programs}
        status=$?; kill $proxy; wait $proxy; exit $status"
    )
}

/// The output lines of the proxy in `folder`.
pub fn lines(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("served.json")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_file_is_fetched_whole_over_a_link_that_loses_a_tenth() {
    let Some(_machine) = machine(&["nginx"]) else { return };
    let (folder, content) = served(8_000_000);
    let script = "$TACIT fetch http://198.18.0.1/file -o got --json > report.json";
    let report = run(folder.path(), "10 %", script);
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

/// Three concurrent programs download two files each over a persistent connection, and one of them requests a range.
#[test]
fn programs_get_identical_files_through_the_proxy_at_every_loss() {
    let Some(_machine) = machine(&["nginx", "curl"]) else { return };
    // Smaller files at higher losses, because most of the time is spent in TCP's first flights, which have no
    // placeholders.
    let losses =
        [("0 %", 1_000_000), ("1 %", 1_000_000), ("10 %", 1_000_000), ("20 %", 300_000), ("40 %", 40_000)];
    for (fer, bytes) in losses {
        let (folder, content) = served(bytes);
        let (start, last) = (bytes / 4, bytes - bytes / 8);
        let programs = format!(
            "for i in 1 2 3; do
                curl -sS --max-time 60 -w '%{{num_connects}}\\n' -o whole$i http://198.18.0.1/file -o again$i \
                    http://198.18.0.1/file?$i > connects$i & all=\"$all $!\"
            done
            curl -sS --max-time 60 -r {start}-{last} -o part http://198.18.0.1/file & all=\"$all $!\"
            for one in $all; do wait $one || exit 9; done"
        );
        #[allow(clippy::disallowed_methods, reason = "this is the edge where time is real")]
        let begun = std::time::Instant::now();
        // The driver counts frames lost in collisions, too. The paper's switch knows what the link is expected to lose.
        let switch = ["--scheme", "fwp", "--set", "fwp.placeholders=tcp", "--set", "fwp.expected-loss=0 %"];
        let hop = if fer == "0 %" { &switch[..] } else { &switch[..2] };
        let report = run_in(hop, folder.path(), fer, &through_proxy(&programs));
        let took = begun.elapsed();
        for program in 1..=3 {
            for name in ["whole", "again"] {
                let got = fs::read(folder.path().join(format!("{name}{program}"))).unwrap();
                assert!(got == content, "{fer}: {name}{program} is another file");
            }
            let connects = fs::read_to_string(folder.path().join(format!("connects{program}"))).unwrap();
            assert_eq!(connects, "1\n0\n", "{fer}: one connection, two files");
        }
        let got = fs::read(folder.path().join("part")).unwrap();
        assert!(got == content[start..=last], "{fer}: the part is another one");
        let served = lines(folder.path());
        assert_eq!(served.len(), 7, "{fer}: {served:?}");
        assert!(
            served.iter().all(|served| served["complete"] == true && served["repaired"] == true),
            "{fer}: {served:?}"
        );
        let holes: u64 = served.iter().map(|served| served["holes"].as_u64().unwrap()).sum();
        println!("{fer}: {bytes} bytes seven times, {holes} holes, in {took:?}");
        // If the link is expected to lose nothing, no hole can be attributed to it.
        assert_eq!(holes > 0, fer != "0 %", "{fer}: {holes} holes: {}", report["fwp"]);
        assert_eq!(report["fwp"]["failed_flows"], 0, "{fer}: {report}");
    }
}
