//! Compares the simulator's TCP with that of Linux through the same hop: either may be the sender or the receiver. Both
//! interoperate byte by byte, and the goodput equals the kernel's.
//!
//! Our end is a separate host behind a TUN device, to which the kernel on its side routes packets. The near end opens
//! the connection and requests a number of seconds; data flows from the far end.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::process::Command;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;
use std::time::Instant as WallInstant;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{self, AddressFamily, SockFlag, SockType, SockaddrIn};
use tacit_congestion::Algorithm;
use tacit_hop::Tun;
use tacit_packet::endpoint::Ends;
use tacit_packet::tcp::{Flags, Segment};
use tacit_packet::units::{Duration, FlowId, HostId, Instant, SeqNumber};
use tacit_packet::wire::payload::Stream;
use tacit_packet::wire::{self, address};
use tacit_packet::{Endpoint as _, IpHeader, Packet, Transport};
use tacit_runs::aggregate::t_95;
use tacit_tcp::{AckPolicy, Config, Connection, Profile, State};

use super::conformance::steady_bps;
use super::helper;
use super::support::{disturbed, machine, print_line, skip, valid_reports, waited_us};

/// The near and the far end. The lower number opens connections.
const HOSTS: [HostId; 2] = [HostId(1), HostId(2)];
const FLOW: FlowId = FlowId(0);
/// Duration of a transfer in seconds. The first second is slow start and is ignored.
const SECONDS_VARIABLE: &str = "TACIT_TEST_SECONDS";
/// Tolerance between the goodput of the stacks (issue: 10 %).
const TOLERANCE: f64 = 0.1;
/// Number of bytes that our source keeps in the send buffer.
const AHEAD: u64 = 1 << 20;
/// The environment variable with the congestion control of our end.
const CONGESTION_VARIABLE: &str = "TACIT_TEST_CONGESTION";

/// Our end's initial sequence number, chosen so that sequence numbers wrap early in every transfer.
const ISS: SeqNumber = SeqNumber(u32::MAX - 70_000);

/// The bytes of every stream in these tests, as our end sends them from the far side.
fn pattern(from: u64, len: usize) -> Vec<u8> {
    let [destination, source] = HOSTS;
    let ip = IpHeader::default();
    let transport = Transport::Tcp(Segment::default());
    let stream = Stream::from_packet(&Packet { flow: FLOW, source, destination, ip, transport });
    (from..).take(len).map(|place| stream.byte((ISS + 1 + place as u32).0)).collect()
}

/// Duration of this transfer.
fn seconds() -> u64 {
    std::env::var(SECONDS_VARIABLE).unwrap().parse().unwrap()
}

fn ip_of(host: HostId) -> String {
    address::ipv4(host).unwrap().map(|part| part.to_string()).join(".")
}

