//! The thinner of ACKs in the kernel.
//!
//! The program at the device's egress decides, as `tacit_between::ack_hold` does, and passes what need not wait. ACKs that may
//! wait come here through a ring. The newest of each flow waits here, and goes back by a packet socket. Both programs hang
//! on links that the kernel removes with this process.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use tacit_between::ack_hold::{AckHold, HoldLaw, Offered, QueueCounts, Uplink};
use tacit_hop::LiveError;
use tacit_hop::thin::{Counters, Device, FrameSocket, LOOK_EVERY, Queue, StatusSocket, refused, wait};
use tacit_packet::units::{BitRate, Duration, Instant};
use tacit_packet::wire::headers::Headers;
use tacit_packet::{FlowKey, wire};

use crate::bpf::{self, Attach};
use crate::object::{Kind, Loaded, Object, ObjectError};
use crate::ring::Ring;

/// Compiled by `bpf/build.sh`.
static THIN: &[u8] = include_bytes!("../bpf/thin.bpf.o");
const RING_MAP: &str = "thin_ring";
const EGRESS: &str = "thin_egress";
const INGRESS: &str = "thin_ingress";
const TURN: &str = "thin_turn";

/// How often the queue is looked at while nothing waits: a flow's first 100 segments take longer on any slow uplink.
const IDLE_LOOK_EVERY: Duration = Duration::from_millis(50);
/// How often the device is looked at, which may be removed.
const WATCH_EVERY: Duration = Duration::from_secs(1);
/// `RING_OCTETS` of `bpf/thin.bpf.c`.
const RING_BYTES: usize = 256 << 10;
/// `settings` there: the cookie, and the octets before the IP header.
const SETTINGS_BYTES: usize = 16;
/// `THIN_PASS` of `bpf/thin.h`.
const PASS: u64 = u64::MAX;
/// Numbers of `struct turn`.
const TURN_WORDS: usize = 10;

/// The programs, which hang on a device.
#[derive(Debug)]
pub struct Thinner {
    device: Device,
    turn: OwnedFd,
    /// At ingress and at egress. They are closed before the ring.
    links: [OwnedFd; 2],
    ring: Ring,
    status: StatusSocket,
    queue: Queue,
    rate: Option<BitRate>,
    room: Room,
}

/// What waits here, and what became of it.
#[derive(Debug)]
struct Room {
    hold: AckHold<Vec<u8>>,
    frames: FrameSocket,
    link_octets: usize,
    /// Number of the last packet from the kernel.
    number: u64,
    refused_packets: u64,
}

impl Thinner {
    /// Loads the programs and hangs them on `device`. `rate` is that of the uplink, if it is known and the queue is not this
    /// machine's. [`run`](Self::run) follows at once: ACKs wait from now on.
    ///
    /// # Errors
    /// [`LiveError::Argument`] if the device is thinned already; otherwise if this kernel or device does not support it,
    /// with the reason.
    pub fn start(device: &Device, rate: Option<BitRate>) -> Result<Self, LiveError> {
        let status = StatusSocket::listen(&device.name)?;
        let link_octets = device.link_octets().ok_or_else(|| {
            let source = io::Error::from(io::ErrorKind::Unsupported);
            crate::refused("a device of this kind", source, "an Ethernet, PPP or raw IP device")
        })?;
        let frames = FrameSocket::open(device, link_octets).map_err(refused("cannot send frames"))?;
        let cookie = frames.cookie().map_err(refused("cannot name a socket"))?;
        let queue = Queue::open(device).map_err(refused("cannot ask for a queue"))?;
        let mut settings = [0; SETTINGS_BYTES];
        settings[..8].copy_from_slice(&cookie.to_ne_bytes());
        settings[8..12].copy_from_slice(&link_octets.to_ne_bytes());
        let mut loaded = load(&settings).map_err(not_loaded)?;
        let ring = Ring::open(loaded.take_map(RING_MAP).map_err(not_loaded)?, RING_BYTES);
        let ring = ring.map_err(refused("cannot read a ring"))?;
        let on_device = |program, to| attach(&loaded, program, to, device.index);
        let links = [on_device(INGRESS, Attach::TcxIngress)?, on_device(EGRESS, Attach::TcxEgress)?];
        let (hold, link_octets) = (AckHold::new(HoldLaw::Thin), link_octets as usize);
        let room = Room { hold, frames, link_octets, number: 0, refused_packets: 0 };
        Ok(Self {
            device: device.clone(),
            turn: loaded.take_program(TURN).map_err(not_loaded)?,
            links,
            ring,
            status,
            queue,
            rate,
            room,
        })
    }

    /// Thins until `stop` becomes readable.
    ///
    /// # Errors
    /// If the device is gone, or the kernel does not do what it did before.
    pub fn run(self, stop: &impl AsFd) -> Result<Counters, LiveError> {
        let mut watch_at = now() + WATCH_EVERY;
        let Self { device, turn: program, links, ring, status, queue, rate, mut room } = self;
        loop {
            ring.read(|record| room.take(now(), record));
            let counts = if rate.is_some() { QueueCounts::default() } else { queue.counts() };
            let counters = turn(&program, rate, counts, &mut room)?;
            room.release_due(now());
            status.answer(&counters);
            if now() >= watch_at {
                device.check()?;
                watch_at = now() + WATCH_EVERY;
            }
            let is_busy = !room.hold.is_empty() || counts.waiting.0 > 0;
            let look = if is_busy { LOOK_EVERY } else { IDLE_LOOK_EVERY };
            let due = room.hold.poll_timeout().map(|due| due.saturating_since(now()));
            let longest = due.map_or(look, |due| due.min(look));
            if wait([stop.as_fd(), ring.as_fd(), status.as_fd()], Some(longest))? {
                // From now on nothing comes here.
                drop(links);
                ring.read(|record| room.take(now(), record));
                room.release_all(now());
                return turn(&program, rate, counts, &mut room);
            }
        }
    }
}

