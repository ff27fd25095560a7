//! The thinner of ACKs in the kernel.
//!
//! The program at the device's egress decides, as `tacit_proto::ack_hold` does, and passes what need not wait. ACKs that may
//! wait come here through a ring. The newest of each flow waits here, and goes back by a packet socket. Both programs hang
//! on links that the kernel removes with this process.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::{self, NonNull};

use libbpf_rs::{AsRawLibbpf as _, Link, MapCore as _, Object, ProgramInput, RingBufferBuilder, libbpf_sys};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use tacit_hop::LiveError;
use tacit_hop::thin::{Counters, Device, FrameSocket, LOOK_EVERY, Queue, StatusSocket, refused, wait};
use tacit_proto::FlowKey;
use tacit_proto::ack_hold::{AckHold, HoldLaw, Offered, QueueCounts, Uplink};
use tacit_proto::units::{BitRate, Duration, Instant};
use tacit_proto::wire;
use tacit_proto::wire::headers::Headers;

use crate::loaded::{broken, examine_devices, explained, load, open};

/// Compiled by `bpf/build.sh`.
static THIN: &[u8] = include_bytes!("../bpf/thin.bpf.o");

/// How often the queue is looked at while nothing waits: a flow's first 100 segments take longer on any slow uplink.
const IDLE_LOOK_EVERY: Duration = Duration::from_millis(50);
/// `settings` of `bpf/thin.bpf.c`.
const COOKIE_AT: usize = 0;
const LINK_OCTETS_AT: usize = 8;
/// `THIN_PASS` of `bpf/thin.h`.
const PASS: u64 = u64::MAX;
/// Numbers of `struct turn`.
const TURN_WORDS: usize = 10;

/// The loaded programs, which no device has yet.
#[derive(Debug)]
pub struct Thinner {
    object: Object,
    device: Device,
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
    /// Loads the programs for `device`. `rate` is that of the uplink, if it is known and the queue is not this machine's.
    ///
    /// # Errors
    /// If this kernel or device does not support it, with the reason.
    pub fn load(device: &Device, rate: Option<BitRate>) -> Result<Self, LiveError> {
        examine_devices()?;
        let link_octets = device.link_octets().ok_or_else(|| {
            let source = io::Error::from(io::ErrorKind::Unsupported);
            crate::refused("a device of this kind", source, "an Ethernet, PPP or raw IP device")
        })?;
        let frames = FrameSocket::open(device, link_octets).map_err(refused("cannot send frames"))?;
        let cookie = frames.cookie().map_err(refused("cannot name a socket"))?;
        let queue = Queue::of(device).map_err(refused("cannot ask for a queue"))?;
        let mut opened = open(THIN)?;
        let mut settings = opened.maps_mut().find(|map| map.name().to_string_lossy().ends_with(".rodata"));
        let settings = settings.as_mut().and_then(|map| map.initial_value_mut());
        let settings = settings.and_then(|value| value.get_mut(..LINK_OCTETS_AT + 4));
        let settings = settings.ok_or_else(|| broken("settings"))?;
        settings[COOKIE_AT..][..8].copy_from_slice(&cookie.to_ne_bytes());
        settings[LINK_OCTETS_AT..][..4].copy_from_slice(&link_octets.to_ne_bytes());
        let object = load(opened)?;
        let (hold, link_octets) = (AckHold::new(HoldLaw::Thin), link_octets as usize);
        let room = Room { hold, frames, link_octets, number: 0, refused_packets: 0 };
        Ok(Self { object, device: device.clone(), queue, rate, room })
    }

    /// Thins until `stop` becomes readable. `started` is called once it works.
    ///
    /// # Errors
    /// If the device is thinned already, or the kernel does not permit it.
    pub fn run(self, stop: &impl AsFd, started: impl FnOnce()) -> Result<Counters, LiveError> {
        let Self { object, device, queue, rate, room } = self;
        let status = StatusSocket::listen(&device.name)?;
        let room = RefCell::new(room);
        let map = object.maps().find(|map| map.name() == "thin_ring").ok_or_else(|| broken("thin_ring"))?;
        let mut ring = RingBufferBuilder::new();
        let take = |record: &[u8]| {
            room.borrow_mut().take(now(), record);
            0
        };
        ring.add(&map, take).map_err(unreadable)?;
        let ring = ring.build().map_err(unreadable)?;
        let links = [attach(&object, "thin_ingress", &device)?, attach(&object, "thin_egress", &device)?];
        started();
        loop {
            ring.consume().map_err(unreadable)?;
            let counts = if rate.is_some() { QueueCounts::default() } else { queue.counts() };
            let (counters, longest) = {
                let mut room = room.borrow_mut();
                let counters = turn(&object, rate, counts, &mut room)?;
                room.release_due(now());
                let is_busy = !room.hold.is_empty() || counts.waiting.0 > 0;
                let look = if is_busy { LOOK_EVERY } else { IDLE_LOOK_EVERY };
                let due = room.hold.poll_timeout().map(|due| due.saturating_since(now()));
                (counters, due.map_or(look, |due| due.min(look)))
            };
            status.answer(&counters);
            // SAFETY: the file of the ring is open as long as the ring, which outlives this.
            let ring_fd = unsafe { BorrowedFd::borrow_raw(ring.epoll_fd()) };
            if wait([stop.as_fd(), ring_fd, status.as_fd()], Some(longest))? {
                // From now on nothing comes here.
                drop(links);
                ring.consume().map_err(unreadable)?;
                let mut room = room.borrow_mut();
                room.release_all(now());
                return turn(&object, rate, counts, &mut room);
            }
        }
    }
}

