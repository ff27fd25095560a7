//! `tacit thin` in networks of its own: a client behind a slow uplink, and a server.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use super::support::{machine, output_text, skip, tacit};

/// The program that has a namespace of its own in this test.
const CLIENT: &str = "tacit-thin-client";
const SERVER: &str = "tacit-thin-server";
/// A server that sends the requested number of bytes, and a client that counts them.
const SEND: &str = "import socket\n\
                    s = socket.create_server(('::', 8000), family=socket.AF_INET6, dualstack_ipv6=True)\n\
                    print('ready', flush=True)\n\
                    while True:\n    c, _ = s.accept()\n    c.sendall(bytes(int(c.recv(20))))\n    c.close()\n";
const RECEIVE: &str = "import socket, sys, time\n\
                       start = time.monotonic()\n\
                       c = socket.create_connection((sys.argv[1], 8000))\n\
                       c.sendall(sys.argv[2].encode())\n\
                       n = 0\n\
                       while part := c.recv(65536):\n    n += len(part)\n\
                       print(n, time.monotonic() - start)\n";

/// Two networks that end with the test: the client's uplink has 100 kb/s and its downlink 8 Mb/s, 25 ms each way. The
/// server has an address behind the wire, which only the default route leads to.
struct Networks;

impl Networks {
    fn new() -> Option<Self> {
        drop(Self);
        let script = format!(
            "netns add {CLIENT}\nnetns add {SERVER}\n\
             link add up0 netns {CLIENT} type veth peer name down0 netns {SERVER}\n"
        );
        let created = ip(&["-batch", "-"], Some(&script));
        let networks = Self;
        if !created.status.success() {
            skip(&output_text(&created));
            return None;
        }
        let client = "addr add 10.9.0.2/24 dev up0\naddr add 2001:db8:9::2/64 dev up0 nodad\nlink set lo up\nlink set up0 up\n\
             route add default via 10.9.0.1\nroute add default via 2001:db8:9::1 dev up0\n";
        let server = "addr add 10.9.0.1/24 dev down0\naddr add 2001:db8:9::1/64 dev down0 nodad\n\
             addr add 192.0.2.1/32 dev lo\naddr add 2001:db8::1/128 dev lo nodad\nlink set lo up\nlink set down0 up\n";
        for (name, script) in [(CLIENT, client), (SERVER, server)] {
            let output = ip(&["-n", name, "-batch", "-"], Some(script));
            assert!(output.status.success(), "{}", output_text(&output));
        }
        let shaped = [(CLIENT, "up0", "100kbit"), (SERVER, "down0", "8mbit")].map(|(name, device, rate)| {
            let words = [
                "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", rate, "burst", "1600", "limit",
                "150000",
            ];
            inside(name, &words).output().unwrap()
        });
        if let Some(failed) = shaped.iter().find(|output| !output.status.success()) {
            skip(&output_text(failed));
            return None;
        }
        // Segments are to stay apart, as at 8 Mb/s on a real wire.
        for (name, device) in [(CLIENT, "up0"), (SERVER, "down0")] {
            let _ = inside(name, &["ip", "link", "set", "dev", device, "gso_max_segs", "1"]).output();
        }
        Some(networks)
    }
}

impl Drop for Networks {
    fn drop(&mut self) {
        for name in [CLIENT, SERVER] {
            let _ = ip(&["netns", "del", name], None);
        }
    }
}

fn ip(words: &[&str], input: Option<&str>) -> Output {
    use std::io::Write as _;
    let mut command = Command::new("ip");
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.unwrap_or_default().as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn inside(name: &str, words: &[&str]) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", name]).args(words);
    command
}

/// A child process that is killed if the test fails.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a command and waits for its first line, on standard error or output.
fn started(command: Command, on_error: bool) -> (Killed, String) {
    started_until(command, on_error, "")
}

/// Starts a command and waits for the first line with `wanted`, on standard error or output. Returns the lines up to it.
fn started_until(mut command: Command, on_error: bool, wanted: &str) -> (Killed, String) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines: Box<dyn BufRead> = if on_error {
        Box::new(BufReader::new(child.stderr.as_mut().unwrap()))
    } else {
        Box::new(BufReader::new(child.stdout.as_mut().unwrap()))
    };
    let mut read = Vec::new();
    for line in lines.lines().map(Result::unwrap) {
        let is_wanted = line.contains(wanted);
        read.push(line);
        if is_wanted {
            break;
        }
    }
    (Killed(child), read.join("\n"))
}

