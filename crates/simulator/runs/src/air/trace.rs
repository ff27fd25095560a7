//! The observer of the first channel.

use tacit_link::AirFrame;
use tacit_link::wifi::StationId;
use tacit_link::wifi::air::{Frame, Outcome};
use tacit_packet::Packet;
use tacit_packet::units::{Duration, Instant};
use tacit_sim::Observer;

use super::Positions;
use super::positions::PacketPositions;
use super::ppdu::{Kind, Ppdu, Rate};

/// Which PPDUs to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Earliest start of a PPDU.
    pub from: Instant,
    /// PPDUs that start at or after this time are not kept.
    pub until: Instant,
    /// Maximum number of PPDUs, to bound memory.
    pub ppdus: usize,
}

impl Window {
    /// Keeps all PPDUs.
    pub const WHOLE: Self =
        Self { from: Instant::ZERO, until: Instant::from_nanos(u64::MAX), ppdus: usize::MAX };
}

/// Records the PPDUs on the first channel of a run.
#[derive(Clone, Debug)]
pub struct AirTrace {
    /// The PPDUs, ordered by start time.
    pub ppdus: Vec<Ppdu>,
    /// Number of PPDUs in the window that were dropped because of the maximum.
    pub left_out: u64,
    window: Window,
    /// The compressed ACKs that each station last appended.
    appended: Vec<Vec<u8>>,
    positions: Positions,
    /// One for each link heard so far.
    links: Vec<Air>,
    /// The last PPDU that was not kept.
    last_left_out: Option<(Instant, StationId)>,
}

impl Default for AirTrace {
    fn default() -> Self {
        Self::new(Window::WHOLE)
    }
}

/// Tracks how long the channel has been idle.
#[derive(Clone, Copy, Debug, Default)]
struct Air {
    /// The end of all PPDUs that have started.
    busy_until: Instant,
    /// Start of the last PPDU, and the time at which the medium had become idle before it.
    last: (Instant, Instant),
}

impl Air {
    /// Duration of the idle channel before a PPDU from `at` to `end`.
    fn idle_before(&mut self, at: Instant, end: Instant) -> Duration {
        if at != self.last.0 {
            self.last = (at, self.busy_until);
        }
        self.busy_until = self.busy_until.max(end);
        at.saturating_since(self.last.1)
    }
}

impl AirTrace {
    /// Creates a trace that keeps the PPDUs in `window`.
    pub fn new(window: Window) -> Self {
        Self {
            ppdus: Vec::new(),
            left_out: 0,
            window,
            appended: Vec::new(),
            positions: Positions::default(),
            links: Vec::new(),
            last_left_out: None,
        }
    }

    /// Whether the bytes that `station` appends now start with those it appended before.
    fn appends_again(&mut self, station: StationId, appended: &[u8]) -> bool {
        if self.appended.len() <= station.index() {
            self.appended.resize_with(station.index() + 1, Vec::new);
        }
        let before = std::mem::replace(&mut self.appended[station.index()], appended.to_vec());
        !before.is_empty() && appended.starts_with(&before)
    }

    /// The PPDU of this MPDU, if one of its MPDUs has been recorded. PPDUs that collide may start at the same time but
    /// have different transmitters; the parts of a multi-user PPDU have different receivers.
    fn same_ppdu(&mut self, frame: &AirFrame<Packet>, kind: Kind) -> Option<&mut Ppdu> {
        let together = self.ppdus.iter_mut().rev().take_while(|ppdu| ppdu.at == frame.at);
        // Data that follows a Block Ack is recorded separately.
        let same = |ppdu: &&mut Ppdu| {
            (ppdu.link, ppdu.transmitter, ppdu.receiver, ppdu.kind.is_response())
                == (frame.link, frame.transmitter, frame.receiver, kind.is_response())
        };
        together.into_iter().find(same)
    }