/// Loads the programs and unloads them.
///
/// # Errors
/// If this fails, with the reason.
pub fn check() -> Result<String, LiveError> {
    examine_devices()?;
    load(open(THIN)?)?;
    Ok("loads".to_owned())
}

fn unreadable(error: libbpf_rs::Error) -> LiveError {
    explained("reading a ring", error)
}

/// The time of eBPF programs (bpf_ktime_get_ns(), which is CLOCK_MONOTONIC).
fn now() -> Instant {
    // It exists on each Linux.
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap_or(TimeSpec::new(0, 0));
    Instant::from_nanos(std::time::Duration::from(time).as_nanos() as u64)
}

/// Hangs a program on the device. The link ends with this process.
fn attach(object: &Object, name: &str, device: &Device) -> Result<Link, LiveError> {
    let program = object.progs_mut().find(|program| program.name() == name).ok_or_else(|| broken(name))?;
    let at = program.as_libbpf_object();
    // SAFETY: the program is loaded, and libbpf copies what it needs.
    let link = unsafe { libbpf_sys::bpf_program__attach_tcx(at.as_ptr(), device.index, ptr::null()) };
    match NonNull::new(link) {
        // SAFETY: libbpf has just made it, and nothing else owns it.
        Some(link) => Ok(unsafe { Link::from_ptr(link) }),
        None => {
            let source = io::Error::last_os_error();
            Err(crate::refused("hanging a program on a device", source, "start with --no-ebpf"))
        }
    }
}

/// Tells the kernel what its queue has done and whether anything waits here; learns when the uplink will be free.
fn turn(
    object: &Object,
    rate: Option<BitRate>,
    counts: QueueCounts,
    room: &mut Room,
) -> Result<Counters, LiveError> {
    let program = object.progs_mut().find(|program| program.name() == "thin_turn");
    let program = program.ok_or_else(|| broken("thin_turn"))?;
    let settled = if room.hold.is_empty() { room.number } else { 0 };
    let mut turn = [0; TURN_WORDS];
    turn[..4].copy_from_slice(&[now().as_nanos(), counts.sent.0, counts.waiting.0, settled]);
    (turn[4], turn[5]) = (rate.map_or(0, BitRate::as_bps), rate.is_some().into());
    let mut context: Vec<u8> = turn.iter().flat_map(|word: &u64| word.to_ne_bytes()).collect();
    let input = ProgramInput { context_in: Some(&mut context), ..ProgramInput::default() };
    program.test_run(input).map_err(|error| explained("running a program", error))?;
    let mut turned = context.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).skip(4);
    let mut next = || turned.next().unwrap_or_default();
    let (rate, _, free_at) = (next(), next(), next());
    room.hold.tell(Uplink::told(BitRate::from_bps(rate), Instant::from_nanos(free_at)));
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

#[cfg(test)]
mod tests {
    use libbpf_rs::ObjectBuilder;

    use super::*;

    /// Settings are written at the correct offsets of the object, and records have the length of their fields.
    #[test]
    fn the_embedded_object_has_its_settings_where_they_are_written() {
        let open = ObjectBuilder::default().open_memory(THIN).unwrap();
        let settings = open.maps().find(|map| map.name().to_string_lossy().ends_with(".rodata")).unwrap();
        assert_eq!(settings.initial_value().unwrap(), [0; LINK_OCTETS_AT + 8]);
        for name in ["thin_ring", "thin_flows", "thin_shared"] {
            assert!(open.maps().any(|map| map.name() == name), "{name}");
        }
        for name in ["thin_egress", "thin_ingress", "thin_turn"] {
            assert!(open.progs().any(|program| program.name() == name), "{name}");
        }
    }
}
