//! `tacit rre`: a congestion control in the kernel of this machine.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};
use std::sync::RwLockWriteGuard;
use std::time::Duration;

use serde_json::Value;

use super::killed::Machine;
use super::support::{machine, output_text, shell, skip, tacit, tacit_for_all};

/// Number of different times at which commands are killed, and the interval between these times.
const KILLS: u32 = 30;
const KILLS_APART: Duration = Duration::from_millis(4);

/// The machine, if the congestion control can be loaded.
fn able_machine(programs: &[&str]) -> Option<RwLockWriteGuard<'static, ()>> {
    machine_for(&["rre"], programs)
}

/// The machine, if flows can be listed too.
fn listing_machine(programs: &[&str]) -> Option<RwLockWriteGuard<'static, ()>> {
    machine_for(&["rre", "rre status"], programs)
}

/// The machine, if all `checks` of `tacit doctor` succeed.
fn machine_for(checks: &[&str], programs: &[&str]) -> Option<RwLockWriteGuard<'static, ()>> {
    let guard = machine(programs)?;
    let doctor = tacit().args(["doctor", "--json"]).output().unwrap();
    let doctor: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let found = doctor["checks"].as_array().unwrap();
    for name in checks {
        let check = found.iter().find(|check| check["name"] == *name).unwrap();
        if check["works"] != true {
            skip(&format!("tacit doctor says: {name}: {}", check["found"]));
            return None;
        }
    }
    Some(guard)
}

fn rre(words: &[&str]) -> Command {
    let mut command = tacit();
    command.arg("rre").args(words);
    command
}

