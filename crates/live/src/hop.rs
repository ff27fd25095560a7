//! The hop itself: a world, two TUN devices and a clock in one thread.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use tacit_link::queue::AckHold;
use tacit_proto::fwp;
use tacit_proto::units::{Duration, HostId, Instant};
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

/// Packets read from a device before events are looked at again.
const READ_BATCH: usize = 64;
/// How long a device that was not written to is not asked for packets: asking for nothing costs as much as an event.
const LOOK_EVERY: Duration = Duration::from_micros(20);
/// The last part of a wait is spent turning: sleeping is late by about 20 us at the median and up to
/// 145 us at the 99th percentile.
const SPIN: Duration = Duration::from_micros(60);
/// The same for a thread that goes before others, whose sleeps end within a few microseconds.
const SPIN_PREFERRED: Duration = Duration::from_micros(10);
/// How often the snapshot for others is renewed.
const SNAPSHOT_EVERY: Duration = Duration::from_millis(100);
/// A hop has no end of its own; this one is centuries away.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Parts of a hop.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Hosts and links; its flows are background traffic. Its duration is not used.
    pub setup: Setup,
    /// The host whose packets the command's side sends.
    pub near: HostId,
    /// The host whose packets the other side sends.
    pub far: HostId,
    /// How ACKs that enter the hop are thinned.
    pub ack_mode: AckMode,
    /// Whether reconstituted ACKs are compared with those that were sent.
    pub oracle: Oracle,
}

/// Whether the hop remembers the ACKs that ride, and ends a run in which another one is reconstituted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Oracle {
    /// It does.
    #[default]
    Watch,
    /// It does not: an ACK is read from its bytes alone.
    Off,
}

impl Plan {
    /// FWP's shim at the near host, and how many of a million frames its link is expected to lose; `None` where there is
    /// none.
    pub(crate) fn shim(&self) -> Option<(fwp::Config, u32)> {
        self.setup.bss.iter().find_map(|set| set.fwp_shim(self.near))
    }

    /// Whether a hop can carry out the plan.
    ///
    /// # Errors
    /// [`LiveError::Unsupported`], where it cannot.
    pub(crate) fn check(&self) -> Result<(), LiveError> {
        // The agent makes segments, and a hop carries other programs' bytes.
        if self.setup.bss.iter().any(|set| matches!(set.access_point.driver, ApDriver::FastAck(_))) {
            return Err(LiveError::Unsupported {
                what: "wifi.ap-acks = \"fastack\", to acknowledge the segments of real programs,",
                allowed: "\"none\", or a simulation",
            });
        }
        Ok(())
    }
}

/// Progress, for watchers.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The medium's time.
    pub now: Instant,
    /// Bytes received so far: down, up.
    pub received: [u64; 2],
    /// ACKs per segment so far: of downloads, of uploads.
    pub ack_ratio: [Option<f64>; 2],
    /// How late events were.
    pub punctuality: Punctuality,
}

/// Results of a hop.
#[derive(Debug)]
pub struct Ended {
    /// The world's counters.
    pub outcome: RunOutcome,
    /// Error of the world's books; `None` when they balance.
    pub unbalanced: Option<String>,
    /// Traffic that went through.
    pub meter: Meter,
    /// How late events were.
    pub punctuality: Punctuality,
    /// From the start to the end, in the medium's time.
    pub lasted: Duration,
    /// Processor time of the hop's thread.
    pub cpu: Duration,
    /// Packets that a side's kernel refused, or handed over in a form that cannot be sent.
    pub refused_packets: u64,
    /// Counters of FWP's shim; `None` where there is none.
    pub fwp: Option<fwp::Counters>,
}