/// A server that has begun to listen.
fn server() -> Killed {
    let (server, ready) = started(inside(SERVER, &["python3", "-c", SEND]), false);
    assert_eq!(ready, "ready");
    server
}

/// The server's addresses behind the wire.
const V4: &str = "192.0.2.1";
const V6: &str = "2001:db8::1";

/// Bytes of a download, and seconds.
fn download(from: &str, size: &str) -> (u64, f64) {
    download_by(CLIENT, from, size)
}

fn download_by(client: &str, from: &str, size: &str) -> (u64, f64) {
    let output = inside(client, &["python3", "-c", RECEIVE, from, size]).output().unwrap();
    assert!(output.status.success(), "{}", output_text(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let (bytes, seconds) = text.trim().split_once(' ').unwrap();
    (bytes.parse().unwrap(), seconds.parse().unwrap())
}

fn state() -> [String; 3] {
    [["-n", CLIENT, "-br", "link"], ["-n", CLIENT, "-4", "route"], ["-n", CLIENT, "-6", "route"]]
        .map(|words| String::from_utf8(ip(&words, None).stdout).unwrap())
}

fn status() -> String {
    status_in(CLIENT)
}

fn status_in(network: &str) -> String {
    let program = env!("CARGO_BIN_EXE_tacit");
    String::from_utf8(inside(network, &[program, "thin", "status"]).output().unwrap().stdout).unwrap()
}

#[test]
fn downloads_arrive_whole_through_fewer_acks_and_nothing_is_left() {
    let Some(_machine) = machine(&["ip", "tc", "python3"]) else { return };
    let Some(_networks) = Networks::new() else { return };
    let _server = server();
    let before = state();
    let [plain, plain_v6] = [V4, V6].map(megabyte);
    assert_eq!(status(), "No device is thinned.\n");

    let words = [env!("CARGO_BIN_EXE_tacit"), "thin", "up0", "--no-ebpf"];
    let (mut thin, lines) = started_until(inside(CLIENT, &words), true, "are thinned");
    assert!(lines.contains("on Wi-Fi thinning is not needed"), "{lines}");
    let again = inside(CLIENT, &[env!("CARGO_BIN_EXE_tacit"), "thin", "up0"]).output().unwrap();
    assert!(
        output_text(&again).contains("is thinned already") && !again.status.success(),
        "{}",
        output_text(&again)
    );
    thinned_downloads(CLIENT, &[(V4, plain), (V6, plain_v6)]);

    // A new address takes the routes along. They come back.
    let renewed =
        "addr del 10.9.0.2/24 dev up0\naddr add 10.9.0.2/24 dev up0\nroute add default via 10.9.0.1\n";
    assert!(ip(&["-n", CLIENT, "-batch", "-"], Some(renewed)).status.success());
    let leads = || String::from_utf8(ip(&["-n", CLIENT, "route", "get", V4], None).stdout).unwrap();
    let again = (0..300).any(|_| {
        std::thread::park_timeout(Duration::from_millis(20));
        leads().contains("dev tacit")
    });
    assert!(again, "{}", leads());
    assert_eq!(download(V4, "10000").0, 10_000);

    thin.0.kill().unwrap();
    thin.0.wait().unwrap();
    // The kernel removes the device a little later.
    for _ in 0..100 {
        if state() == before {
            break;
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
    assert_eq!(state(), before, "after it was killed");
    assert_eq!(download(V4, "10000").0, 10_000);
    assert_eq!(status(), "No device is thinned.\n");
}

/// Packets that have arrived at the server.
fn arrived_packets() -> u64 {
    let words = ["cat", "/sys/class/net/down0/statistics/rx_packets"];
    String::from_utf8(inside(SERVER, &words).output().unwrap().stdout).unwrap().trim().parse().unwrap()
}

/// TCP segments whose checksum was wrong at the server: the last number of the kernel's line of TCP's values.
fn wrong_checksums() -> String {
    let text = inside(SERVER, &["cat", "/proc/net/snmp"]).output().unwrap().stdout;
    let text = String::from_utf8(text).unwrap();
    let values = text.lines().filter(|line| line.starts_with("Tcp:")).next_back().unwrap();
    values.split(' ').next_back().unwrap().to_owned()
}

/// Fetches 1 MB; returns the seconds, and the packets that arrived at the server meanwhile.
fn megabyte(from: &str) -> (f64, u64) {
    let before = arrived_packets();
    let (bytes, seconds) = download(from, "1000000");
    assert_eq!(bytes, 1_000_000);
    (seconds, arrived_packets() - before)
}

/// Fetches 1 MB three times from each address while the network `thinner` thins; beside each, what it took without.
fn thinned_downloads(thinner: &str, from: &[(&str, (f64, u64))]) {
    let dropped = || -> u64 { status_in(thinner).split(' ').nth(1).unwrap().parse().unwrap() };
    let mut before_it = 0;
    for (from, (plain_s, plain_packets)) in from {
        let mut thinned_s = f64::MAX;
        for _ in 0..3 {
            let (seconds, packets) = megabyte(from);
            // The first 100 segments have all their ACKs.
            assert!(packets * 4 < plain_packets * 3, "{packets} packets arrived, {plain_packets} without it");
            thinned_s = thinned_s.min(seconds);
        }
        println!("{from}: {plain_s:.2} s without, {thinned_s:.2} s with it: {}", status_in(thinner));
        assert!(
            status_in(thinner).starts_with("up0: ") && dropped() > before_it + 100,
            "{from}: {}",
            status_in(thinner)
        );
        before_it = dropped();
    }
    assert_eq!(wrong_checksums(), "0");
}

/// `tacit thin up0` in the kernel; `None`, with a message, if this kernel cannot.
fn in_the_kernel(network: &str) -> Option<Killed> {
    let words = [env!("CARGO_BIN_EXE_tacit"), "thin", "up0"];
    let (thin, line) = started_until(inside(network, &words), true, "kernel");
    if line.contains("not in the kernel") {
        skip(&line);
        return None;
    }
    assert!(line.contains("are thinned in the kernel"), "{line}");
    Some(thin)
}

#[test]
fn the_kernel_thins_and_nothing_changes_and_nothing_is_left() {
    let Some(_machine) = machine(&["ip", "tc", "python3"]) else { return };
    let Some(_networks) = Networks::new() else { return };
    let _server = server();
    let before = state();
    let [plain, plain_v6] = [V4, V6].map(megabyte);
    let Some(mut thin) = in_the_kernel(CLIENT) else { return };
    assert_eq!(state(), before, "no device and no route is made");
    thinned_downloads(CLIENT, &[(V4, plain), (V6, plain_v6)]);

    // If the programs were left, they would swallow the ACKs of the next download.
    thin.0.kill().unwrap();
    thin.0.wait().unwrap();
    assert_eq!(status(), "No device is thinned.\n");
    let (seconds, packets) = megabyte(V4);
    assert!(packets * 5 > plain.1 * 4, "{packets} packets arrived in {seconds} s, {plain:?} before");
    assert_eq!(state(), before);

    // Once more, and stopped in order.
    let Some(mut thin) = in_the_kernel(CLIENT) else { return };
    let pid = nix::unistd::Pid::from_raw(thin.0.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    assert!(thin.0.wait().unwrap().success());
    assert_eq!(download(V4, "10000").0, 10_000);
}

/// A router that translates addresses thins for the clients behind it: what the kernel shows at its egress is translated.
#[test]
fn a_router_thins_for_clients_behind_address_translation() {
    let Some(_machine) = machine(&["ip", "tc", "python3", "iptables"]) else { return };
    let Some(_networks) = Networks::new() else { return };
    let Some(_behind) = Behind::new() else { return };
    let _server = server();
    let (bytes, plain_s) = download_by(BEHIND, V4, "1000000");
    assert_eq!(bytes, 1_000_000);
    // The router is the network that was the client so far.
    let Some(_thin) = in_the_kernel(CLIENT) else { return };
    for _ in 0..3 {
        let (bytes, seconds) = download_by(BEHIND, V4, "1000000");
        println!("{plain_s:.2} s without, {seconds:.2} s with it: {}", status_in(CLIENT));
        assert_eq!(bytes, 1_000_000);
    }
    let dropped: u64 = status_in(CLIENT).split(' ').nth(1).unwrap().parse().unwrap();
    assert!(dropped > 100, "{}", status_in(CLIENT));
}

const BEHIND: &str = "tacit-thin-behind";

/// A network behind the client's, which becomes a router that masquerades.
struct Behind;

impl Behind {
    fn new() -> Option<Self> {
        drop(Self);
        let link = format!(
            "netns add {BEHIND}\nlink add lan0 netns {BEHIND} type veth peer name lan1 netns {CLIENT}\n"
        );
        let behind = Self;
        let created = ip(&["-batch", "-"], Some(&link));
        assert!(created.status.success(), "{}", output_text(&created));
        let far = "addr add 10.8.0.2/24 dev lan0\nlink set lan0 up\nroute add default via 10.8.0.1\n";
        let near = "addr add 10.8.0.1/24 dev lan1\nlink set lan1 up\n";
        for (name, script) in [(BEHIND, far), (CLIENT, near)] {
            let output = ip(&["-n", name, "-batch", "-"], Some(script));
            assert!(output.status.success(), "{}", output_text(&output));
        }
        let commands =
            ["sysctl -q -w net.ipv4.ip_forward=1", "iptables -t nat -A POSTROUTING -o up0 -j MASQUERADE"];
        for command in commands {
            let output = inside(CLIENT, &command.split(' ').collect::<Vec<_>>()).output().unwrap();
            if !output.status.success() {
                skip(&output_text(&output));
                return None;
            }
        }
        Some(behind)
    }
}

impl Drop for Behind {
    fn drop(&mut self) {
        let _ = ip(&["netns", "del", BEHIND], None);
    }
}

/// How many ACKs it would drop depends on the round trips of a path without delay, so the test looks at those it saw.
#[test]
fn a_rehearsal_sees_the_acks_of_both_versions_and_changes_nothing() {
    let Some(_machine) = machine(&["ip", "tc", "python3"]) else { return };
    let Some(_networks) = Networks::new() else { return };
    let _server = server();
    let before = state();
    let words = [env!("CARGO_BIN_EXE_tacit"), "thin", "up0", "--uplink", "20kbps", "--dry-run", "--json"];
    let (mut rehearsal, _) = started(inside(CLIENT, &words), true);
    [V4, V6].iter().for_each(|from| assert_eq!(download(from, "1000000").0, 1_000_000));
    assert_eq!(state(), before);
    let pid = nix::unistd::Pid::from_raw(rehearsal.0.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    let mut printed = String::new();
    Read::read_to_string(rehearsal.0.stdout.as_mut().unwrap(), &mut printed).unwrap();
    let counters: serde_json::Value =
        serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"));
    let count = |name: &str| counters["counters"][name].as_u64().unwrap();
    assert!(count("acks") > 400 && count("packets") > count("acks") && count("sent_bytes") == 0, "{printed}");
}

/// A modem that is unplugged, or a device that another program renames.
#[test]
fn it_ends_when_its_device_has_gone() {
    let Some(_machine) = machine(&["ip"]) else { return };
    let Some(_networks) = Networks::new() else { return };
    let Some(mut thin) = in_the_kernel(CLIENT) else { return };
    assert!(ip(&["-n", CLIENT, "link", "set", "up0", "down", "name", "gone0"], None).status.success());
    assert_eq!(thin.0.wait().unwrap().code(), Some(2));
    let mut stderr = String::new();
    thin.0.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert!(stderr.contains("there is no device up0"), "{stderr}");
    assert_eq!(status(), "No device is thinned.\n");
}

#[test]
fn devices_that_cannot_be_thinned_are_refused_in_one_line() {
    let Some(_machine) = machine(&["ip"]) else { return };
    for (device, reason) in [("lo", "default route"), ("no-such-0", "there is no device no-such-0")] {
        let output = tacit().args(["thin", device]).output().unwrap();
        assert!(
            !output.status.success() && output_text(&output).contains(reason),
            "{}",
            output_text(&output)
        );
    }
    let output = tacit().args(["thin", "--uplink", "50kbps"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", output_text(&output));
    let output = tacit().args(["thin", "lo", "--uplink", "fast"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", output_text(&output));
    assert!(fs::exists("/sys/class/net/lo").unwrap());
}