/// Runs `ip` with these arguments.
fn ip(words: &str) -> String {
    let output = Command::new("ip").args(words.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "ip {words}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Configures the address `here` and the route to `there` on this side. Packets to `here` are sent to `device`.
fn set_up(here: HostId, there: HostId, device: &str) {
    let peer = std::env::var("TACIT_PEER").unwrap();
    let found = ip(&format!("route get {peer}"));
    let hop = found.split_whitespace().skip_while(|word| *word != "dev").nth(1).unwrap();
    let congestion = std::env::var(CONGESTION_VARIABLE).unwrap();
    let (here, there) = (ip_of(here), ip_of(there));
    if device == "lo" {
        ip(&format!("address add {here}/32 dev lo"));
        ip(&format!("route add {there} via {peer} dev {hop} src {here} quickack 1 congctl {congestion}"));
    } else {
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
        ip(&format!("link set dev {device} up"));
        ip(&format!("route add {here} dev {device}"));
        ip(&format!("route add {there} via {peer} dev {hop}"));
    }
}

/// A host that uses our TCP.
struct OwnHost {
    tun: Tun,
    tcp: Connection,
    epoch: WallInstant,
    /// Receives the peer's bytes with the number of the first one.
    reader: Reader,
    /// Buffer for the packet being sent.
    bytes: Vec<u8>,
}

impl OwnHost {
    fn new(make: impl FnOnce(Config, Ends, SeqNumber, Instant) -> Connection, here: HostId) -> Self {
        // Like a kernel's TCP, this thread should not have to wait for other programs.
        tacit_hop::prefer_this_thread();
        let there = if here == HOSTS[0] { HOSTS[1] } else { HOSTS[0] };
        let tun = Tun::create().unwrap();
        set_up(here, there, tun.name());
        let algorithm = match std::env::var(CONGESTION_VARIABLE).unwrap().as_str() {
            "cubic" => Algorithm::CUBIC,
            "reno" => Algorithm::NewReno,
            "bbr" => Algorithm::BBR,
            other => panic!("our TCP has no {other}"),
        };
        // The kernel's end also acknowledges each packet. The hop thins the ACKs of both in the same way.
        let ack_policy = AckPolicy::every(1);
        let linux = Profile::Linux.config();
        let congestion = tacit_congestion::Config { algorithm, ..linux.congestion };
        let config = Config { congestion, ack_policy, ..linux };
        let ends = Ends { flow: FLOW, local: here, remote: there };
        let tcp = make(config, ends, ISS, Instant::ZERO);
        #[allow(clippy::disallowed_methods, reason = "this is the edge where time is real")]
        let epoch = WallInstant::now();
        Self { tun, tcp, epoch, reader: Reader::new(), bytes: Vec::new() }
    }

    fn now(&self) -> Instant {
        Instant::ZERO + Duration::from_nanos(self.epoch.elapsed().as_nanos() as u64)
    }

    fn handle(&mut self, bytes: &[u8]) {
        let (packet, content) = match wire::decode_foreign(bytes) {
            Ok(decoded) => decoded,
            // Neighbour discovery and similar packets.
            Err(_) if bytes[0] >> 4 == 6 => return,
            Err(error) => panic!("Linux sent {bytes:02x?}: {error}"),
        };
        if let Transport::Tcp(segment) = packet.transport {
            let first = segment.flags.contains(Flags::SYN);
            self.reader.read(segment.seq + u32::from(first), first, content);
        }
        self.tcp.handle_packet(self.now(), packet);
        self.send();
    }

    /// Processes received packets, sends those that may be sent, then waits for either.
    fn turn(&mut self) {
        let mut packets = Vec::new();
        while self.tun.receive(|packet, _| packets.push(packet.to_vec())).unwrap().is_some() {
            for packet in packets.drain(..) {
                self.handle(&packet);
            }
        }
        if self.tcp.poll_timeout().is_some_and(|at| at <= self.now()) {
            self.tcp.handle_timeout(self.now());
        }
        self.send();
        let wait =
            self.tcp.poll_timeout().map_or(100_000_000, |at| at.saturating_since(self.now()).as_nanos());
        // Whole milliseconds, rounded down to zero, because a pacer must be called on time.
        let wait = PollTimeout::from((wait / 1_000_000).min(100) as u8);
        poll(&mut [PollFd::new(self.tun.as_fd(), PollFlags::POLLIN)], wait).unwrap();
    }

    fn send(&mut self) {
        while let Some(packet) = self.tcp.poll_transmit(self.now()) {
            self.bytes.clear();
            wire::encode_into(&packet, &mut self.bytes).unwrap();
            self.tun.send(&self.bytes, false);
        }
        while self.tcp.poll_event().is_some() {}
    }
}

/// A program that reads the peer's data in another thread, as with a kernel's TCP, so that it does not delay the stack.
struct Reader {
    segments: Sender<(SeqNumber, bool, Vec<u8>)>,
    thread: JoinHandle<u64>,
}

impl Reader {
    fn new() -> Self {
        let (segments, arrived) = mpsc::channel::<(SeqNumber, bool, Vec<u8>)>();
        let thread = std::thread::spawn(move || {
            let (mut first, mut verified) = (None, 0);
            for (seq, begins, content) in arrived {
                if begins {
                    first = Some(seq);
                }
                if let Some(first) = first.filter(|_| !content.is_empty()) {
                    verified = verify(first, verified, seq, &content);
                }
            }
            verified
        });
        Self { segments, thread }
    }

    fn read(&self, seq: SeqNumber, begins: bool, content: &[u8]) {
        self.segments.send((seq, begins, content.to_vec())).expect("the thread ends when we do");
    }

    /// The number of correct bytes in the stream.
    fn finish(self) -> u64 {
        drop(self.segments);
        self.thread.join().unwrap()
    }
}

/// Checks that every byte has the value for its position, even in duplicates. The first `verified` bytes had been
/// received before; returns the number of new ones.
fn verify(first: SeqNumber, verified: u64, seq: SeqNumber, content: &[u8]) -> u64 {
    // The position is close to the bytes received so far. The 32-bit number alone does not determine it.
    let ahead = i64::from((seq - (first + verified as u32)) as i32);
    let place = verified.checked_add_signed(ahead).unwrap();
    assert_eq!(pattern(place, content.len()), content, "bytes from {place} on");
    verified.max(place + content.len() as u64)
}

/// Pairs of receiver and sender: both Linux, our sender, our receiver.
const PROGRAMS: [[&str; 2]; 3] =
    [["kernel_receives", "kernel_sends"], ["kernel_receives", "own_sends"], ["own_receives", "kernel_sends"]];

/// A hop, and what to measure through it.
struct Hop {
    words: &'static [&'static str],
    /// Round-trip time of data and its ACK, including the queue that a transfer keeps, in microseconds.
    round_trip_us: f64,
    /// Number of transfers of each kind per round. Further rounds follow until the means are precise enough: see
    /// [`Measured::verdict`].
    seeds: u32,
    /// Number of concurrent transfers.
    at_once: usize,
    seconds: u32,
}

/// Without loss the link determines the goodput, and transfers hardly differ. The wires take 2 ms, an exchange of 42
/// MPDUs takes 3 ms, and the access point's queue of 126 packets takes 13 ms.
const fn clean(words: &'static [&'static str]) -> Hop {
    Hop { words, round_trip_us: 18_000.0, seeds: 2, at_once: 1, seconds: 4 }
}