fn flows() -> Vec<Value> {
    let output = rre(&["status", "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", output_text(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// New flows since `before`. A socket that was closed when its network disappeared is listed until TCP gives up.
fn flows_since(before: &[Value]) -> Vec<Value> {
    let is = |a: &Value, b: &Value| ["namespace", "local", "peer"].iter().all(|key| a[*key] == b[*key]);
    flows().into_iter().filter(|flow| !before.iter().any(|old| is(flow, old))).collect()
}

/// Waits for a condition, for at most five seconds.
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..250 {
        if holds() {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
    panic!("never: {what}");
}

/// A child process that is killed if the test fails.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn started(mut command: Command) -> Killed {
    Killed(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap())
}

/// First line that a child writes to standard error.
fn first_line(child: &mut Killed) -> String {
    let mut line = String::new();
    BufReader::new(child.0.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    line
}

/// A download over a wire of 10 Mb/s in separate namespaces. The server's socket is the sender.
const DOWNLOAD: &str =
    "exec \"$0\" shell wired-10 -q --server -- iperf3 -s -1 -- iperf3 -c 198.18.0.1 -R -t 3";

fn download_with(words: &[&str]) -> Command {
    let mut command = rre(words);
    command.args(["--", "sh", "-c", DOWNLOAD, env!("CARGO_BIN_EXE_tacit")]);
    command
}

#[test]
fn a_download_over_a_hop_uses_it_and_status_shows_the_flow() {
    let Some(_machine) = listing_machine(&["ip", "iperf3"]) else { return };
    let before = flows();
    let mut run = started(download_with(&["run"]));
    let sends = |flow: &Value| {
        flow["local"].as_str().unwrap().starts_with("198.18.0.1:")
            && flow["receive_rate_bps"].as_u64().unwrap() > 1_000_000
    };
    let mut flow = None;
    wait_until("a flow that sends", || {
        flow = flows_since(&before).into_iter().find(sends);
        flow.is_some()
    });
    let flow = flow.unwrap();
    assert_eq!((&flow["control"], &flow["clock"]), (&"tacit_rre".into(), &"trusted".into()), "{flow}");
    assert!(flow["receive_rate_bps"].as_u64().unwrap() < 20_000_000, "{flow}");
    assert!(run.0.wait().unwrap().success());
}

/// A target of 2 s at 250 kb/s corresponds to about 300 ms at 10 Mb/s; the default of 80 ms to 13 ms. The queue holds
/// one second.
#[test]
fn a_longer_target_keeps_more_in_the_buffer() {
    let Some(_machine) = listing_machine(&["ip", "iperf3"]) else { return };
    let longest_us = |words: &[&str]| {
        let before = flows();
        let mut download = rre(words);
        let deep = DOWNLOAD.replace("wired-10", "wired-10 --set 'wired.queue=1000 packets'");
        download.args(["--", "sh", "-c", &deep, env!("CARGO_BIN_EXE_tacit")]);
        let mut run = started(download);
        let mut longest_us = 0;
        while run.0.try_wait().unwrap().is_none() {
            let delays = flows_since(&before).into_iter().filter_map(|flow| flow["buffer_delay_us"].as_u64());
            longest_us = delays.fold(longest_us, u64::max);
            std::thread::park_timeout(Duration::from_millis(20));
        }
        longest_us
    };
    let (usual_us, longer_us) = (longest_us(&["run"]), longest_us(&["run", "--target-ms", "2000"]));
    assert!(longer_us > 2 * usual_us && longer_us > 80_000, "{usual_us} and {longer_us} us");
}

#[test]
fn it_works_behind_a_hop_too() {
    let Some(_machine) = listing_machine(&["ip", "iperf3"]) else { return };
    let inner = format!(
        "{0} rre run -- sh -c 'iperf3 -c 198.18.0.1 -t 2 >&2 & sleep 1; {0} rre status'",
        env!("CARGO_BIN_EXE_tacit")
    );
    let words = ["shell", "wired-10", "-q", "--server", "--", "iperf3", "-s", "-1", "--", "sh", "-c", &inner];
    let output = tacit().args(words).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("198.18.0.2:"), "{}", output_text(&output));
}

#[test]
fn nothing_but_the_command_uses_it() {
    let Some(_machine) = listing_machine(&["iperf3"]) else { return };
    let before = flows();
    let _run = started(rre(&["run", "--", "sleep", "10"]));
    let listed = || std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    wait_until("the control is there", || listed().contains("tacit_rre"));
    let _server = started({
        let mut server = Command::new("iperf3");
        server.args(["-s", "-1", "-p", "15201"]);
        server
    });
    let listens = |file: &str| {
        let sockets = std::fs::read_to_string(file).unwrap_or_default();
        // Port 15201 in state 0A, which is LISTEN.
        sockets.lines().any(|line| line.contains(":3B61 ") && line.contains(" 0A "))
    };
    wait_until("the server listens", || listens("/proc/net/tcp") || listens("/proc/net/tcp6"));
    let mut client = Command::new("iperf3");
    client.args(["-c", "127.0.0.1", "-p", "15201", "-t", "1"]);
    let mut client = started(client);
    std::thread::park_timeout(Duration::from_millis(500));
    assert_eq!(flows_since(&before), Vec::<Value>::new());
    assert!(client.0.wait().unwrap().success());
}

#[test]
fn the_exit_status_is_the_commands() {
    let Some(_machine) = able_machine(&[]) else { return };
    let code = |words: &[&str]| rre(words).stderr(Stdio::null()).status().unwrap().code();
    assert_eq!(code(&["run", "--", "sh", "-c", "exit 7"]), Some(7));
    assert_eq!(code(&["run", "--", "sh", "-c", "kill -TERM $$"]), Some(128 + 15));
    assert_eq!(code(&["run", "--", "there-is-no-such-program"]), Some(127));
    assert_eq!(code(&["run", "--", "/etc/passwd"]), Some(126));
}

#[test]
fn signals_are_the_commands_business() {
    let Some(_machine) = able_machine(&[]) else { return };
    let script = "trap 'exit 9' TERM; echo ready >&2; while :; do sleep 0.05; done";
    let mut run = started(rre(&["run", "--", "sh", "-c", script]));
    assert_eq!(first_line(&mut run), "ready\n");
    let terminated = Command::new("kill").args(["-TERM", &run.0.id().to_string()]).status().unwrap();
    assert!(terminated.success());
    assert_eq!(run.0.wait().unwrap().code(), Some(9));
}

#[test]
fn two_at_once_have_controls_of_their_own() {
    let Some(_machine) = able_machine(&[]) else { return };
    let listed = || std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    let _first = started(rre(&["run", "--", "sleep", "10"]));
    wait_until("the first", || listed().split_whitespace().any(|name| name == "tacit_rre"));
    let _second = started(rre(&["run", "--", "sleep", "10"]));
    wait_until("the second", || listed().split_whitespace().any(|name| name == "tacit_rre2"));
}

/// In each of two hops, it is the first process of its PID namespace.
#[test]
fn two_of_one_process_number_do_not_meet() {
    let Some(_machine) = able_machine(&["unshare"]) else { return };
    let both = [(); 2].map(|()| {
        let mut first = Command::new("unshare");
        first.args(["--pid", "--fork", env!("CARGO_BIN_EXE_tacit"), "rre", "run", "--", "sleep", "2"]);
        started(first)
    });
    for mut one in both {
        let status = one.0.wait().unwrap();
        let mut text = String::new();
        one.0.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        assert!(status.success(), "{text}");
    }
}

/// The machine, after removing groups that other tests' hops left behind.
fn machine_without_groups(mark: &str) -> Machine {
    assert!(rre(&["run", "--", "true"]).status().unwrap().success());
    Machine::now(mark)
}

#[test]
fn killed_at_any_moment_nothing_is_left() {
    let Some(_machine) = able_machine(&[]) else { return };
    let mark = format!("7{:05}.5", std::process::id() % 100_000);
    let before = machine_without_groups(&mark);
    let orphan = format!("sleep {mark} & setsid sleep {mark} & sleep {mark}");
    for kill in 0..KILLS {
        let mut run = started(rre(&["run", "--", "sh", "-c", &orphan]));
        std::thread::park_timeout(KILLS_APART * kill);
        run.0.kill().unwrap();
        run.0.wait().unwrap();
    }
    // If a run is killed before it has started a watcher, the next run removes its group.
    assert!(rre(&["run", "--", "true"]).status().unwrap().success());
    assert_eq!(Machine::settled(&before, &mark), before);
}

/// The namespace of the server's side is killed together with the process that would have removed the group.
#[test]
fn a_server_that_a_hop_ends_leaves_no_group() {
    let Some(_machine) = able_machine(&[]) else { return };
    let mark = format!("5{:05}.5", std::process::id() % 100_000);
    let before = machine_without_groups(&mark);
    let program = env!("CARGO_BIN_EXE_tacit");
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready");
    let wait = format!("until [ -e {} ]; do sleep 0.05; done", ready.display());
    let serve = format!("touch {}; sleep {mark}", ready.display());
    let words =
        ["-q", "--", "sh", "-c", &wait, "--server", "--", program, "rre", "run", "--", "sh", "-c", &serve];
    let output = shell(&words).output().unwrap();
    assert!(output.status.success(), "{}", output_text(&output));
    assert_eq!(Machine::settled(&before, &mark), before);
}

#[test]
fn processes_that_a_command_leaves_running_end_with_it() {
    let Some(_machine) = able_machine(&[]) else { return };
    let mark = format!("6{:05}.5", std::process::id() % 100_000);
    let before = Machine::now(&mark);
    let status = rre(&["run", "--", "sh", "-c", &format!("setsid sleep {mark} & exit 3")]).status().unwrap();
    assert_eq!(status.code(), Some(3));
    assert_eq!(Machine::settled(&before, &mark), before);
}

/// A network namespace with a loopback interface, which exists as long as this value.
struct Namespace(Killed);

impl Namespace {
    fn make() -> Self {
        let mut holder = Command::new("unshare");
        holder.args(["-n", "sh", "-c", "ip link set lo up; echo ready >&2; exec sleep 60"]);
        let mut holder = started(holder);
        assert_eq!(first_line(&mut holder), "ready\n");
        Self(holder)
    }

    fn path(&self) -> String {
        format!("/proc/{}/ns/net", self.0.0.id())
    }

    /// One second of iperf3 over the loopback interface.
    fn transfer(&self) -> Killed {
        let path = format!("--net={}", self.path());
        let mut both = Command::new("nsenter");
        both.args([&path, "sh", "-c", "iperf3 -s -1 & sleep 0.3; exec iperf3 -c 127.0.0.1 -t 1"]);
        started(both)
    }
}

#[test]
fn a_namespace_uses_it_until_it_is_stopped_and_no_other_does() {
    let Some(_machine) = listing_machine(&["ip", "iperf3", "unshare", "nsenter"]) else { return };
    let before = flows();
    let (ours, other) = (Namespace::make(), Namespace::make());
    let mut attached = started(rre(&["attach", "--netns", &ours.path()]));
    assert!(first_line(&mut attached).contains("use tacit_rre"), "not attached");
    let inode =
        std::fs::metadata(ours.path()).map(|file| std::os::unix::fs::MetadataExt::ino(&file)).unwrap();
    let mut transfers = [ours.transfer(), other.transfer()];
    wait_until("flows of the namespace", || !flows_since(&before).is_empty());
    let seen = flows_since(&before);
    assert!(seen.iter().all(|flow| flow["namespace"] == inode), "{seen:?}");
    for transfer in &mut transfers {
        assert!(transfer.0.wait().unwrap().success());
    }
    assert!(Command::new("kill").arg(attached.0.id().to_string()).status().unwrap().success());
    assert_eq!(attached.0.wait().unwrap().code(), Some(0));
    let before = flows();
    let mut transfer = ours.transfer();
    std::thread::park_timeout(Duration::from_millis(700));
    assert_eq!(flows_since(&before), Vec::<Value>::new());
    assert!(transfer.0.wait().unwrap().success());
}

#[test]
fn prometheus_gets_its_text() {
    let Some(_machine) = listing_machine(&["ip", "iperf3"]) else { return };
    let mut metrics = started(rre(&["status", "--metrics", "127.0.0.1:0"]));
    let line = first_line(&mut metrics);
    let address = line.trim().strip_prefix("tacit: metrics at http://").unwrap().trim_end_matches("/metrics");
    let get = || {
        let mut reader = TcpStream::connect(address).unwrap();
        reader.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        text
    };
    let idle = get();
    assert!(idle.starts_with("HTTP/1.1 200 OK\r\n"), "{idle}");
    let mut run = started(download_with(&["run"]));
    let lines = |text: &str| text.lines().filter(|line| line.starts_with("tacit_rre_state{")).count();
    wait_until("one more flow", || lines(&get()) > lines(&idle));
    assert!(run.0.wait().unwrap().success());
}

#[test]
fn without_privileges_it_is_refused_in_one_sentence() {
    let Some(_machine) = listing_machine(&["setpriv"]) else { return };
    let directory = tempfile::tempdir().unwrap();
    let program = tacit_for_all(directory.path());
    let nobody = |words: &[&str]| -> Output {
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(&program)
            .arg("rre")
            .args(words);
        command.output().unwrap()
    };
    for words in [&["run", "--", "true"][..], &["status"], &["attach", "--cgroup", "/sys/fs/cgroup/unified"]]
    {
        let output = nobody(words);
        assert_eq!(output.status.code(), Some(125), "{words:?}: {}", output_text(&output));
        let text = output_text(&output);
        assert!(text.lines().count() == 1 && text.contains("run as root"), "{text}");
    }
}

#[test]
fn cgroups_that_cannot_be_attached_to_are_bad_input() {
    let Some(_machine) = able_machine(&[]) else { return };
    for words in [["--cgroup", "/proc"], ["--netns", "there-is-no-such-namespace"]] {
        let output = rre(&["attach", words[0], words[1]]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", output_text(&output));
        assert!(
            output_text(&output).starts_with(&format!("tacit: {}: ", words[0])),
            "{}",
            output_text(&output)
        );
    }
}
