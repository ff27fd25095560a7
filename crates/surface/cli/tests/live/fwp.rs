//! FWP's shim in front of a real kernel's TCP: a registered flow over a link that loses one frame in ten, whose reader
//! knows for every byte whether it is original, and an unregistered flow in parallel.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr, connect, recv, send, socket};
use tacit_between::fwp::Marker;
use tacit_between::fwp::control::{MAX_MESSAGE_LEN, Refusal, SOCKET_NAME, ToReader, ToShim, VERSION};

use super::helper::words;
use super::support::{machine, report, shared_machine};

const PORT: u16 = 7008;
/// A user without files or processes, in Debian and Fedora.
const NOBODY: u32 = 65_534;
/// Length of a transfer in bytes.
const LEN: usize = 4_000_000;

/// The byte at `place` in every stream of these tests.
fn byte(place: usize) -> u8 {
    ((place as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}

/// Sends the stream to every client that sends a byte.
#[test]
#[ignore = "runs inside a hop"]
fn serve() {
    let content: std::sync::Arc<[u8]> = (0..LEN).map(byte).collect();
    let listener = TcpListener::bind(("::", PORT)).unwrap();
    for stream in listener.incoming() {
        let content = content.clone();
        std::thread::spawn(move || {
            let mut stream = stream.unwrap();
            if stream.read(&mut [0]).unwrap_or(0) == 1 {
                // The reader may have closed the connection with a reset.
                let _ = stream.write_all(&content);
            }
        });
    }
}

/// The connection from a reader to the shim.
struct Control(OwnedFd);

impl Control {
    fn open() -> Self {
        let socket = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None).unwrap();
        connect(socket.as_raw_fd(), &UnixAddr::new_abstract(SOCKET_NAME).unwrap()).unwrap();
        Self(socket)
    }

    fn send(&self, message: ToShim) {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        send(self.0.as_raw_fd(), &bytes, MsgFlags::empty()).unwrap();
    }

    /// Receives the next message; `flags` determine whether it waits.
    fn receive(&self, buffer: &mut [u8], flags: MsgFlags) -> Option<usize> {
        match recv(self.0.as_raw_fd(), buffer, flags) {
            Ok(0) | Err(Errno::EAGAIN) => None,
            Ok(len) => Some(len),
            Err(error) => panic!("{error}"),
        }
    }
}

/// What a reader knows about its stream.
#[derive(Default)]
struct Known {
    /// By position, which differs from the order of the messages: a hole that was left to TCP may be filled after later
    /// ones.
    holes: BTreeMap<usize, usize>,
    late: usize,
    switches: usize,
}

impl Known {
    fn learn(&mut self, control: &Control) {
        let mut buffer = vec![0; MAX_MESSAGE_LEN];
        while let Some(len) = control.receive(&mut buffer, MsgFlags::MSG_DONTWAIT) {
            match ToReader::decode(&buffer[..len]).unwrap() {
                ToReader::Hole { start, end } => {
                    assert_eq!(self.holes.insert(start as usize, end as usize), None, "told once");
                }
                ToReader::Late { start, bytes } => {
                    let places = start as usize..;
                    assert!(
                        bytes.iter().zip(places).all(|(late, place)| *late == byte(place)),
                        "late bytes are true"
                    );
                    self.late += bytes.len();
                }
                ToReader::Switched { .. } => self.switches += 1,
                other => panic!("{other:?}"),
            }
        }
    }

    fn is_hole(&self, place: usize) -> bool {
        self.holes.range(..=place).next_back().is_some_and(|(_, end)| place < *end)
    }
}

fn peer() -> String {
    std::env::var("TACIT_PEER").unwrap()
}

/// Reads a registered and an unregistered flow. The last line of output reports on them.
#[test]
#[ignore = "runs inside a hop"]
fn read_registered() {
    let plain = std::thread::spawn(|| {
        let mut stream = TcpStream::connect((peer(), PORT)).unwrap();
        stream.write_all(&[1]).unwrap();
        let mut got = Vec::new();
        stream.read_to_end(&mut got).unwrap();
        assert!(got.len() == LEN && got.iter().enumerate().all(|(place, got)| *got == byte(place)));
    });
    let mut stream = TcpStream::connect((peer(), PORT)).unwrap();
    let control = Control::open();
    let (local, remote) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
    control.send(ToShim::Register { version: VERSION, local, remote });
    let mut buffer = vec![0; 65_536];
    let len = control.receive(&mut buffer, MsgFlags::empty()).unwrap();
    let ToReader::Registered { nonce, expected_fer_ppm } = ToReader::decode(&buffer[..len]).unwrap() else {
        panic!("refused")
    };
    // As the hop has counted until now.
    assert!((1..500_000).contains(&expected_fer_ppm), "{expected_fer_ppm}");
    let marker = Marker::new(nonce);
    control.send(ToShim::Allow { start: 0, end: LEN as u64 });
    stream.write_all(&[1]).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let (mut known, mut at, mut placed) = (Known::default(), 0, 0);
    loop {
        let len = match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(len) => len,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => panic!("after {at} bytes: {error}"),
        };
        known.learn(&control);
        for (place, got) in (at..).zip(&buffer[..len]) {
            let hole = known.is_hole(place);
            assert!(hole || *got == byte(place), "byte {place} is neither true nor announced");
            placed += usize::from(hole);
        }
        at += len;
    }
    known.learn(&control);
    assert_eq!(at, LEN);
    let announced: usize = known.holes.iter().map(|(start, end)| end - start).sum();
    assert_eq!(placed, announced, "every announced byte was read");
    let mut ends_and_starts = known.holes.values().zip(known.holes.keys().skip(1));
    assert!(ends_and_starts.all(|(end, next_start)| end <= next_start), "holes do not overlap");
    // Bytes that were never sent come from the marker: at least the nonce in the first segment of a hole.
    let mut content = vec![0; 16];
    marker.fill(0, &mut content);
    assert_eq!(content, nonce);
    plain.join().unwrap();
    println!("\nread {at} bytes, {placed} of them in {} holes, {} late", known.holes.len(), known.late);
}

