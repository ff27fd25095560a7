//! A path with changing faults: a relay of datagrams between any number of clients and one server.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Pseudorandom numbers (Knuth's multiplier of MMIX).
#[derive(Clone, Debug)]
pub struct Draws(u64);

impl Draws {
    /// The numbers of one actor. Actors with the same `seed` have different sequences.
    pub fn new(seed: u64, actor: u64) -> Self {
        let mut draws = Self(seed.wrapping_mul(31).wrapping_add(actor.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        draws.below(1);
        draws
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    pub fn happens(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// The given number of random bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.below(256) as u8).collect()
    }
}

/// Faults of datagrams in each direction. Probabilities are in percent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weather {
    pub lost: u64,
    pub repeated: u64,
    /// Delayed by up to 20 ms, and overtaken by others.
    pub late: u64,
    /// One bit is flipped.
    pub damaged: u64,
    /// Nothing passes.
    pub closed: bool,
    /// Number of datagrams after which a client's address changes.
    pub moves_every: Option<u64>,
    /// Longer datagrams are dropped: the bytes of UDP payload in an IPv4 packet of a path's MTU.
    pub longest: Option<usize>,
}

/// Payloads of paths with an MTU of 1228, 1000 and 576 bytes.
const NARROW: [usize; 3] = [1200, 972, 548];

impl Weather {
    pub fn drawn(draws: &mut Draws) -> Self {
        match draws.below(9) {
            0 | 1 => Self::default(),
            2 => Self { lost: 1 + draws.below(30), ..Self::default() },
            3 => Self { repeated: 30, late: 30, ..Self::default() },
            4 => Self { closed: true, ..Self::default() },
            5 => Self { moves_every: Some(50 + draws.below(2000)), ..Self::default() },
            6 => Self { damaged: 5, lost: draws.below(5), ..Self::default() },
            7 => Self {
                longest: Some(NARROW[draws.below(3) as usize]),
                moves_every: draws.happens(50).then_some(500),
                ..Self::default()
            },
            _ => Self {
                lost: draws.below(15),
                repeated: 10,
                late: 20,
                damaged: 2,
                moves_every: Some(300 + draws.below(1000)),
                ..Self::default()
            },
        }
    }
}

/// A delayed datagram.
struct Late {
    at: Instant,
    socket: Arc<UdpSocket>,
    to: Option<SocketAddr>,
    bytes: Vec<u8>,
}

impl PartialEq for Late {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Late {}

impl PartialOrd for Late {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Late {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

/// State shared by the threads of a relay.
struct Relayed {
    near: Arc<UdpSocket>,
    server: SocketAddr,
    weather: Mutex<Weather>,
    late: Sender<Late>,
    is_over: AtomicBool,
}

/// A client from the server's point of view.
struct Flow {
    far: Arc<UdpSocket>,
    draws: Draws,
    passed: u64,
    last: Instant,
    /// The client no longer uses the address `far`.
    is_left: Arc<AtomicBool>,
}

pub struct Relay {
    pub address: SocketAddr,
    relayed: Arc<Relayed>,
}

/// After this time without datagrams, a client gets another address. Longer than any connection survives without
/// datagrams.
const FORGOTTEN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(200);

impl Relay {
    /// Starts a relay to `server`. The faults are derived from `seed`.
    pub fn before(server: SocketAddr, seed: u64) -> Self {
        let near = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
        near.set_read_timeout(Some(LOOK_EVERY)).unwrap();
        let address = near.local_addr().unwrap();
        let (late, later) = channel();
        let relayed = Arc::new(Relayed {
            near,
            server,
            weather: Mutex::default(),
            late,
            is_over: AtomicBool::new(false),
        });
        let there = Arc::clone(&relayed);
        thread::spawn(move || there.up(seed));
        thread::spawn(move || deliver(&later));
        Self { address, relayed }
    }

    pub fn set(&self, weather: Weather) {
        *self.relayed.weather.lock().unwrap() = weather;
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.relayed.is_over.store(true, Relaxed);
    }
}

/// Sends delayed datagrams when they are due.
fn deliver(later: &Receiver<Late>) {
    let mut waiting: BinaryHeap<Reverse<Late>> = BinaryHeap::new();
    loop {
        let now = Instant::now();
        while waiting.peek().is_some_and(|next| next.0.at <= now) {
            if let Some(Reverse(late)) = waiting.pop() {
                send(&late.socket, late.to, &late.bytes);
            }
        }
        let wait = waiting.peek().map_or(LOOK_EVERY, |next| next.0.at - now);
        match later.recv_timeout(wait) {
            Ok(late) => waiting.push(Reverse(late)),
            Err(RecvTimeoutError::Timeout) => (),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// A failure counts as another loss.
fn send(socket: &UdpSocket, to: Option<SocketAddr>, bytes: &[u8]) {
    let _ = match to {
        Some(to) => socket.send_to(bytes, to),
        None => socket.send(bytes),
    };
}

impl Relayed {
    /// Drops, damages, duplicates, delays or forwards a datagram.
    fn pass(&self, draws: &mut Draws, socket: &Arc<UdpSocket>, to: Option<SocketAddr>, bytes: &mut [u8]) {
        let Weather { lost, repeated, late, damaged, closed, longest, .. } = *self.weather.lock().unwrap();
        let is_too_long = longest.is_some_and(|longest| bytes.len() > longest);
        if closed || is_too_long || draws.happens(lost) {
            return;
        }
        if draws.happens(damaged) {
            let bit = draws.below(bytes.len() as u64 * 8) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        for _ in 0..1 + u64::from(draws.happens(repeated)) {
            if draws.happens(late) {
                let at = Instant::now() + Duration::from_micros(draws.below(20_000));
                let late = Late { at, socket: Arc::clone(socket), to, bytes: bytes.to_vec() };
                // Its thread ends together with this relay.
                let _ = self.late.send(late);
            } else {
                send(socket, to, bytes);
            }
        }
    }

    /// Forwards the datagrams of clients.
    fn up(self: &Arc<Self>, seed: u64) {
        let mut flows: BTreeMap<SocketAddr, Flow> = BTreeMap::new();
        let mut buffer = vec![0; 1 << 16];
        let mut clients = 0;
        while !self.is_over.load(Relaxed) {
            let received = self.near.recv_from(&mut buffer);
            let now = Instant::now();
            flows.retain(|_, flow| {
                let stays = now - flow.last < FORGOTTEN;
                flow.is_left.fetch_or(!stays, Relaxed);
                stays
            });
            let Ok((len, client)) = received else { continue };
            let moves_every = self.weather.lock().unwrap().moves_every;
            let flow = flows.entry(client).or_insert_with(|| {
                clients += 1;
                self.flow(client, Draws::new(seed, clients))
            });
            flow.last = now;
            flow.passed += 1;
            if moves_every.is_some_and(|every| flow.passed.is_multiple_of(every)) {
                flow.is_left.store(true, Relaxed);
                *flow = Flow { passed: flow.passed, ..self.flow(client, flow.draws.clone()) };
            }
            let Flow { far, draws, .. } = flow;
            self.pass(draws, far, None, &mut buffer[..len]);
        }
        flows.values().for_each(|flow| flow.is_left.store(true, Relaxed));
    }

    /// Creates an address for `client`, and a thread that forwards the server's datagrams to it.
    fn flow(self: &Arc<Self>, client: SocketAddr, draws: Draws) -> Flow {
        let far = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
        far.connect(self.server).unwrap();
        far.set_read_timeout(Some(LOOK_EVERY)).unwrap();
        let is_left = Arc::new(AtomicBool::new(false));
        let (relayed, socket, left) = (Arc::clone(self), Arc::clone(&far), Arc::clone(&is_left));
        let mut down = draws.clone();
        down.below(1);
        thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while !left.load(Relaxed) {
                // An error means that the port is closed; clients behind a relay do not learn this.
                if let Ok(len) = socket.recv(&mut buffer) {
                    relayed.pass(&mut down, &relayed.near, Some(client), &mut buffer[..len]);
                } else {
                    thread::yield_now();
                }
            }
        });
        Flow { far, draws, passed: 0, last: Instant::now(), is_left }
    }
}