const CLEAN: Hop = clean(&["wlan-11n-150"]);

/// With a loss of one segment in a thousand over 42 ms, the window determines the goodput instead of the link. A
/// transfer has about sixteen losses, so its goodput is uncertain by a tenth or more. Several hops of a few Mb/s can
/// run concurrently.
const LOSSY: Hop = Hop {
    words: &["wlan-11a-54", "--set", "wired.loss=0.1 %", "--set", "wired.delay=20 ms"],
    round_trip_us: 42_000.0,
    seeds: 8,
    at_once: 6,
    seconds: 8,
};

impl Hop {
    /// The arguments of `tacit shell` for such a transfer.
    fn transfer(&self, congestion: &str, programs: [&str; 2], seed: u32) -> Vec<String> {
        let variables =
            [format!("{CONGESTION_VARIABLE}={congestion}"), format!("{SECONDS_VARIABLE}={}", self.seconds)];
        let program =
            |name| [vec!["env".to_owned()], variables.to_vec(), helper::words("own_tcp", name)].concat();
        let [near, far] = programs.map(program);
        let seed = seed.to_string();
        let hop = ["--json", "--acks", "2", "--seed", &seed];
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        [owned(&hop), owned(self.words), owned(&["--"]), near, owned(&["--server", "--"]), far].concat()
    }

    /// Upper limit of the effect of such waiting times, as a fraction of the goodput: the fraction that they add to the
    /// round trip if the window limits the goodput, and less if the link does. The simulator cannot answer this,
    /// because programs that wait longer than a round trip leave the connection without data, and because our end has
    /// priority over other threads.
    fn worth(&self, waits_us: &[[f64; 2]]) -> f64 {
        let added = waits_us.iter().map(|[near, far]| near + far);
        added.fold(0.0, f64::max) / self.round_trip_us
    }
}

/// Maximum number of rounds. Four rounds halve the uncertainty of one.
const ROUNDS_MAX: u32 = 4;

/// Results of all transfers of each kind so far.
#[derive(Default)]
struct Measured {
    goodputs_bps: [Vec<f64>; 3],
    /// Waiting times of all programs of a kind, near and far.
    waits_us: [[f64; 2]; 3],
}

impl Measured {
    /// Executes transfers of every kind for `seeds`; `None` if the machine did not keep up with one of them.
    fn add(&mut self, hop: &Hop, congestion: &str, seeds: std::ops::RangeInclusive<u32>) -> Option<()> {
        let transfers: Vec<_> = seeds
            .flat_map(|seed| PROGRAMS.map(|programs| hop.transfer(congestion, programs, seed)))
            .collect();
        let mut kinds = (0..PROGRAMS.len()).cycle();
        for transfers in transfers.chunks(hop.at_once) {
            let words: Vec<Vec<&str>> =
                transfers.iter().map(|words| words.iter().map(String::as_str).collect()).collect();
            let words: Vec<&[&str]> = words.iter().map(Vec::as_slice).collect();
            for (report, kind) in valid_reports(&words)?.iter().zip(&mut kinds) {
                self.goodputs_bps[kind].push(steady_bps(&report["transfer"]["down"]));
                let [near, far] = waited_us(report);
                self.waits_us[kind] = [self.waits_us[kind][0] + near, self.waits_us[kind][1] + far];
            }
        }
        Some(())
    }

