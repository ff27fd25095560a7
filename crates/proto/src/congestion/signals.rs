//! Inputs of a controller.

use super::position::Position;
use super::rate::RateSample;
use crate::units::{BitRate, Bytes, Duration, Instant};

/// An acknowledgment of new data, as a controller sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckSample {
    /// When it arrived.
    pub now: Instant,
    /// Bytes newly acknowledged.
    pub acked: u64,
    /// SND.UNA after it.
    pub snd_una: Position,
    /// SND.NXT.
    pub snd_nxt: Position,
    /// Round-trip time of the newest segment it covers, when that is unambiguous.
    pub rtt: Option<Duration>,
    /// Smoothed round-trip time.
    pub smoothed_rtt: Option<Duration>,
    /// The window held the sender back while this data was in flight. When the application or the receiver did, the window
    /// proves nothing and must not grow (RFC 5681 section 3.1, RFC 7661).
    pub window_limited: bool,
    /// The sender is repairing after a retransmission timeout.
    pub after_timeout: bool,
}

/// Repair under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Repair {
    /// Nothing.
    #[default]
    None,
    /// Fast recovery.
    Fast,
    /// Of the data outstanding at a retransmission timeout.
    Timeout,
}

/// All that one ACK told, for controllers that ask.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    /// When it arrived.
    pub now: Instant,
    /// Data that it delivered, and how fast.
    pub sample: RateSample,
    /// Bytes newly held lost.
    pub lost: u64,
    /// Bytes thought to be in the network before it.
    pub prior_in_flight: u64,
    /// And after it.
    pub in_flight: u64,
    /// It acknowledges more in sequence than those before.
    pub advanced: bool,
    /// The phase it led to.
    pub repair: Repair,
    /// Smoothed round-trip time.
    pub smoothed_rtt: Option<Duration>,
    /// The clocks it carries, where the transport has them (TCP-RRE lives on these).
    pub stamps: Option<Stamps>,
    /// The peer's windows, not the application, kept the sender from sending more at some time since the last.
    pub receiver_limited: bool,
    /// The receiver's own measurements, where it makes them.
    pub receiver: Option<ReceiverReport>,
}

/// Measurements that the receiver of a connection reports at a rate of its own (TACK).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReceiverReport {
    /// Rate at which bytes of data arrived lately; `None` while it is not known. Never more than was sent.
    pub rate: Option<BitRate>,
    /// Packets that were lost, in 256ths of those that met no queue.
    pub base_loss: u8,
    /// The time in which a controller counts: RTT_min / beta, or longer where reports are rarer than in a round trip.
    pub interval: Duration,
    /// How long it may withhold feedback beside the round trip; zero where that is the interval or less.
    pub wait: Duration,
    /// The most that arrives at once lately.
    pub burst: Bytes,
}

/// The clocks an ACK carries, in ticks of the clock's owner; each wraps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamps {
    /// The receiver's clock when it made the ACK.
    pub receiver: u32,
    /// Ours, with its offset, when the data that the ACK answers was sent.
    pub sender: u32,
}

/// Parameters known when data starts to flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Start {
    /// Seed of chance: the same in each run, different in each connection.
    pub seed: u32,
    /// When that is.
    pub at: Instant,
    /// Round-trip time of the handshake, where it could be measured.
    pub rtt: Option<Duration>,
    /// The clocks that the handshake's last segment carries, and the length of a tick of ours.
    pub stamps: Option<Stamps>,
    pub tick: Duration,
}
