//! The behaviour of `tacit shell` as seen by its users.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::helper::words;
use super::support::{
    download, machine, output_text, report, shared_machine, shell, skip, tacit, tacit_for_all,
};

/// The unprivileged user.
const NOBODY: u32 = 65_534;

/// Number of hops started at the same time.
const HOPS_AT_ONCE: usize = 6;

fn status(words: &[&str]) -> Option<i32> {
    shell(words).output().unwrap().status.code()
}

#[test]
fn the_commands_status_is_the_programs() {
    let Some(_machine) = machine(&[]) else { return };
    assert_eq!(status(&["--", "true"]), Some(0));
    assert_eq!(status(&["--", "sh", "-c", "exit 42"]), Some(42));
    assert_eq!(status(&["--", "sh", "-c", "kill -TERM $$"]), Some(128 + 15));
    assert_eq!(status(&["--", "/nonexistent"]), Some(127));
    assert_eq!(status(&["--", "/etc/passwd"]), Some(126));
    assert_eq!(status(&["--", "true", "--server", "--", "/nonexistent"]), Some(127));
}

#[test]
fn bad_input_is_one_line() {
    for (words, what) in [
        (&["nowhere", "--", "true"][..], "nowhere"),
        (&["echo", "hi"], "was -- forgotten before the command?"),
        (
            &["echo"],
            "\"echo\", but a program; allowed: tacit shell [SCENARIO] -- COMMAND…; was -- forgotten?",
        ),
        (&["--scheme", "hck", "--", "true"], "hack"),
        (&["--acks", "none", "--", "true"], "from 1 to 64"),
        (&["--server", "--"], "--server -- SERVER -- COMMAND"),
        (&["--server-log", "x", "--", "true"], "there is no server"),
        (&["--congestion", "cubic\nlink", "--", "true"], "no congestion control"),
        (&["wired-10", "--pcap", "x", "--", "true"], "no Wi-Fi"),
        (&["--congestion", "nope", "--", "true"], "--congestion: this kernel has no \"nope\"; allowed: "),
        (&["--pcap", "/nonexistent/a", "--", "true"], "--pcap: /nonexistent/a: "),
        (&["--server-log", "/nonexistent/a", "--server", "--", "true"], "--server-log: /nonexistent/a: "),
        (&["--set", "wifi.ap-acks=fastack", "--", "true"], "wifi.ap-acks"),
        (&["--background", "2000", "--", "true"], "--background: 2000 is out of range; allowed: 0 to 999"),
    ] {
        let output = shell(words).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", output_text(&output));
        assert_eq!(output_text(&output).lines().count(), 1, "{words:?}: {}", output_text(&output));
        assert!(output_text(&output).contains(what), "{words:?}: {}", output_text(&output));
    }
}

#[test]
fn directory_environment_and_streams_are_the_callers() {
    let Some(_machine) = machine(&[]) else { return };
    let directory = tempfile::tempdir().unwrap();
    let mut child = shell(&["-q", "--", "sh", "-c", "cat; pwd; echo $FAVOURITE $TACIT_PEER $TACIT_PEER6"])
        .current_dir(directory.path())
        .env("FAVOURITE", "tea")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"hello\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let here = directory.path().canonicalize().unwrap();
    let expected = format!("hello\n{}\ntea 198.18.0.1 2001:2:0:0::1\n", here.display());
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}

#[test]
fn the_command_sees_one_way_out_and_only_its_own_processes() {
    let Some(_machine) = machine(&["ip"]) else { return };
    let script = "ip -o link | wc -l; ip route | grep -c default; ls -d /proc/[0-9]* | wc -l";
    let output = shell(&["-q", "--", "sh", "-c", script]).output().unwrap();
    let numbers: Vec<u32> =
        String::from_utf8_lossy(&output.stdout).lines().map(|line| line.trim().parse().unwrap()).collect();
    assert_eq!(numbers[..2], [2, 1], "{}", output_text(&output));
    assert!(numbers[2] <= 4, "{}", output_text(&output));
}