fn load(settings: &[u8; SETTINGS_BYTES]) -> Result<Loaded, ObjectError> {
    let mut object = Object::parse(THIN)?;
    object.set_constants(settings)?;
    object.load(&[(EGRESS, Kind::Egress), (INGRESS, Kind::Ingress), (TURN, Kind::Syscall)])
}

fn not_loaded(ObjectError { what, source }: ObjectError) -> LiveError {
    let advice = "run as root, or with CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON, on Linux 6.6 or later";
    crate::refused(&what, source, advice)
}

/// Attaches a program to a device, until the returned file is closed.
fn attach(loaded: &Loaded, program: &str, to: Attach, device_index: i32) -> Result<OwnedFd, LiveError> {
    bpf::attach(loaded.program(program).map_err(not_loaded)?, device_index, to).map_err(|source| {
        crate::refused("cannot attach a program to a device (tcx)", source, "use Linux 6.6 or later")
    })
}

/// Loads the programs, attaches the one that only listens to the loopback device, and removes all.
///
/// # Errors
/// If this fails, with the reason.
pub fn check() -> Result<String, LiveError> {
    let loaded = load(&[0; SETTINGS_BYTES]).map_err(not_loaded)?;
    // The loopback device is the first of each network.
    attach(&loaded, INGRESS, Attach::TcxIngress, 1)?;
    Ok("loads".to_owned())
}

/// The time of eBPF programs (bpf_ktime_get_ns(), which is CLOCK_MONOTONIC).
fn now() -> Instant {
    // It exists on each Linux.
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap_or(TimeSpec::new(0, 0));
    Instant::from_nanos(std::time::Duration::from(time).as_nanos() as u64)
}

/// Tells the kernel what its queue has done and whether anything waits here; learns when the uplink will be free.
fn turn(
    program: &OwnedFd,
    rate: Option<BitRate>,
    counts: QueueCounts,
    room: &mut Room,
) -> Result<Counters, LiveError> {
    let settled = if room.hold.is_empty() { room.number } else { 0 };
    let mut turn = [0; TURN_WORDS];
    turn[..4].copy_from_slice(&[now().as_nanos(), counts.sent.0, counts.waiting.0, settled]);
    (turn[4], turn[5]) = (rate.map_or(0, BitRate::as_bps), rate.is_some().into());
    let mut context: Vec<u8> = turn.iter().flat_map(|word: &u64| word.to_ne_bytes()).collect();
    bpf::run(program, &mut context).map_err(refused("cannot run a program"))?;
    let mut turned = context.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).skip(4);
    let mut next = || turned.next().unwrap_or_default();
    let (rate, _, free_at) = (next(), next(), next());
    room.hold.set_uplink(Uplink::new(BitRate::from_bps(rate), Instant::from_nanos(free_at)));
    let (packets, acks, sent_bytes) = (next(), next(), next());
    let (dropped_acks, refused_packets) = (room.hold.dropped(), room.refused_packets);
    Ok(Counters { packets, acks, dropped_acks, refused_packets, sent_bytes })
}

impl Room {
    /// Takes a packet from the kernel (`struct given`).
    fn take(&mut self, now: Instant, record: &[u8]) {
        let Some((number, rest)) = record.split_first_chunk() else { return };
        let Some((verdict, rest)) = rest.split_first_chunk() else { return };
        let Some((has_left, rest)) = rest.split_first_chunk() else { return };
        let Some((len, frame)) = rest.split_first_chunk() else { return };
        let (verdict, has_left) = (u64::from_ne_bytes(*verdict), u32::from_ne_bytes(*has_left) != 0);
        let Some(frame) = frame.get(..u32::from_ne_bytes(*len) as usize) else { return };
        self.number = u64::from_ne_bytes(*number);
        let packet = frame.get(self.link_octets..).unwrap_or_default();
        let key = Headers::read(packet).map(|headers| headers.flow_key()).unwrap_or_default();
        let (frames, refused) = (&self.frames, &mut self.refused_packets);
        let pass = &mut |mut frame: Vec<u8>| *refused += u64::from(!frames.send_ack(&mut frame));
        if has_left {
            self.hold.overtaken(now, key, pass);
            return;
        }
        let segment = wire::segment(packet).map(|(_, segment)| segment);
        let offered = Offered { key, segment, len: frame.len() as u32 };
        let hold = Some(Duration::from_nanos(verdict)).filter(|_| verdict != PASS);
        self.hold.offer_decided(now, offered, hold, frame.to_vec(), pass);
    }

    fn release_due(&mut self, now: Instant) {
        let (frames, refused) = (&self.frames, &mut self.refused_packets);
        let pass = &mut |mut frame: Vec<u8>| *refused += u64::from(!frames.send_ack(&mut frame));
        self.hold.handle_timeout(now, pass);
    }

    fn release_all(&mut self, now: Instant) {
        let (frames, refused) = (&self.frames, &mut self.refused_packets);
        let pass = &mut |mut frame: Vec<u8>| *refused += u64::from(!frames.send_ack(&mut frame));
        // No flow has this key.
        self.hold.overtaken(now, FlowKey::default(), pass);
    }
}
