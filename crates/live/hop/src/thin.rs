//! Thins the TCP ACKs that this machine sends through a slow uplink.
//!
//! Where the kernel takes eBPF, `tacit-kernel` does it with the sockets of this module. Where it does not, [`run`]: a TUN device takes the place of the default route. What the machine sends arrives here, and leaves through a raw socket
//! that is bound to the uplink's device. ACKs wait in between, by [`HoldLaw::Thin`]. A packet socket sees what arrives. The kernel
//! removes the device, its routes and the sockets when this process ends for any reason.

mod device;
mod frames;
mod queue;
mod sockets;
mod status;
mod system;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use serde::{Deserialize, Serialize};
use tacit_between::ack_hold::{AckHold, HoldLaw, Offered};
use tacit_packet::units::{BitRate, Duration, Instant};
use tacit_packet::wire;
use tacit_packet::wire::headers::Headers;

pub use self::device::Device;
pub use self::frames::FrameSocket;
pub use self::queue::Queue;
use self::sockets::{ArrivalSocket, Uplink, Way};
pub use self::status::{Running, Socket as StatusSocket, running};
use crate::clock::MediumClock;
use crate::error::LiveError;
use crate::namespace::ip_batch;
use crate::tun::Tun;

/// How often the queue of the uplink is looked at while it holds packets: less than the time of one ACK at 50 kb/s.
pub const LOOK_EVERY: Duration = Duration::from_millis(4);
/// How often the device and the routes are looked at: a new address takes the routes along.
const WATCH_EVERY: Duration = Duration::from_secs(1);
/// How long the device may be without address or default route, which are elsewhere or nowhere meanwhile: longer than a modem connects.
const LOST_MAX: Duration = Duration::from_secs(60);
/// How long a rehearsal watches.
const REHEARSAL: Duration = Duration::from_secs(60);
/// Packets read from one source before the others are looked at.
const READ_BATCH: usize = 64;

/// What was thinned since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Packets that programs of this machine sent.
    pub packets: u64,
    /// Pure ACKs among them.
    pub acks: u64,
    /// ACKs that a later one replaced.
    pub dropped_acks: u64,
    /// Packets that the uplink's queue refused.
    pub refused_packets: u64,
    /// Bytes that went to the uplink.
    pub sent_bytes: u64,
}

/// Thins the ACKs that leave through `device`, until `stop` becomes readable. `rate` is that of the uplink, if it is known
/// and the queue is not this machine's. `started` is called once it works.
///
/// # Errors
/// If the device cannot be used, with the reason, or the kernel does not permit it.
pub fn run(
    device: &Device,
    rate: Option<BitRate>,
    stop: &impl AsFd,
    started: impl FnOnce(&Device),
) -> Result<Counters, LiveError> {
    let device = Device::look(&device.name)?;
    let uplink = Uplink::open(&device).map_err(refused("cannot send raw packets"))?;
    let arrivals = ArrivalSocket::open(&device).map_err(refused("cannot see what arrives"))?;
    let status = status::Socket::listen(&device.name)?;
    let tun = Tun::create().map_err(|error| refused("cannot make a TUN device")(error.into_source()))?;
    ip_batch(&device.setup(tun.name()))?;
    started(&device);
    let law = AckHold::new(HoldLaw::Thin);
    let hold = match rate {
        Some(rate) => law.with_uplink(rate),
        None => law,
    };
    let clock = MediumClock::start();
    let mut thinner =
        Thinner { device, hold, uplink, counts_queue: rate.is_none(), counters: Counters::default() };
    thinner.turn_until(stop, (tun, arrivals, status), &clock)
}

/// For `map_err`: the kernel refuses `what`.
pub fn refused(what: &'static str) -> impl FnOnce(io::Error) -> LiveError {
    move |source| LiveError::Refused {
        what: what.to_owned(),
        source,
        advice: "run as root, or with CAP_NET_ADMIN and CAP_NET_RAW",
    }
}

/// Counts what [`run`] would drop of the traffic of `device` with an uplink of `rate`, until `stop` becomes readable, or for
/// a minute. It changes nothing.
///
/// # Errors
/// As for [`run`].
pub fn rehearse(device: &Device, rate: BitRate, stop: &impl AsFd) -> Result<Counters, LiveError> {
    let mut arrivals = ArrivalSocket::open_both_ways(device).map_err(refused("cannot see what passes"))?;
    let mut hold = AckHold::new(HoldLaw::Thin).with_uplink(rate);
    let (clock, mut counters) = (MediumClock::start(), Counters::default());
    loop {
        let now = clock.now();
        let left = REHEARSAL.saturating_sub(now.saturating_since(Instant::ZERO));
        if left == Duration::ZERO {
            return Ok(counters);
        }
        let mut on_packet = |way, bytes: &[u8]| match way {
            Way::In => {
                if let Some((headers, segment)) = wire::segment(bytes) {
                    hold.on_reverse_segment(now, headers.reverse_key(), &segment);
                }
            }
            Way::Out => {
                let offered = counters.count(bytes);
                let replaced = hold.offer(now, offered, (), &mut |()| {});
                counters.dropped_acks += u64::from(replaced.is_some());
            }
        };
        for _ in 0..READ_BATCH {
            if !arrivals.receive(&mut on_packet).map_err(LiveError::io("a packet socket"))? {
                break;
            }
        }
        hold.handle_timeout(now, &mut |()| {});
        let due = hold.poll_timeout().map_or(left, |due| due.saturating_since(now).min(left));
        if wait([stop.as_fd(), arrivals.as_fd()], Some(due))? {
            return Ok(counters);
        }
    }
}