/// The report of a hop whose link loses one in ten downlink frames.
fn lossy_hop(scheme: &str, helper: &str) -> serde_json::Value {
    let (server, client) = (words("fwp", "serve"), words("fwp", helper));
    let mut all =
        vec!["--json", "--scheme", scheme, "--set", "wifi.mpdu-error={ down = \"10 %\", up = \"0 %\" }"];
    all.push("--");
    all.extend(client.iter().map(String::as_str));
    all.extend(["--server", "--"]);
    all.extend(server.iter().map(String::as_str));
    report(&all)
}

#[test]
fn every_byte_of_a_registered_flow_is_true_or_announced_and_others_are_untouched() {
    let Some(_machine) = machine(&[]) else { return };
    let report = lossy_hop("fwp", "read_registered");
    let fwp = &report["fwp"];
    assert_eq!(fwp["registered_flows"], 1, "{report}");
    assert!(fwp["placeholders"].as_u64().unwrap() > 50, "{report}");
    assert!(
        fwp["segments"].as_u64().unwrap() < 2 * (LEN / 1000) as u64,
        "the flow beside is not counted: {report}"
    );
}

#[test]
fn without_the_scheme_there_is_no_socket() {
    let Some(_machine) = shared_machine(&[]) else { return };
    let report = lossy_hop("stock", "find_no_socket");
    assert!(report["fwp"].is_null(), "{report}");
}

#[test]
#[ignore = "runs inside a hop"]
fn find_no_socket() {
    let socket = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None).unwrap();
    let refused = connect(socket.as_raw_fd(), &UnixAddr::new_abstract(SOCKET_NAME).unwrap());
    assert_eq!(refused, Err(Errno::ECONNREFUSED));
}

#[test]
#[ignore = "runs inside a hop"]
fn misbehave() {
    // No registration, another version, bytes that are not a message, a flow that does not exist, and a duplicate
    // registration.
    let mut buffer = vec![0; 64];
    let mut answer = |control: &Control| {
        let len = control.receive(&mut buffer, MsgFlags::empty()).unwrap();
        format!("{:?}", ToReader::decode(&buffer[..len]).unwrap())
    };
    let stream = TcpStream::connect((peer(), PORT)).unwrap();
    let (local, remote) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
    let control = Control::open();
    control.send(ToShim::Stop);
    assert_eq!(answer(&control), "Refused(Unreadable)");
    let control = Control::open();
    control.send(ToShim::Register { version: VERSION + 1, local, remote });
    assert_eq!(answer(&control), "Refused(Version)");
    let control = Control::open();
    control.send(ToShim::Register { version: VERSION, local, remote: local });
    assert_eq!(answer(&control), "Refused(Elsewhere)");
    // As another user, who has no permission for this flow and owns no socket.
    let mut stranger = words("fwp", "register_as_stranger").into_iter();
    let mut command = Command::new(stranger.next().unwrap());
    command.args(stranger).env("TACIT_TEST_FLOW", format!("{local} {remote}"));
    assert!(command.uid(NOBODY).gid(NOBODY).status().unwrap().success());
    let first = Control::open();
    first.send(ToShim::Register { version: VERSION, local, remote });
    assert!(answer(&first).starts_with("Registered"));
    let second = Control::open();
    second.send(ToShim::Register { version: VERSION, local, remote });
    assert_eq!(answer(&second), "Refused(Taken)");
    // A reader that sends invalid messages might take any bytes for original, so its connection is reset.
    send(first.0.as_raw_fd(), &[99], MsgFlags::empty()).unwrap();
    let mut stream = stream;
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

/// Registers a flow whose socket belongs to another user.
#[test]
#[ignore = "runs inside a hop"]
fn register_as_stranger() {
    let flow = std::env::var("TACIT_TEST_FLOW").unwrap();
    let (local, remote) = flow.split_once(' ').unwrap();
    let control = Control::open();
    let (local, remote) = (local.parse().unwrap(), remote.parse().unwrap());
    control.send(ToShim::Register { version: VERSION, local, remote });
    let mut buffer = [0; 64];
    let len = control.receive(&mut buffer, MsgFlags::empty()).unwrap();
    assert!(matches!(ToReader::decode(&buffer[..len]), Ok(ToReader::Refused(Refusal::Foreign))));
}

#[test]
fn readers_that_misbehave_are_refused_or_reset() {
    let Some(_machine) = shared_machine(&[]) else { return };
    let report = lossy_hop("fwp", "misbehave");
    assert_eq!((&report["fwp"]["registered_flows"], &report["fwp"]["failed_flows"]), (&1.into(), &1.into()));
}