    /// A PPDU with `frame` as its only MPDU.
    fn new_ppdu(&mut self, frame: &AirFrame<Packet>, idle_before: Duration) -> Ppdu {
        let mut ppdu = Ppdu {
            link: frame.link,
            at: frame.at,
            duration: frame.duration,
            transmitter: frame.transmitter,
            receiver: frame.receiver,
            kind: Kind::Beacon,
            arrived: vec![frame.outcome == Outcome::Received],
            collided: frame.outcome == Outcome::Collided,
            retries: 0,
            more_data: false,
            sync: false,
            appended: 0,
            again: false,
            idle_before,
            reserves: frame.reserves,
            category: frame.category,
            rate: Rate::from(&frame.mode),
            mac: None,
            acknowledged: 0,
            bytes: 0,
            flow: None,
            mixed: false,
            sequence: None,
            acknowledges: None,
        };
        match &frame.frame {
            Frame::Data { sequence, retry, more_data, sync, payload, rest, .. } => {
                ppdu.kind = if payload.is_feedback() { Kind::TcpAck } else { Kind::Data };
                ppdu.retries = usize::from(*retry);
                (ppdu.more_data, ppdu.sync) = (*more_data, *sync);
                ppdu.mac = Some([*sequence, *sequence]);
                for packet in std::iter::once(payload).chain(rest) {
                    let positions = self.positions.locate(packet);
                    ppdu.take_packet(packet, positions);
                }
            }
            Frame::Ack { appended } => self.response(&mut ppdu, Kind::Ack, appended),
            Frame::BlockAck { start, bitmap, appended } => {
                self.response(&mut ppdu, Kind::BlockAck, appended);
                let last = bitmap.last().unwrap_or(0);
                ppdu.mac = Some([*start, (start + last) % 4096]);
                ppdu.acknowledged = bitmap.count();
            }
            Frame::BlockAckReq { start } => {
                ppdu.kind = Kind::BlockAckRequest;
                ppdu.mac = Some([*start, *start]);
            }
            Frame::Trigger(_) | Frame::TriggeredResponse(_) => ppdu.kind = Kind::Trigger,
            Frame::MultiStaBlockAck(acknowledged) => {
                ppdu.kind = Kind::BlockAck;
                ppdu.acknowledged = acknowledged.iter().map(|one| one.bitmap.count()).sum();
                ppdu.appended = acknowledged.iter().map(|one| one.appended.len()).sum();
            }
            Frame::ActionNoAck { content } => {
                ppdu.kind = Kind::BlockAck;
                ppdu.appended = content.len();
            }
            Frame::QosNull { .. } => ppdu.kind = Kind::Null,
            Frame::Rts => ppdu.kind = Kind::Rts,
            Frame::Cts => ppdu.kind = Kind::Cts,
            Frame::CfEnd => ppdu.kind = Kind::CfEnd,
            Frame::Beacon => {}
        }
        ppdu
    }

    fn response(&mut self, ppdu: &mut Ppdu, kind: Kind, appended: &[u8]) {
        ppdu.kind = kind;
        ppdu.again = self.appends_again(ppdu.transmitter, appended);
        ppdu.appended = appended.len();
    }
}

impl Ppdu {
    fn take_packet(&mut self, packet: &Packet, positions: PacketPositions) {
        self.bytes += u32::try_from(packet.len().0).unwrap_or(u32::MAX);
        match self.flow {
            None => self.flow = Some(packet.flow),
            Some(flow) if flow != packet.flow => {
                self.mixed = true;
                return;
            }
            Some(_) => {}
        }
        self.take_positions(positions);
    }

    fn take_positions(&mut self, positions: PacketPositions) {
        self.sequence = match (self.sequence, positions.sequence) {
            (Some([a, b]), Some([c, d])) => Some([a.min(c), b.max(d)]),
            (one, other) => one.or(other),
        };
        self.acknowledges = self.acknowledges.max(positions.acknowledges);
    }

