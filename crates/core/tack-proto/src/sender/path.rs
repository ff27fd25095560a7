//! What belongs to the path that packets take: when this changes, all of it is replaced (RFC 9000 section 9.4).

use tacit_ack::{Arriving, WindowedMin};

use super::sync::SyncState;
use crate::ack_path::AckPath;
use crate::config::Config;
use crate::path_mtu::PathMtu;
use tacit_congestion::pacing::Pacer;
use tacit_congestion::rtt::RttEstimator;
use tacit_congestion::{Controller, Start};
use tacit_packet::position::Position;
use tacit_packet::tack::packet::room_for_short_data;
use tacit_packet::units::{BitRate, Duration, Instant};

/// Lower bound of the variance term of the probe timeout. Packets in an A-MPDU wait for each other.
const PTO_VARIANCE_MIN: Duration = Duration::from_millis(10);

/// The window holds at least that many packets: with fewer, one that the receiver has not acknowledged yet keeps the others
/// waiting for its clock. As BBRMinPipeCwnd (draft-ietf-ccwg-bbr-03 section 2.8): two packets that wait for their
/// acknowledgment at the receiver, and two on their way.
const PACKETS_IN_WINDOW: u64 = 4;

/// Data without an acknowledgment, though probe timeouts pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stall {
    pub since: Instant,
    /// Bytes of the data that was missing first, as far as a packet of the smallest size has room: shorter pieces may pass where it does
    /// not.
    pub len: u32,
    /// A short packet that left meanwhile was acknowledged.
    pub short_passes: bool,
}

/// What the sender knows of the way to the peer and back, and how it uses it.
#[derive(Clone, Debug)]
pub(super) struct Path {
    /// The first number on it, when it began, and bytes in flight on another.
    pub start: Position,
    pub since: Instant,
    pub elsewhere: u64,
    pub mtu: PathMtu,
    /// Bytes of data in a full packet, which is short.
    pub mss: u32,
    pub congestion: Controller,
    pub pacer: Option<Pacer>,
    pub paced_until: Option<Instant>,
    pub rtt: RttEstimator,
    pub rtt_min: WindowedMin,
    pub ack_path: AckPath,
    /// Inputs of the receiver's clock as of its last TACK.
    pub arriving: Arriving,
    /// Packets lost, in 65,536ths, on the way to the receiver and back.
    pub loss: u16,
    pub ack_loss: u16,
    /// Of packets that met no queue, in 256ths.
    pub base_loss: u8,
    /// Marked packets that the receiver had counted; `None` before its first TACK.
    pub ce: Option<u16>,
    /// The window, not the application or the receiver, held the sender since the last feedback.
    pub window_limited: bool,
    /// The peer's windows did.
    pub receiver_limited: bool,
    /// Recovery ends when the packets sent before it began are acknowledged or lost.
    pub recovery: Option<Position>,
    /// Timeouts since the last acknowledgment.
    pub timeouts: u32,
    /// Timeouts since the last packet of any kind, at most [`timeouts`](Self::timeouts).
    pub silent_timeouts: u32,
    pub after_timeout: bool,
    pub stall: Option<Stall>,
    /// Until then rates are of a time in which nothing but probes was sent.
    pub quiet_until: Instant,
    /// The fastest rate of the last three round trips: packets of a report left up to two of them ago. A receiver that claims
    /// more is not believed.
    pub fastest: [BitRate; 3],
    pub fastest_since: Instant,
    pub sync: SyncState,
    pub startup: bool,
    pub startup_rounds: u32,
    /// A round trip ends when this number arrives.
    pub round_end: Position,
}

impl Path {
    /// A path on which the packet `first` is the next, and packets are as long as `mtu` says; data to the peer goes without its
    /// number of the connection where `implied`.
    pub fn new(config: &Config, mtu: PathMtu, implied: bool, first: Position, start: Start) -> Self {
        let mss = mss(mtu.payload(), implied);
        let congestion = Controller::new(&config.congestion, mss, start);
        Self {
            start: first,
            since: start.at,
            elsewhere: 0,
            mtu,
            mss,
            pacer: config.pacer(&congestion),
            congestion,
            paced_until: None,
            rtt: RttEstimator::new(PTO_VARIANCE_MIN),
            rtt_min: WindowedMin::default(),
            ack_path: AckPath::default(),
            arriving: Arriving::default(),
            loss: 0,
            ack_loss: 0,
            base_loss: 0,
            ce: None,
            window_limited: false,
            receiver_limited: false,
            recovery: None,
            timeouts: 0,
            silent_timeouts: 0,
            after_timeout: false,
            stall: None,
            quiet_until: start.at,
            fastest: [BitRate::default(); 3],
            fastest_since: start.at,
            sync: SyncState::default(),
            startup: true,
            startup_rounds: 0,
            round_end: first,
        }
    }