#[test]
fn signals_go_to_the_command() {
    let Some(_machine) = machine(&[]) else { return };
    let script = "trap 'echo got it; exit 5' TERM; echo ready; while :; do sleep 0.05; done";
    let mut child = shell(&["-q", "--", "sh", "-c", script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut ready = [0; 6];
    out.read_exact(&mut ready).unwrap();
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "got it\n");
    assert_eq!(child.wait().unwrap().code(), Some(5));
}

/// The output of a hop whose process is stopped for a quarter of the time once it carries packets. The command exits
/// with 3.
fn standing_still(options: &[&str]) -> Output {
    let directory = tempfile::tempdir().unwrap();
    let ready = directory.path().join("ready");
    let helper = words("helper", "tcp_refused").join(" ");
    let script = format!("{helper} >/dev/null && touch {} && sleep 2; exit 3", ready.display());
    let all = [options, &["--", "sh", "-c", &script]].concat();
    let mut hop = shell(&all).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !ready.exists() {
        assert!(
            hop.try_wait().unwrap().is_none(),
            "it ended: {}",
            output_text(&hop.wait_with_output().unwrap())
        );
        std::thread::park_timeout(Duration::from_millis(5));
    }
    let signal = |name: &str| {
        assert!(Command::new("kill").args([name, &hop.id().to_string()]).status().unwrap().success());
    };
    signal("-STOP");
    std::thread::park_timeout(Duration::from_millis(500));
    signal("-CONT");
    hop.wait_with_output().unwrap()
}

#[test]
fn a_run_that_is_not_valid_says_so_even_when_told_to_be_quiet() {
    let Some(_machine) = machine(&[]) else { return };
    let quiet = standing_still(&["-q"]);
    assert_eq!(quiet.status.code(), Some(3));
    assert!(
        output_text(&quiet).starts_with("tacit: the run is NOT VALID: the machine stood still for "),
        "{}",
        output_text(&quiet)
    );
    assert_eq!(output_text(&quiet).lines().count(), 1, "{}", output_text(&quiet));
    let required = standing_still(&["-q", "--require-valid"]);
    assert_eq!(required.status.code(), Some(122), "{}", output_text(&required));
    let report = standing_still(&["--json", "--require-valid"]);
    assert_eq!(report.status.code(), Some(122));
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!((&report["valid"], &report["exit_status"]), (&Value::from(false), &Value::from(3)));
    let valid = shell(&["-q", "--require-valid", "--", "sh", "-c", "exit 3"]).output().unwrap();
    if valid.status.code() == Some(122) && output_text(&valid).contains("NOT VALID") {
        return skip("the run was not valid");
    }
    assert_eq!((valid.status.code(), output_text(&valid).as_str()), (Some(3), ""));
}

/// A server that dies is reported and fails the run, unless this is allowed. A server that ends successfully is not an
/// error.
#[test]
fn a_server_that_dies_fails_the_run() {
    let Some(_machine) = machine(&[]) else { return };
    let run = |asked: &[&str], server: &str| {
        let words =
            [&["wlan-11n-150", "-q"], asked, &["--server", "--", "sh", "-c", server, "--", "sleep", "0.5"]];
        shell(&words.concat()).output().unwrap()
    };
    let died = run(&[], "exit 3");
    assert_eq!(died.status.code(), Some(1), "{}", output_text(&died));
    assert!(
        output_text(&died).contains("the server ended with 3 before the command ended"),
        "{}",
        output_text(&died)
    );
    let killed = run(&[], "kill -9 $$");
    assert!(output_text(&killed).contains("the server was killed by signal 9"), "{}", output_text(&killed));
    assert_eq!(run(&["--server-may-fail"], "exit 3").status.code(), Some(0));
    for server in ["exit 0", "sleep 5"] {
        let fine = run(&[], server);
        assert_eq!(fine.status.code(), Some(0), "{server}: {}", output_text(&fine));
    }
}

/// For CI: the command's own status takes precedence, then the conditions. A run that is not valid does not pass.
#[test]
fn conditions_judge_a_run_that_is_valid() {
    let Some(_machine) = machine(&["iperf3"]) else { return };
    let directory = tempfile::tempdir().unwrap();
    let junit = directory.path().join("hop.xml");
    let with = |conditions: &[&str], command: &[&str]| {
        let mut words = vec!["wlan-11n-150", "-q", "--require-valid", "--junit", junit.to_str().unwrap()];
        words.extend(conditions.iter().flat_map(|condition| ["--fail-if", condition]));
        words.extend(["--server", "--", "iperf3", "-s", "-1", "--"]);
        words.extend(command);
        let output = shell(&words).output().unwrap();
        (output.status.code(), output_text(&output), fs::read_to_string(&junit).unwrap())
    };
    let download = ["iperf3", "-c", "198.18.0.1", "-R", "-t", "2"];
    let (code, report_of_good, xml) =
        with(&["goodput_mbps < 5", "delay_p95_ms > 2000", "up_goodput_mbps > 20"], &download);
    if code == Some(122) {
        return skip("the run was not valid");
    }
    assert_eq!(code, Some(0), "{report_of_good}");
    assert!(xml.contains(r#"tests="4" skipped="0" failures="0" errors="0""#), "{xml}");
    let (code, report_of_bad, xml) = with(&["goodput_mbps > 5"], &download);
    assert!(matches!(code, Some(1 | 122)), "{report_of_bad}");
    assert!(code == Some(122) || xml.contains("goodput_mbps is "), "{xml}");
    let failing = [&["sh", "-c", "iperf3 -c 198.18.0.1 -R -t 1 >/dev/null; exit 9"][..]].concat();
    let (code, report_of_failing, xml) = with(&["goodput_mbps > 5"], &failing);
    assert!(matches!(code, Some(9 | 122)), "{report_of_failing}");
    assert!(xml.contains("the command ended with 9"), "{xml}");
    let still = standing_still(&["-q", "--fail-if", "goodput_mbps < 5"]);
    assert_eq!(still.status.code(), Some(3), "the command's own: {}", output_text(&still));
    assert!(output_text(&still).contains("the run was not valid"), "{}", output_text(&still));
}

#[test]
fn a_hop_in_the_background_of_an_interactive_shell_leaves_it_the_terminal() {
    let Some(_machine) = machine(&["bash", "script"]) else { return };
    let mut terminal = Command::new("script")
        .args(["-q", "-c", "bash --norc --noprofile -i", "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut keys = terminal.stdin.take().unwrap();
    let mut type_in = |text: String| std::io::Write::write_all(&mut keys, text.as_bytes()).unwrap();
    let program = env!("CARGO_BIN_EXE_tacit");
    type_in(format!("{program} shell -q -- sleep 0.3 &\n"));
    // A foreground command, and an interactive shell that takes over the terminal: both return it.
    type_in("wait; echo after=$((40+2)); ".to_owned());
    type_in(format!("{program} shell -q -- true; echo plain=$((40+3)); "));
    type_in(format!("{program} shell -q -- bash --norc --noprofile -ic 'true'; echo inner=$((40+4))\n"));
    type_in("exit 7\n".to_owned());
    let mut screen = String::new();
    terminal.stdout.take().unwrap().read_to_string(&mut screen).unwrap();
    for line in ["after=42", "plain=43", "inner=44"] {
        assert!(screen.contains(line), "no {line}: {screen}");
    }
    terminal.wait().unwrap();
}

#[test]
fn hops_nest() {
    let Some(_machine) = shared_machine(&["ip"]) else { return };
    let inner = env!("CARGO_BIN_EXE_tacit");
    let helper = words("helper", "udp_ask").join(" ");
    // From within two nested hops. The server is at the far end of the outer one.
    let script =
        format!("{inner} shell wired-10 -q -- sh -c 'echo $TACIT_PEER; TACIT_PEER=198.18.0.1 {helper}'");
    let mut all = vec!["-q".to_owned(), "--".into(), "sh".into(), "-c".into(), script, "--server".into()];
    all.push("--".into());
    all.extend(words("helper", "udp_echo"));
    let output = shell(&all.iter().map(String::as_str).collect::<Vec<_>>()).output().unwrap();
    assert!(output.status.success(), "{}", output_text(&output));
    // A run that is not valid is reported on standard error.
    assert!(output.stdout.starts_with(b"198.18.1.1\n"), "{}", output_text(&output));
}

#[test]
fn hops_that_start_at_once_have_addresses_of_their_own() {
    let Some(_machine) = machine(&["ip"]) else { return };
    // Each ends after all have started.
    let start = || {
        let mut command = shell(&["-q", "--", "sh", "-c", "echo $TACIT_PEER; read end; true"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut hops: Vec<_> = (0..HOPS_AT_ONCE).map(|_| start()).collect();
    let mut peers = BTreeSet::new();
    for hop in &mut hops {
        let mut peer = String::new();
        BufReader::new(hop.stdout.take().unwrap()).read_line(&mut peer).unwrap();
        peers.insert(peer);
    }
    for mut hop in hops {
        drop(hop.stdin.take());
        let output = hop.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", output_text(&output));
    }
    assert_eq!(peers.len(), HOPS_AT_ONCE, "{peers:?}");
    assert!(peers.contains("198.18.0.1\n"), "{peers:?}");
}

#[test]
fn root_is_not_needed_where_the_other_side_is_private() {
    let Some(_machine) = machine(&["ip"]) else { return };
    let directory = tempfile::tempdir().unwrap();
    let program = tacit_for_all(directory.path());
    let as_nobody = |words: &[&str]| {
        let mut command = Command::new(&program);
        command.args(words).current_dir("/").uid(NOBODY).gid(NOBODY).output().unwrap()
    };
    let doctor = as_nobody(&["doctor", "--json"]);
    let diagnosis: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let refused = as_nobody(&["shell", "-q", "--", "true"]);
    assert_eq!(refused.status.code(), Some(125), "{}", output_text(&refused));
    assert_eq!(output_text(&refused).lines().count(), 1, "{}", output_text(&refused));
    let tun =
        diagnosis["checks"].as_array().and_then(|checks| checks.iter().find(|check| check["name"] == "tun"));
    let advice = match tun.map(|tun| tun["works"] == true) {
        // Private networks do not help against the mode of the device file.
        Some(false) => "chmod 0666 /dev/net/tun",
        _ => "--server",
    };
    assert!(output_text(&refused).contains(advice), "{}", output_text(&refused));
    if diagnosis["live"] != true {
        skip(&format!("no unprivileged namespaces here: {}", diagnosis["checks"]));
        return;
    }
    let output = as_nobody(&["shell", "-q", "--", "sh", "-c", "exit 9", "--server", "--", "sleep", "9"]);
    assert_eq!(output.status.code(), Some(9), "{}", output_text(&output));
}

#[test]
fn a_run_that_fell_behind_gives_no_numbers() {
    let Some(_machine) = machine(&[]) else { return };
    let report: Value = serde_json::from_slice(&standing_still(&["--json"]).stdout).unwrap();
    assert_eq!(report["valid"], false, "{report}");
    assert!(report["transfer"].is_null() && report["airtime"].is_null(), "{report}");
    assert!(report["reasons"][0].as_str().unwrap().contains("stood still"), "{report}");
}

#[test]
fn datagrams_of_all_sizes_come_back() {
    let Some(_machine) = shared_machine(&[]) else { return };
    let mut all: Vec<String> = ["--json", "--scheme", "hack-more-data", "--"].map(str::to_owned).to_vec();
    all.extend(words("helper", "udp_ask"));
    all.extend(["--server", "--"].map(str::to_owned));
    all.extend(words("helper", "udp_echo"));
    let output = shell(&all.iter().map(String::as_str).collect::<Vec<_>>()).output().unwrap();
    assert!(output.status.success(), "{}", output_text(&output));
}

#[test]
fn json_has_the_promised_keys() {
    let Some(_machine) = shared_machine(&["iperf3"]) else { return };
    let report = report(&download(&["--json", "--scheme", "hack-more-data"], "2"));
    for key in [
        "scenario",
        "scheme",
        "seed",
        "ack_mode",
        "valid",
        "reasons",
        "exit_status",
        "seconds",
        "transfer",
        "airtime",
        "station_airtime",
        "hack",
        "lateness",
        "waits",
        "refused_packets",
        "cpu_s",
        "cpu_s_per_gbit",
    ] {
        assert!(report.get(key).is_some(), "{key}");
    }
    if report["valid"] != true {
        skip(&format!("its numbers were not looked at: {}", report["reasons"]));
        return;
    }
    let down = &report["transfer"]["down"];
    for sum in ["sum_sent", "sum_received"] {
        for key in ["start", "end", "seconds", "bytes", "bits_per_second"] {
            assert!(down["end"][sum][key].is_number(), "{sum}.{key}");
        }
    }
    let delay =
        ["p50_ms", "p95_ms", "p99_ms", "max_ms"].map(|key| down["end"]["delay"][key].as_f64().unwrap());
    assert!(delay.is_sorted() && delay[0] > 0.0, "{delay:?}");
    let packets = ["packets_sent", "packets_received", "packets_dropped"];
    let [sent, received, dropped] = packets.map(|key| down["end"][key].as_u64().unwrap());
    assert_eq!(sent, received + dropped);
    assert_eq!(report["refused_packets"], 0);
    assert!(down["intervals"][0]["sum"]["bytes"].as_u64().unwrap() > 0);
    assert!(down["end"]["ack_ratio"].as_f64().unwrap() > 0.0);
    let shares: f64 =
        report["airtime"][0].as_object().unwrap().values().map(|share| share.as_f64().unwrap()).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}");
    let stations = report["station_airtime"][0].as_array().unwrap();
    let [access_point, client] = [0, 1].map(|station| stations[station].as_f64().unwrap());
    // No other station is there. A wait at the run's end belongs to no station.
    let used = 1.0 - report["airtime"][0]["idle"].as_f64().unwrap();
    assert!((access_point + client - used).abs() < 0.01, "{stations:?} of {used}");
    assert!(client > 0.0 && client < access_point / 2.0, "{stations:?}");
    let client = &report["hack"][1];
    assert!(client["compressed_acks"].as_u64().unwrap() > 100, "{client}");
    assert_eq!(client["failed_frames"], 0);
    for side in ["command", "server"] {
        assert!(report["waits"][side]["turns"].as_u64().unwrap() > 10, "{}", report["waits"]);
    }
}

/// The number of frames in a capture that match `filter`, according to tshark.
fn frames(capture: &Path, filter: &str) -> usize {
    let capture = capture.to_str().unwrap();
    let output = Command::new("tshark")
        .args(["-r", capture, "-Y", filter, "-T", "fields", "-e", "frame.number"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", output_text(&output));
    String::from_utf8_lossy(&output.stdout).lines().count()
}

#[test]
fn packets_go_in_the_access_category_of_their_code_point() {
    let Some(_machine) = shared_machine(&["iperf3", "tshark"]) else { return };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("air.pcapng");
    // 184 is EF in the byte that contains the code point.
    let client = "iperf3 -c 198.18.0.1 -u -b 2M -l 1000 -S 184 -k 250";
    let mut command =
        vec!["--set", "wifi.access-categories=all", "--json", "--pcap", file.to_str().unwrap(), "--"];
    command.extend(client.split(' '));
    command.extend(["--server", "--", "iperf3", "-s", "-1"]);
    report(&command);
    let voice = frames(&file, "wlan.qos.tid == 6 && udp.length == 1008");
    assert!((230..=260).contains(&voice), "{voice} of 250 datagrams at 2 Mb/s");
    assert_eq!(frames(&file, "wlan.qos.tid != 6 && udp.length == 1008"), 0);
    assert!(frames(&file, "wlan.qos.tid == 0 && tcp.port == 5201") > 5, "the control connection");
}

#[test]
fn the_air_can_be_read_by_others() {
    let Some(_machine) = shared_machine(&["iperf3", "tshark"]) else { return };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("air.pcapng");
    report(&download(&["--json", "--scheme", "hack-more-data", "--pcap", file.to_str().unwrap()], "1"));
    let read = |filter: &str| frames(&file, filter);
    assert!(read("tcp.port == 5201 && tcp.len > 0") > 500);
    assert!(read("wlan.fc.type_subtype == 0x19") > 20, "Block Acks");
    assert_eq!(read("_ws.malformed"), 0);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "no temporary file is left");
}

#[test]
fn doctor_says_what_works() {
    let output = tacit().args(["doctor", "--json"]).output().unwrap();
    let diagnosis: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.success(), diagnosis["live"] == true);
    assert!(diagnosis["checks"].as_array().unwrap().len() >= 4);
}

#[test]
fn a_terminal_stays_one() {
    let Some(_machine) = machine(&["script"]) else { return };
    let program = env!("CARGO_BIN_EXE_tacit");
    let inside = "test -t 0 && test -t 1 && test -t 2 && echo a terminal; exit 6";
    let output = Command::new("script")
        .args(["-qec", &format!("{program} shell -q -- sh -c '{inside}'"), "/dev/null"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(6), "{}", output_text(&output));
    assert!(output_text(&output).contains("a terminal"), "{}", output_text(&output));
}