    /// Adds another MPDU.
    fn take_mpdu(&mut self, mpdu: &Self) {
        self.arrived.extend(&mpdu.arrived);
        self.collided |= mpdu.collided;
        self.retries += mpdu.retries;
        if mpdu.kind == Kind::Data {
            self.kind = Kind::Data;
        }
        if let (Some(span), Some(other)) = (&mut self.mac, mpdu.mac) {
            span[1] = other[1];
        }
        self.bytes += mpdu.bytes;
        if self.flow == mpdu.flow {
            self.mixed |= mpdu.mixed;
            self.take_positions(PacketPositions { sequence: mpdu.sequence, acknowledges: mpdu.acknowledges });
        } else {
            self.mixed = true;
        }
    }
}

impl Observer for AirTrace {
    fn on_air(&mut self, bss: usize, frame: &AirFrame<Packet>) {
        if bss != 0 {
            return;
        }
        if self.links.len() <= frame.link.index() {
            self.links.resize_with(frame.link.index() + 1, Air::default);
        }
        let idle_before = self.links[frame.link.index()].idle_before(frame.at, frame.at + frame.duration);
        let ppdu = self.new_ppdu(frame, idle_before);
        if !(self.window.from..self.window.until).contains(&frame.at) {
            return;
        }
        if let Some(known) = self.same_ppdu(frame, ppdu.kind) {
            known.take_mpdu(&ppdu);
        } else if self.ppdus.len() < self.window.ppdus {
            self.ppdus.push(ppdu);
        } else if self.last_left_out != Some((frame.at, frame.transmitter)) {
            self.last_left_out = Some((frame.at, frame.transmitter));
            self.left_out += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::single;

    fn recorded(window: Window) -> AirTrace {
        let options = single::Options {
            scenario: "wlan-11n-150".into(),
            assignments: ["run.duration=300ms", "run.measure-from=0s"].map(String::from).into(),
            clients: Some(2),
            seed: 1,
            ..single::Options::default()
        };
        let mut trace = AirTrace::new(window);
        single::prepare(&options).unwrap().run_observed(&mut trace).unwrap();
        trace
    }

    #[test]
    fn dropped_records_are_counted_by_ppdus_not_by_mpdus() {
        let all = recorded(Window::WHOLE);
        assert_eq!(all.left_out, 0);
        assert!(all.ppdus.iter().any(|ppdu| ppdu.arrived.len() > 10));
        let some = recorded(Window { ppdus: 20, ..Window::WHOLE });
        assert_eq!(some.ppdus, all.ppdus[..20]);
        assert_eq!(some.left_out as usize, all.ppdus.len() - 20);
    }

    /// The idle time is SIFS before each response and at least AIFS before each channel access.
    #[test]
    fn nothing_is_on_the_air_for_sifs_or_for_aifs_and_slots() {
        let trace = recorded(Window::WHOLE);
        let (sifs, slot, aifs) = (16_000, 9_000, 43_000);
        for (before, ppdu) in trace.ppdus.iter().zip(&trace.ppdus[1..]) {
            let idle = ppdu.idle_before.as_nanos();
            if ppdu.at == before.at {
                assert_eq!(ppdu.idle_before, before.idle_before, "they collide");
            } else if ppdu.kind.is_response() {
                assert_eq!(idle, sifs, "{ppdu:?}");
            } else {
                // A beacon uses PIFS.
                let least = if ppdu.kind == Kind::Beacon { sifs + slot } else { aifs };
                assert!(idle >= least, "{ppdu:?}");
            }
        }
        let slots = trace.ppdus.iter().filter(|ppdu| {
            let idle = ppdu.idle_before.as_nanos();
            idle >= aifs && idle <= aifs + 15 * slot && (idle - aifs) % slot == 0
        });
        assert!(slots.count() * 3 > trace.ppdus.len(), "most accesses count slots");
    }
}