    /// The handshake took `rtt`, where it was measured.
    pub fn open(&mut self, config: &Config, start: Start) {
        if let Some(rtt) = start.rtt {
            self.rtt.sample(rtt);
            self.rtt_min.update(start.at, rtt);
        }
        self.congestion = Controller::new(&config.congestion, self.mss, start);
    }

    /// Bytes of UDP payload of a full packet: what the path takes, but no more than a part of the window.
    pub fn payload(&self) -> u32 {
        let part = self.congestion.cwnd() / PACKETS_IN_WINDOW;
        self.mtu.payload_up_to(u32::try_from(part).unwrap_or(u32::MAX))
    }

    /// The window changed, or the search for the length of packets found another.
    pub fn set_mss(&mut self, implied: bool) {
        self.mss = mss(self.payload(), implied);
    }
}

fn mss(payload: u32, implied: bool) -> u32 {
    room_for_short_data(payload, implied).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incoming::START;
    use crate::sender::Sender;
    use tacit_packet::tack::packet::Sync;
    use tacit_packet::units::Bytes;

    /// Nothing is as on a fresh path: a field that is added has to be named here.
    fn wear(path: &mut Path, now: Instant) {
        let Path {
            start,
            since,
            elsewhere,
            mtu,
            mss,
            congestion,
            pacer,
            paced_until,
            rtt,
            rtt_min,
            ack_path,
            arriving,
            loss,
            ack_loss,
            base_loss,
            ce,
            window_limited,
            receiver_limited,
            recovery,
            timeouts,
            silent_timeouts,
            after_timeout,
            stall,
            quiet_until,
            fastest,
            fastest_since,
            sync,
            startup,
            startup_rounds,
            round_end,
        } = path;
        let later = now + Duration::from_secs(9);
        (*start, *since, *elsewhere) = (START + 7, later, 77);
        while let Some(size) = mtu.next(now) {
            mtu.on_fate(now, size < 1_300);
        }
        *mss = 7;
        congestion.on_timeout(now, 0, false);
        pacer.iter_mut().for_each(|pacer| pacer.on_sent(77_777, now, Some(BitRate::from_kbps(7)), 1_000));
        *paced_until = Some(later);
        rtt.sample(Duration::from_millis(77));
        rtt_min.update(now, Duration::from_millis(77));
        ack_path.on_ack(later, Default::default(), Default::default(), Duration::ZERO, Duration::ZERO);
        *arriving = Arriving { rate: BitRate::from_kbps(7), burst: Bytes(7), ..*arriving };
        (*loss, *ack_loss, *base_loss, *ce) = (7, 7, 7, Some(7));
        (*window_limited, *receiver_limited, *recovery) = (true, true, Some(START + 7));
        (*timeouts, *silent_timeouts, *after_timeout, *quiet_until) = (7, 7, true, later);
        *stall = Some(Stall { since: now, len: 7, short_passes: true });
        (*fastest, *fastest_since) = ([BitRate::from_kbps(7); 3], later);
        *sync = SyncState::new(Sync::default(), START + 7, now);
        (*startup, *startup_rounds, *round_end) = (false, 7, START + 77);
    }

    /// What each field holds.
    fn fields(path: &Path) -> Vec<String> {
        let mut fields = Vec::<String>::new();
        for line in format!("{path:#?}").lines().skip(1) {
            let is_inner = !line.starts_with("    ") || line[4..].starts_with([' ', ')', '}', ']']);
            match fields.last_mut() {
                Some(field) if is_inner => field.push_str(line),
                _ => fields.push(line.to_owned()),
            }
        }
        fields
    }

    #[test]
    fn nothing_of_a_path_survives_its_change() {
        let config = Config { max_mtu: Bytes(9_000), ..Config::default() };
        let now = Instant::ZERO + Duration::from_secs(1);
        let mut sender = Sender::new(&config, 0, 1);
        sender.set_peer(9_000, false);
        let fresh = |sender: &Sender| {
            let start = Start { seed: 8, at: now, ..Start::default() };
            Path::new(&config, sender.path.mtu.restarted(), false, sender.next, start)
        };
        wear(&mut sender.path, now);
        let expected = fields(&fresh(&sender));
        let same = fields(&sender.path).into_iter().zip(&expected).find(|(worn, fresh)| worn == *fresh);
        assert_eq!(same, None, "a field that says nothing in this test");
        sender.on_path_changed(now, 8);
        assert_eq!(fields(&sender.path), expected);
    }
}
