//! A hop that loses segments, as a reader sees it: a TCP relay that replaces segments by markers, and announces them on
//! the control socket first.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use nix::libc::POLLRDHUP;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv};
use socket2::{Domain, Socket, Type};
use tacit_between::fwp::control::{MAX_MESSAGE_LEN, ToReader, ToShim};
use tacit_net::flow::ShimName;

/// The bytes that replace a lost segment: the marker of the paper, without its nonce.
pub const MARKER: &[u8] = b"\x89FWP-PLACEHOLDER\r\n\r\n";
const SEGMENT: usize = 1448;

/// How the hop behaves.
#[derive(Clone, Copy, Debug, Default)]
pub struct Losses {
    /// Percentage of segments that are lost, within ranges where placeholders are allowed.
    pub percent: u64,
    /// Of these, one in `late_one_in` arrives late; 0: none.
    pub late_one_in: u64,
    /// Also writes placeholders where the reader has not allowed them.
    pub anywhere: bool,
    /// Also loses segments with heads of partial answers, within allowed ranges.
    pub heads: bool,
    /// Refuses to register flows.
    pub refuses: bool,
    /// The connection that has carried the most bytes breaks after this number, once.
    pub breaks_after: Option<u64>,
}

struct Flow {
    socket: Socket,
    allowed: Vec<(u64, u64)>,
}

type Flows = Arc<Mutex<HashMap<SocketAddr, Flow>>>;

/// Counts of a hop.
#[derive(Debug, Default)]
pub struct Counts {
    pub holes: AtomicU64,
    pub hole_bytes: AtomicU64,
    /// Bytes of holes that readers reported as no longer needed.
    pub repaired_bytes: AtomicU64,
    pub connections: AtomicU64,
    /// Most connections that readers had open at once.
    pub open_max: AtomicU64,
    pub registered: AtomicU64,
}

/// A hop in front of a server.
pub struct Hop {
    pub address: SocketAddr,
    pub shim: ShimName,
    pub counts: Arc<Counts>,
}

impl Hop {
    pub fn before(server: SocketAddr, losses: Losses) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("tacit-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let shim = ShimName::abstracted(name.as_bytes());
        let control = Socket::new(Domain::UNIX, Type::SEQPACKET, None).unwrap();
        control.bind(&shim.address().unwrap()).unwrap();
        control.listen(128).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (flows, counts) = (Flows::default(), Arc::new(Counts::default()));
        let (shared, counted) = (Arc::clone(&flows), Arc::clone(&counts));
        thread::spawn(move || {
            while let Ok((socket, _)) = control.accept() {
                let (flows, counts) = (Arc::clone(&shared), Arc::clone(&counted));
                thread::spawn(move || listen(&socket, &flows, &counts, losses));
            }
        });
        let (counted, has_broken) = (Arc::clone(&counts), Arc::new(AtomicBool::new(false)));
        thread::spawn(move || {
            let mut open: Vec<TcpStream> = Vec::new();
            for (seed, client) in listener.incoming().enumerate() {
                // Threads notice late that a reader has closed. The kernel knows it before it reports the reader's next
                // connection.
                open.retain(|client| !is_closed(client));
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(server)) else { continue };
                counted.connections.fetch_add(1, Ordering::Relaxed);
                open.push(client.try_clone().unwrap());
                counted.open_max.fetch_max(open.len() as u64, Ordering::Relaxed);
                let (flows, counts, has_broken) =
                    (Arc::clone(&flows), Arc::clone(&counted), Arc::clone(&has_broken));
                thread::spawn(move || {
                    relay(client, server, &flows, &counts, losses, seed as u64, &has_broken);
                });
            }
        });
        Self { address, shim, counts }
    }
}

/// True if either end has closed the connection, even if earlier bytes are still unread.
fn is_closed(client: &TcpStream) -> bool {
    // While a thread uses the socket, the kernel defers the FIN. Peeking waits for that thread.
    let _ = recv(client.as_raw_fd(), &mut [0], MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT);
    let closed = PollFlags::from_bits_retain(POLLRDHUP);
    poll(&mut [PollFd::new(client.as_fd(), closed)], PollTimeout::ZERO).unwrap() > 0
}

fn send(socket: &Socket, message: ToReader<'_>) {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    let _ = socket.send(&bytes);
}

