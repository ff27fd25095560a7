//! The hop itself: a world, two TUN devices and a clock in one thread.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use tacit_between::ack_hold::{AckHold, Offered};
use tacit_between::fwp;
use tacit_packet::units::{Duration, HostId, Instant};
use tacit_sim::capture::{self, AtomicFile, Recorder};
use tacit_sim::setup::ApDriver;
use tacit_sim::{Arrived, Carried, Observer, RunOutcome, Setup, World};

use crate::ack_mode::AckMode;
use crate::address::Block;
use crate::clock::{MediumClock, Punctuality};
use crate::datagram::{Datagram, Entry, Frame};
use crate::error::LiveError;
use crate::merge::{Merge, Merger};
use crate::meter::{Direction, Meter};
use crate::offload::Header;
use crate::readers::{NearShim, ReaderSocket};
use crate::table::AddressTable;
use crate::tun::Tun;

/// Maximum number of packets read from a device before events are handled again.
const READ_BATCH: usize = 64;
/// Interval between reads of a device to which nothing was written. A read without result costs as much as an event.
const LOOK_EVERY: Duration = Duration::from_micros(20);
/// The last part of a wait is busy-waiting, because sleeps end about 20 us late at the median and up to 145 us late at
/// the 99th percentile.
const SPIN: Duration = Duration::from_micros(60);
/// The same for a thread with priority over others, whose sleeps end within a few microseconds.
const SPIN_PREFERRED: Duration = Duration::from_micros(10);
/// Interval between updates of the snapshot for watchers.
const SNAPSHOT_EVERY: Duration = Duration::from_millis(100);
/// Duration of the simulated world. A hop has no end of its own, so this is a century.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// The components of a hop.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Hosts and links. Its flows are background traffic, and its duration is ignored.
    pub setup: Setup,
    /// The host that represents the command's side.
    pub near: HostId,
    /// The host that represents the other side.
    pub far: HostId,
    /// How ACKs are thinned when they enter the hop.
    pub ack_mode: AckMode,
    /// Whether reconstructed ACKs are compared with the originals.
    pub oracle: Oracle,
}

/// Whether the hop remembers compressed ACKs, and ends a run if a reconstructed one differs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Oracle {
    /// Compare.
    #[default]
    Watch,
    /// Do not compare: ACKs are reconstructed from their bytes alone.
    Off,
}

impl Plan {
    /// FWP's shim at the near host; `None` if there is none.
    pub(crate) fn shim(&self) -> Option<fwp::Config> {
        self.setup.bss.iter().find_map(|set| set.fwp_shim(self.near))
    }

    /// Checks whether a hop can execute the plan.
    ///
    /// # Errors
    /// [`LiveError::Unsupported`] if it cannot.
    pub(crate) fn check(&self) -> Result<(), LiveError> {
        // The FastACK agent generates segments, but in a hop the bytes belong to other programs.
        if self.setup.bss.iter().any(|set| matches!(set.access_point.driver, ApDriver::FastAck(_))) {
            return Err(LiveError::Unsupported {
                what: "wifi.ap-acks = \"fastack\", to acknowledge the segments of real programs,",
                allowed: "\"none\", or a simulation",
            });
        }
        Ok(())
    }
}

/// Progress of a hop, for watchers.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The medium's time.
    pub now: Instant,
    /// Bytes received so far: downlink, uplink.
    pub received: [u64; 2],
    /// ACKs per segment so far: of downloads, of uploads.
    pub ack_ratio: [Option<f64>; 2],
    /// Lateness of events.
    pub punctuality: Punctuality,
}

/// The results of a hop.
#[derive(Debug)]
pub struct Ended {
    /// The world's counters.
    pub outcome: RunOutcome,
    /// Inconsistency in the world's accounting; `None` if it is consistent.
    pub unbalanced: Option<String>,
    /// Statistics of the traffic.
    pub meter: Meter,
    /// Lateness of events.
    pub punctuality: Punctuality,
    /// Duration in the medium's time.
    pub lasted: Duration,
    /// CPU time of the hop's thread.
    pub cpu: Duration,
    /// Number of packets that a side's kernel refused, or passed on in a form that cannot be sent.
    pub refused_packets: u64,
    /// Counters of FWP's shim; `None` if there is none.
    pub fwp: Option<fwp::Counters>,
}