    /// Differences of the mean goodput of our sender and of our receiver from the kernel's, with standard errors.
    /// Transfers with the same seed lose the same packets, so the uncertainty is that of their differences.
    fn differences(&self) -> [[f64; 2]; 2] {
        let [kernels, ours @ ..] = &self.goodputs_bps;
        let kernels_mean = mean(kernels);
        ours.each_ref().map(|ours| {
            let ratio = mean(ours) / kernels_mean;
            let residues: Vec<_> =
                ours.iter().zip(kernels).map(|(our, kernel)| our - ratio * kernel).collect();
            [ratio - 1.0, standard_error(&residues) / kernels_mean]
        })
    }

    /// Whether the stacks agree; `None` if more transfers are needed. A mean outside the tolerance is a failure once
    /// its whole 95 % interval is outside too. A mean within it is a success once the standard error is at most a third
    /// of the tolerance.
    fn verdict(&self) -> Option<bool> {
        let quantile = t_95(self.goodputs_bps[0].len() - 1);
        let verdicts = self.differences().map(|[difference, error]| {
            let beyond = difference.abs() - TOLERANCE;
            match beyond > 0.0 {
                true => (beyond > quantile * error).then_some(false),
                false => (error <= TOLERANCE / 3.0).then_some(true),
            }
        });
        match verdicts {
            [Some(false), _] | [_, Some(false)] => Some(false),
            [Some(true), Some(true)] => Some(true),
            _ => None,
        }
    }