/// Runs a hop until `stop` becomes readable.
///
/// # Errors
/// When the world breaks, a device dies, or the capture cannot be written.
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
        (Some((config, expected_ppm)), Some(listener)) => {
            let made = NearShim::new(config, expected_ppm, listener);
            Some(made.map_err(LiveError::io("the socket of FWP's readers"))?)
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

/// Where a side meets the world.
struct Port {
    tun: Tun,
    host: HostId,
    peer: HostId,
    /// When the device is asked for packets next.
    looks_at: Instant,
    /// Packets that arrived for its kernel and were not given on yet.
    merger: Merger,
    /// Packets that its kernel refused.
    refused: u64,
}

impl Port {
    fn new(tun: Tun, host: HostId, peer: HostId, merge: Merge) -> Self {
        Self { tun, host, peer, looks_at: Instant::ZERO, merger: Merger::new(merge), refused: 0 }
    }

    /// Gives the kernel a packet, with others that come before [`Port::flush`].
    fn give(&mut self, datagram: &Datagram) {
        let Self { tun, merger, refused, .. } = self;
        let verified = datagram.entry().is_some_and(|entry| entry.verified);
        let gathered = verified && merger.take(datagram.bytes(), sending(tun, refused));
        if !gathered {
            merger.flush(sending(tun, refused));
            *refused += u64::from(!tun.send(datagram.bytes(), verified));
        }
        // It may answer at once.
        self.looks_at = Instant::ZERO;
    }

    fn flush(&mut self) {
        self.merger.flush(sending(&mut self.tun, &mut self.refused));
    }
}

/// Sends gathered packets, and counts those that are refused.
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
    /// The near one, then the far one.
    ports: [Port; 2],
    /// In front of the near kernel's TCP.
    shim: Option<NearShim>,
    thinner: Option<AckHold<Frame>>,
    meter: Meter,
    clock: MediumClock,
    /// The part of a wait that is not slept.
    spin: Duration,
}

/// Packets read from each port come from the other side's point of view.
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
                // A hop that is behind never waits, and is told to stop here.
                if self.sleep(Duration::ZERO, stop.as_fd())? {
                    return Ok(());
                }
            }
            if self.wait(snapshot_due, stop.as_fd())? {
                return Ok(());
            }
        }
    }

    /// One event of the world at the moment it was due, its deliveries, and the packets that came in; returns
    /// the medium's time.
    ///
    /// Kernels answer within the system call that gives them a packet. Their answers are read before
    /// the next event, and enter the medium at the moment of this one: a hop that runs late is late
    /// on the wall, not on the medium.
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

    /// FWP's shim may have something for the near kernel, and its readers something to say.
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
                let mut pass = |frame| let_in(world, meter, now, (host, direction), &frame);
                match thinner {
                    Some(thinner) => thinner.offer(now, Frame::Live(datagram), &mut pass),
                    None => pass(Frame::Live(datagram)),
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
            let_in(world, meter, now, (ports[side].host, WAYS_IN[side]), &frame);
        });
    }

    /// Waits for the next event, a packet, or the end; true at the end.
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

    /// Sleeps until a packet comes, but not longer than `longest`; true when told to stop.
    fn sleep(&mut self, longest: Duration, stop: BorrowedFd<'_>) -> Result<bool, LiveError> {
        // Without readers the descriptor for stop stands twice.
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
                let [stopped, near, far, said] = fds.map(|fd| fd.any());
                for (port, sent) in self.ports.iter_mut().zip([near, far]) {
                    if sent == Some(true) {
                        port.looks_at = Instant::ZERO;
                    }
                }
                if let Some(shim) = self.shim.as_mut().filter(|_| said == Some(true)) {
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

/// A host gives `frame` to the hop, of which the meter takes note.
fn let_in(
    world: &mut World<'_, Frame>,
    meter: &mut Meter,
    now: Instant,
    (host, direction): (HostId, Direction),
    frame: &Frame,
) {
    if let Frame::Live(datagram) = frame {
        meter.packet_in(now, direction, datagram);
    }
    world.inject(now, host, frame);
}

/// Goes before other threads where that is allowed: a hop needs little time, but at once. True where it
/// does.
pub fn prefer_this_thread() -> bool {
    // SAFETY: zeros are one; C libraries other than glibc have fields that are not read here.
    let mut priority: libc::sched_param = unsafe { std::mem::zeroed() };
    priority.sched_priority = 1;
    let policy = libc::SCHED_RR | libc::SCHED_RESET_ON_FORK;
    // SAFETY: reads one `sched_param`, which outlives the call.
    unsafe { libc::sched_setscheduler(0, policy, &raw const priority) == 0 }
}

/// Processor time of this thread.
fn thread_cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, |time| {
        let nanos = std::time::Duration::from(time).as_nanos();
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    })
}

/// State that a hop's thread and its watchers share.
pub type Shared = Arc<Mutex<Snapshot>>;