/// Runs a hop until `stop` becomes readable.
///
/// # Errors
/// If the world fails, a device disappears, or the capture cannot be written.
pub fn run(
    plan: &Plan,
    block: Block,
    [near, far]: [Tun; 2],
    readers: Option<ReaderSocket>,
    stop: &impl AsFd,
    capture: Option<AtomicFile>,
    snapshot: &Mutex<Snapshot>,
) -> Result<Ended, LiveError> {
    let spin = if prefer_this_thread() { SPIN_PREFERRED } else { SPIN };
    let recorder = capture.map(|file| Recorder::new(file, &plan.setup)).transpose();
    let mut recorder = recorder.map_err(LiveError::io("--pcap"))?;
    let mut setup = plan.setup.clone();
    setup.duration = FOREVER;
    setup.measure_from = Instant::ZERO;
    let observer = recorder.as_mut().map(|recorder| recorder as &mut dyn Observer<Frame>);
    let mut world = World::new(&setup, observer)?;
    if plan.oracle == Oracle::Off {
        world = world.without_oracle();
    }
    let shim = match (plan.shim(), readers) {
        (Some(config), Some(listener)) => {
            let created = NearShim::new(config, listener);
            Some(created.map_err(LiveError::io("the socket of FWP's readers"))?)
        }
        _ => None,
    };
    let flows = setup.flows.iter().map(|flow| [flow.source, flow.sink]);
    *world.addresses_mut() = AddressTable::new(flows, [plan.near, plan.far], block);
    let merge = plan.ack_mode.merge();
    let mut hop = Hop {
        world,
        ports: [Port::new(near, plan.near, plan.far, merge), Port::new(far, plan.far, plan.near, merge)],
        shim,
        thinner: plan.ack_mode.hold().map(AckHold::new),
        meter: Meter::default(),
        clock: MediumClock::start(),
        spin,
    };
    hop.turn_until(stop, snapshot)?;
    let ended = hop.end();
    if let Some(recorder) = recorder {
        recorder.finish().map_err(|error| LiveError::Io {
            what: "--pcap".to_owned(),
            source: io::Error::other(capture::why(&error)),
        })?;
    }
    Ok(ended)
}

/// The connection between a side and the world.
struct Port {
    tun: Tun,
    host: HostId,
    peer: HostId,
    /// When to read from the device next.
    looks_at: Instant,
    /// Packets for the side's kernel that have not been passed on yet.
    merger: Merger,
    /// Number of packets that the kernel refused.
    refused: u64,
}

impl Port {
    fn new(tun: Tun, host: HostId, peer: HostId, merge: Merge) -> Self {
        Self { tun, host, peer, looks_at: Instant::ZERO, merger: Merger::new(merge), refused: 0 }
    }

    /// Passes a packet to the kernel, possibly merged with others until [`Port::flush`].
    fn give(&mut self, datagram: &Datagram) {
        let Self { tun, merger, refused, .. } = self;
        let verified = datagram.entry().is_some_and(|entry| entry.verified);
        let gathered = verified && merger.take(datagram.bytes(), sending(tun, refused));
        if !gathered {
            merger.flush(sending(tun, refused));
            *refused += u64::from(!tun.send(datagram.bytes(), verified));
        }
        // The kernel may answer immediately.
        self.looks_at = Instant::ZERO;
    }

    fn flush(&mut self) {
        self.merger.flush(sending(&mut self.tun, &mut self.refused));
    }
}

/// Returns a function that sends merged packets and counts refused ones.
fn sending(tun: &mut Tun, refused: &mut u64) -> impl FnMut(Option<Header>, &mut [u8]) {
    |header, packet| {
        *refused += match header {
            Some(header) => tun.send_large(&header, packet) as u64,
            None => u64::from(!tun.send(packet, true)),
        }
    }
}

struct Hop<'o> {
    world: World<'o, Frame>,
    /// The near port, then the far one.
    ports: [Port; 2],
    /// FWP's shim before the near kernel's TCP.
    shim: Option<NearShim>,
    thinner: Option<AckHold<Frame>>,
    meter: Meter,
    clock: MediumClock,
    /// The last part of a wait, which is busy-waiting.
    spin: Duration,
}

/// Direction of packets read from each port, as seen from the command's side.
const WAYS_IN: [Direction; 2] = [Direction::Up, Direction::Down];