    /// Mean waiting times of the programs of each kind.
    fn mean_waits_us(&self) -> [[f64; 2]; 3] {
        let count = self.goodputs_bps[0].len() as f64;
        self.waits_us.map(|sum| sum.map(|us| us / count))
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Standard error of the mean, which is unknown for a single value.
fn standard_error(values: &[f64]) -> f64 {
    let (count, mean) = (values.len() as f64, mean(values));
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    if count > 1.0 { (squares / (count - 1.0) / count).sqrt() } else { f64::INFINITY }
}

/// The test of every case: transfers over equal hops with the same lost packets.
fn stacks_agree(hop: &Hop, congestion: &str) {
    let Some(_machine) = machine(&[]) else { return };
    let mut measured = Measured::default();
    for round in 0..ROUNDS_MAX {
        let seeds = round * hop.seeds + 1..=(round + 1) * hop.seeds;
        if measured.add(hop, congestion, seeds).is_none() {
            return;
        }
        if measured.verdict().is_some() {
            break;
        }
    }
    let waits_us = measured.mean_waits_us();
    let [sender, receiver] = measured.differences().map(|pair| pair.map(|share| share * 100.0));
    print_line(&format!(
        "{:?} {congestion}, {} seeds, {:.1} Mb/s: against Linux to Linux, our sender {:+.1} % (error {:.1}), our receiver \
         {:+.1} % (error {:.1}); waits {waits_us:.0?} us",
        hop.words,
        measured.goodputs_bps[0].len(),
        mean(&measured.goodputs_bps[0]) / 1e6,
        sender[0],
        sender[1],
        receiver[0],
        receiver[1],
    ));
    if let Some(reason) = disturbed("goodput", &waits_us, hop.worth(&waits_us), TOLERANCE) {
        skip(&reason);
        return;
    }
    let differences = measured.differences();
    assert!(differences.iter().all(|[difference, _]| difference.abs() <= TOLERANCE), "{differences:?}");
}

#[test]
fn more_transfers_are_asked_for_until_their_means_say_enough() {
    let measured = |sender: &[f64]| Measured {
        goodputs_bps: [vec![100.0, 101.0, 99.0], sender.to_vec(), vec![100.0; 3]],
        ..Measured::default()
    };
    assert_eq!(measured(&[104.0, 105.0, 106.0]).verdict(), Some(true));
    assert_eq!(measured(&[114.0, 115.0, 116.0]).verdict(), Some(false));
    // The mean may be outside, or within, by chance.
    assert_eq!(measured(&[100.0, 112.0, 124.0]).verdict(), None);
    assert_eq!(measured(&[92.0, 100.0, 108.0]).verdict(), None);
    // Two values that happen to be similar are no evidence of a small spread.
    let two = [vec![80.0, 86.0], vec![109.0, 113.0], vec![80.0, 86.0]];
    assert_eq!(Measured { goodputs_bps: two, ..Measured::default() }.verdict(), None);
    assert_eq!(measured(&[100.0]).verdict(), None);
}

#[test]
fn waits_of_programs_count_against_the_round_trip() {
    assert!((CLEAN.worth(&[[400.0, 500.0], [20.0, 40.0]]) - 0.05).abs() < 1e-9);
    assert!((LOSSY.worth(&[[100.0, 320.0]]) - 0.01).abs() < 1e-9);
    assert!(CLEAN.worth(&[[f64::INFINITY; 2]]) > TOLERANCE);
}

#[test]
fn cubic_over_a_clean_hop() {
    stacks_agree(&CLEAN, "cubic");
}

#[test]
fn reno_over_a_clean_hop() {
    stacks_agree(&CLEAN, "reno");
}

#[test]
fn cubic_through_loss() {
    stacks_agree(&LOSSY, "cubic");
}

#[test]
fn reno_through_loss() {
    stacks_agree(&LOSSY, "reno");
}

#[test]
fn bbr_over_a_clean_hop() {
    stacks_agree(&CLEAN, "bbr");
}

/// BBR does not treat losses as congestion, so transfers hardly differ.
#[test]
fn bbr_through_loss() {
    stacks_agree(&Hop { seeds: 2, ..LOSSY }, "bbr");
}

/// One packet in a hundred is delivered after five later ones.
#[test]
fn cubic_through_reordering() {
    stacks_agree(
        &clean(&[
            "wlan-11n-150",
            "--set",
            "wired.reorder={ chance = \"1 %\", packets = 5, delay = \"20 ms\" }",
        ]),
        "cubic",
    );
}

#[test]
#[ignore = "runs inside a hop"]
fn kernel_receives() {
    set_up(HOSTS[0], HOSTS[1], "lo");
    // The port of the flow that our host would use.
    let ports = [15_536, address::SERVICE_PORT];
    let socket = socket::socket(AddressFamily::Inet, SockType::Stream, SockFlag::empty(), None).unwrap();
    let addresses =
        [0, 1].map(|end| SockaddrIn::from(SocketAddrV4::new(ip_of(HOSTS[end]).parse().unwrap(), ports[end])));
    socket::bind(socket.as_raw_fd(), &addresses[0]).unwrap();
    socket::connect(socket.as_raw_fd(), &addresses[1]).unwrap();
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
    #[allow(clippy::disallowed_methods, reason = "this is the edge where time is real")]
    let start = WallInstant::now();
    let (mut place, mut buffer) = (0, vec![0; 1 << 16]);
    let seconds = seconds();
    while start.elapsed().as_secs() < seconds {
        let len = stream.read(&mut buffer).unwrap();
        assert_ne!(len, 0, "the source ended early");
        assert!(pattern(place, len) == buffer[..len], "bytes from {place} on");
        place += len as u64;
    }
    stream.shutdown(Shutdown::Both).unwrap();
}

#[test]
#[ignore = "runs inside a hop"]
fn kernel_sends() {
    set_up(HOSTS[1], HOSTS[0], "lo");
    let listener = TcpListener::bind((ip_of(HOSTS[1]), address::SERVICE_PORT)).unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    // The pattern does not repeat. Each block is generated while the previous one is being sent.
    let mut place = 0;
    while let Ok(len) = stream.write(&pattern(place, 1 << 14)) {
        place += len as u64;
    }
}

#[test]
#[ignore = "runs inside a hop"]
fn own_receives() {
    let mut host = OwnHost::new(Connection::connect, HOSTS[0]);
    let seconds = seconds();
    while host.epoch.elapsed().as_secs() < seconds {
        host.turn();
    }
    host.tcp.abort();
    host.turn();
    let delivered = host.tcp.delivered_bytes();
    assert!(delivered > 0 && host.reader.finish() >= delivered);
}

#[test]
#[ignore = "runs inside a hop"]
fn own_sends() {
    let listen = |config, ends, iss, _| Connection::listen(config, ends, iss);
    let mut host = OwnHost::new(listen, HOSTS[1]);
    // The kernel does not know our listening TCP socket, but the shell waits for a socket before it starts its command.
    let _ready = UdpSocket::bind("0.0.0.0:0").unwrap();
    loop {
        if host.tcp.state() == State::Established {
            host.tcp.write(AHEAD.saturating_sub(host.tcp.unsent()));
        }
        host.turn();
    }
}