/// Waits until one of `fds` is readable, for `longest` at most. Returns true if the first is.
///
/// # Errors
/// If the kernel cannot wait for them.
pub fn wait<const N: usize>(fds: [BorrowedFd<'_>; N], longest: Option<Duration>) -> Result<bool, LiveError> {
    let timeout =
        longest.map(|longest| TimeSpec::from_duration(std::time::Duration::from_nanos(longest.as_nanos())));
    let mut fds = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN));
    match ppoll(&mut fds, timeout, None) {
        Ok(_) => Ok(fds[0].any().unwrap_or(true)),
        Err(Errno::EINTR) => Ok(false),
        Err(error) => Err(LiveError::Io { what: "ppoll".to_owned(), source: error.into() }),
    }
}

/// The way from the TUN device to the uplink.
struct Thinner {
    device: Device,
    hold: AckHold<Vec<u8>>,
    uplink: Uplink,
    /// The uplink's rate is learned from its queue.
    counts_queue: bool,
    counters: Counters,
}

impl Thinner {
    fn turn_until(
        &mut self,
        stop: &impl AsFd,
        (mut tun, mut arrivals, status): (Tun, ArrivalSocket, status::Socket),
        clock: &MediumClock,
    ) -> Result<Counters, LiveError> {
        let (mut watch_at, mut lost_at) = (clock.now() + WATCH_EVERY, None);
        loop {
            let now = clock.now();
            if now >= watch_at {
                watch_at = now + WATCH_EVERY;
                lost_at = match self.mend_routes(tun.name()) {
                    Ok(()) => None,
                    Err(error) if lost_at.is_some_and(|lost_at| now >= lost_at + LOST_MAX) => {
                        return Err(error);
                    }
                    Err(_) => lost_at.or(Some(now)),
                };
            }
            let hold = &mut self.hold;
            for _ in 0..READ_BATCH {
                let received = arrivals.receive(|way, bytes| {
                    if let Some((headers, segment)) = wire::segment(bytes).filter(|_| way == Way::In) {
                        hold.on_reverse_segment(now, headers.reverse_key(), &segment);
                    }
                });
                if !received.map_err(LiveError::io("a packet socket"))? {
                    break;
                }
            }
            self.observe(now);
            for _ in 0..READ_BATCH {
                let read = tun.receive(|bytes, _| self.send(now, bytes));
                if read.map_err(LiveError::io("a TUN device"))?.is_none() {
                    break;
                }
            }
            let (uplink, counters) = (&mut self.uplink, &mut self.counters);
            self.hold.handle_timeout(now, &mut |packet| counters.note_sent(uplink, &packet));
            status.answer(&self.counters);
            let due = self.hold.poll_timeout().map(|due| due.saturating_since(now));
            let look = (self.counts_queue && self.uplink.is_busy()).then_some(LOOK_EVERY);
            let longest = due.into_iter().chain(look).chain([watch_at.saturating_since(now)]).min();
            if wait([stop.as_fd(), tun.as_fd(), arrivals.as_fd(), status.as_fd()], longest)? {
                return Ok(self.counters);
            }
        }
    }

    /// Leads the routes here again, if a change of the device has taken them.
    fn mend_routes(&mut self, tun: &str) -> Result<(), LiveError> {
        self.device.again(tun)?.map_or(Ok(()), |script| ip_batch(&script))
    }

    /// A program sends the packet in `bytes`.
    fn send(&mut self, now: Instant, bytes: &[u8]) {
        let offered = self.counters.count(bytes);
        let (uplink, counters) = (&mut self.uplink, &mut self.counters);
        let pass = &mut |packet: Vec<u8>| counters.note_sent(uplink, &packet);
        let replaced = self.hold.offer(now, offered, bytes.to_vec(), pass);
        self.counters.dropped_acks += u64::from(replaced.is_some());
    }

    fn observe(&mut self, now: Instant) {
        if self.counts_queue {
            self.hold.observe(now, self.uplink.counts());
        }
    }
}

impl Counters {
    /// Counts a packet that this machine sends; returns its view for [`AckHold`].
    fn count(&mut self, bytes: &[u8]) -> Offered {
        let parsed = wire::segment(bytes);
        let headers = parsed.map(|(headers, _)| headers).or_else(|| Headers::read(bytes));
        let segment = parsed.map(|(_, segment)| segment);
        self.packets += 1;
        self.acks += u64::from(segment.is_some_and(|segment| segment.is_pure_ack()));
        let key = headers.map(|headers| headers.flow_key()).unwrap_or_default();
        Offered { key, segment, len: bytes.len() as u32 }
    }

    fn note_sent(&mut self, uplink: &mut Uplink, packet: &[u8]) {
        if uplink.send(packet) {
            self.sent_bytes += packet.len() as u64;
        } else {
            self.refused_packets += 1;
        }
    }
}