impl Hop<'_> {
    fn turn_until(&mut self, stop: &impl AsFd, snapshot: &Mutex<Snapshot>) -> Result<(), LiveError> {
        let mut snapshot_due = Instant::ZERO;
        self.world.handle_timeout(Instant::ZERO)?;
        loop {
            let now = self.step()?;
            if now >= snapshot_due {
                self.meter.advance(now);
                *snapshot.lock().unwrap_or_else(PoisonError::into_inner) = self.snapshot(now);
                snapshot_due = now + SNAPSHOT_EVERY;
                // A hop that lags behind never waits, so it has to check for the stop request here.
                if self.sleep(Duration::ZERO, stop.as_fd())? {
                    return Ok(());
                }
            }
            if self.wait(snapshot_due, stop.as_fd())? {
                return Ok(());
            }
        }
    }

    /// Handles one event of the world at its due time, its deliveries, and new packets. Returns the medium's time.
    ///
    /// Kernels respond within the system call that gives them a packet. Their responses are read before the next event,
    /// and enter the medium at the time of the current event. So the lateness of a hop is visible on the wall clock,
    /// but not on the medium's clock.
    fn step(&mut self) -> Result<Instant, LiveError> {
        let wall = self.clock.now();
        let now = match self.world.poll_timeout() {
            Some(due) if due <= wall => {
                self.clock.note_late(due, wall);
                due
            }
            _ => wall,
        };
        self.world.handle_timeout(now)?;
        self.deliver(now);
        self.turn_shim(now);
        self.read_ports(now)?;
        self.release_thinned(now);
        Ok(now)
    }

    fn deliver(&mut self, now: Instant) {
        while let Some(Arrived { host, packet, missing_frames }) = self.world.poll_arrived() {
            let Frame::Live(datagram) = packet else { continue };
            let side = usize::from(host != self.ports[0].host);
            self.meter.packet_out(now, WAYS_IN[side].reverse(), &datagram);
            let port = &mut self.ports[side];
            let mut give = |datagram: Datagram| port.give(&datagram);
            match self.shim.as_mut().filter(|_| side == 0) {
                Some(shim) => shim.incoming(now, datagram, missing_frames, give),
                None => give(datagram),
            }
        }
        self.ports.iter_mut().for_each(Port::flush);
    }

    /// Handles timers of FWP's shim, and messages from its readers.
    fn turn_shim(&mut self, now: Instant) {
        let Some(shim) = &mut self.shim else { return };
        shim.turn(now, |datagram| self.ports[0].give(&datagram));
        self.ports[0].flush();
    }

    fn read_ports(&mut self, now: Instant) -> Result<(), LiveError> {
        for (side, direction) in WAYS_IN.into_iter().enumerate() {
            let Self { world, ports, shim, thinner, meter, .. } = self;
            let port = &mut ports[side];
            if now < port.looks_at {
                continue;
            }
            let (host, peer) = (port.host, port.peer);
            let mut shim = shim.as_mut().filter(|_| side == 0);
            let mut each = |bytes: &[u8], verified| {
                let datagram = Datagram::new(bytes, peer).entered(Entry { at: now, verified });
                if let Some([source, _]) = datagram.summary().addresses {
                    world.addresses_mut().learn(source, host);
                }
                if let Some(shim) = &mut shim {
                    shim.outgoing(now, &datagram);
                }
                let mut pass = |frame| let_in(world, meter, now, (host, direction), frame);
                let frame = Frame::Live(datagram);
                match thinner {
                    Some(thinner) => {
                        let offered = Offered::from_packet(&frame, frame.len().0 as u32);
                        drop(thinner.offer(now, offered, frame, &mut pass));
                    }
                    None => pass(frame),
                }
            };
            let mut left = READ_BATCH;
            while left > 0 {
                let read = port.tun.receive(&mut each).map_err(LiveError::io("a TUN device"))?;
                let Some(packets) = read else {
                    port.looks_at = now + LOOK_EVERY;
                    break;
                };
                left = left.saturating_sub(packets.max(1));
            }
        }
        Ok(())
    }

    fn release_thinned(&mut self, now: Instant) {
        let Some(thinner) = &mut self.thinner else { return };
        let (world, meter, ports) = (&mut self.world, &mut self.meter, &self.ports);
        thinner.handle_timeout(now, &mut |frame| {
            let side = usize::from(frame.destination() != ports[1].host);
            let_in(world, meter, now, (ports[side].host, WAYS_IN[side]), frame);
        });
    }

    /// Waits for the next event, a packet, or the stop request. Returns true for the latter.
    fn wait(&mut self, snapshot_due: Instant, stop: BorrowedFd<'_>) -> Result<bool, LiveError> {
        let thinned = self.thinner.as_ref().and_then(AckHold::poll_timeout);
        let settled = self.shim.as_ref().and_then(NearShim::poll_timeout);
        let due = [self.world.poll_timeout(), thinned, settled].into_iter().flatten().min();
        let due = due.map_or(snapshot_due, |due| due.min(snapshot_due));
        let left = due.saturating_since(self.clock.now());
        match left.saturating_sub(self.spin) {
            Duration::ZERO => {
                std::hint::spin_loop();
                Ok(false)
            }
            sleep => self.sleep(sleep, stop),
        }
    }

    /// Sleeps until a packet arrives, for at most `longest`. Returns true on a stop request.
    fn sleep(&mut self, longest: Duration, stop: BorrowedFd<'_>) -> Result<bool, LiveError> {
        // Without readers, the descriptor for stop requests is used twice.
        let readers = self.shim.as_ref().map_or(stop, NearShim::readers);
        let mut fds = [
            PollFd::new(stop, PollFlags::POLLIN),
            PollFd::new(self.ports[0].tun.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.ports[1].tun.as_fd(), PollFlags::POLLIN),
            PollFd::new(readers, PollFlags::POLLIN),
        ];
        let timeout = TimeSpec::from_duration(std::time::Duration::from_nanos(longest.as_nanos()));
        match ppoll(&mut fds, Some(timeout), None) {
            Ok(_) => {
                let [stopped, near, far, readers_ready] = fds.map(|fd| fd.any());
                for (port, sent) in self.ports.iter_mut().zip([near, far]) {
                    if sent == Some(true) {
                        port.looks_at = Instant::ZERO;
                    }
                }
                if let Some(shim) = self.shim.as_mut().filter(|_| readers_ready == Some(true)) {
                    shim.look_now();
                }
                Ok(stopped.unwrap_or(true))
            }
            Err(Errno::EINTR) => Ok(false),
            Err(error) => Err(LiveError::Io { what: "ppoll".to_owned(), source: error.into() }),
        }
    }

    fn snapshot(&self, now: Instant) -> Snapshot {
        let ways = [Direction::Down, Direction::Up];
        Snapshot {
            now,
            received: ways.map(|way| self.meter.totals(way).received),
            ack_ratio: ways.map(|way| self.meter.ack_ratio(way)),
            punctuality: self.clock.punctuality(),
        }
    }

    fn end(self) -> Ended {
        let now = self.clock.now();
        Ended {
            outcome: self.world.outcome(),
            unbalanced: self
                .world
                .verify()
                .err()
                .map(|error| error.to_string())
                .or_else(|| self.shim.as_ref()?.check().err()),
            fwp: self.shim.as_ref().map(NearShim::counters),
            meter: self.meter,
            punctuality: self.clock.punctuality(),
            lasted: now.saturating_since(Instant::ZERO),
            cpu: thread_cpu(),
            refused_packets: self.ports.iter().map(|port| port.refused + port.tun.malformed()).sum(),
        }
    }
}

/// A host sends `frame` into the hop, and the meter records it.
fn let_in(
    world: &mut World<'_, Frame>,
    meter: &mut Meter,
    now: Instant,
    (host, direction): (HostId, Direction),
    frame: Frame,
) {
    if let Frame::Live(datagram) = &frame {
        meter.packet_in(now, direction, datagram);
    }
    world.inject(now, host, frame);
}

/// Gives this thread priority over others if permitted: a hop needs little CPU time, but without delay. Returns whether
/// it succeeded.
pub fn prefer_this_thread() -> bool {
    // SAFETY: zeros are one; C libraries other than glibc have fields that are not read here.
    let mut priority: libc::sched_param = unsafe { std::mem::zeroed() };
    priority.sched_priority = 1;
    let policy = libc::SCHED_RR | libc::SCHED_RESET_ON_FORK;
    // SAFETY: reads one `sched_param`, which outlives the call.
    unsafe { libc::sched_setscheduler(0, policy, &raw const priority) == 0 }
}

/// CPU time of this thread.
fn thread_cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, |time| {
        let nanos = std::time::Duration::from(time).as_nanos();
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    })
}

/// State shared by a hop's thread and its watchers.
pub type Shared = Arc<Mutex<Snapshot>>;