/// Registers a flow, then reads its reader's messages until the reader is gone. `relay` reads them, too; either may be
/// first.
fn listen(socket: &Socket, flows: &Flows, counts: &Counts, losses: Losses) {
    let mut buffer = [0; MAX_MESSAGE_LEN];
    let Ok(bytes @ 1..) = (&*socket).read(&mut buffer) else { return };
    let ToShim::Register { local, .. } = ToShim::decode(&buffer[..bytes]).unwrap() else {
        panic!("a reader registers first")
    };
    if losses.refuses {
        send(socket, ToReader::Refused(tacit_between::fwp::control::Refusal::Room));
        return;
    }
    let flow = Flow { socket: socket.try_clone().unwrap(), allowed: Vec::new() };
    flows.lock().unwrap().insert(local, flow);
    counts.registered.fetch_add(1, Ordering::Relaxed);
    send(socket, ToReader::Registered { nonce: [7; 16], expected_fer_ppm: 100_000 });
    // Waits without consuming the message; the holder of the lock consumes it.
    while let Ok(1..) = recv(socket.as_raw_fd(), &mut buffer, MsgFlags::MSG_PEEK) {
        flows.lock().unwrap().get_mut(&local).unwrap().read_messages(counts);
    }
    flows.lock().unwrap().remove(&local);
}

impl Flow {
    /// Reads all messages that the reader has sent so far.
    fn read_messages(&mut self, counts: &Counts) {
        let mut buffer = [0; MAX_MESSAGE_LEN];
        while let Ok(bytes @ 1..) = recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT) {
            match ToShim::decode(&buffer[..bytes]).unwrap() {
                ToShim::Register { .. } => panic!("a reader registers once"),
                ToShim::Allow { start, end } => self.allowed.push((start, end)),
                ToShim::Repaired { start, end } => {
                    counts.repaired_bytes.fetch_add(end - start, Ordering::Relaxed);
                }
                ToShim::Stop => (),
            }
        }
    }
}

fn relay(
    client: TcpStream,
    server: TcpStream,
    flows: &Flows,
    counts: &Counts,
    losses: Losses,
    seed: u64,
    has_broken: &AtomicBool,
) {
    let reader = client.peer_addr().unwrap();
    client.set_nodelay(true).unwrap();
    let (mut up_from, mut up_to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    thread::spawn(move || {
        let _ = std::io::copy(&mut up_from, &mut up_to);
        let _ = up_to.shutdown(Shutdown::Write);
    });
    let (mut from, mut to) = (server, client);
    let mut position = 0;
    let mut draw = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut buffer = [0; SEGMENT];
    let mut late = Vec::new();
    while let Ok(bytes @ 1..) = from.read(&mut buffer) {
        let end = position + bytes as u64;
        let is_lost = {
            draw ^= draw << 13;
            draw ^= draw >> 7;
            draw ^= draw << 17;
            // If a head is split over two segments, the second one contains the tag.
            let has = |wanted: &[u8]| buffer[..bytes].windows(wanted.len()).any(|text| text == wanted);
            let is_head = losses.heads && (has(b"HTTP/1.1 206") || has(b"ETag: "));
            draw % 100 < losses.percent || is_head
        };
        {
            let mut flows = flows.lock().unwrap();
            let mut flow = flows.get_mut(&reader);
            if let Some(flow) = &mut flow {
                // Only the first message is acknowledged: an allowance that the reader sent before its request may
                // still be unread.
                flow.read_messages(counts);
            }
            if let Some(flow) = flow.as_ref().filter(|_| is_lost) {
                let allowed = flow.allowed.iter().any(|(start, stop)| *start <= position && end <= *stop);
                if allowed || losses.anywhere {
                    send(&flow.socket, ToReader::Hole { start: position, end });
                    counts.holes.fetch_add(1, Ordering::Relaxed);
                    counts.hole_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
                    if losses.late_one_in > 0 && draw.is_multiple_of(losses.late_one_in) {
                        late.push((position, buffer[..bytes].to_vec()));
                    }
                    for (byte, marker) in buffer[..bytes].iter_mut().zip(MARKER.iter().cycle()) {
                        *byte = *marker;
                    }
                }
            }
            if let (Some(flow), true) = (flow, late.len() > 2) {
                let (start, bytes) = late.remove(0);
                send(&flow.socket, ToReader::Late { start, bytes: &bytes });
            }
        }
        if to.write_all(&buffer[..bytes]).is_err() {
            break;
        }
        position = end;
        if losses.breaks_after.is_some_and(|bytes| position > bytes)
            && !has_broken.swap(true, Ordering::Relaxed)
        {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
