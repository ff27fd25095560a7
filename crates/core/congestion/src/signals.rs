//! Inputs of a controller.

use super::rate::RateSample;
use tacit_packet::position::Position;
use tacit_packet::units::{BitRate, Bytes, Duration, Instant};

/// An acknowledgment of new data, as a controller sees it.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    /// Time of arrival.
    pub now: Instant,
    /// Bytes newly acknowledged.
    pub acked: u64,
    /// SND.UNA after it.
    pub snd_una: Position,
    /// SND.NXT.
    pub snd_nxt: Position,
    /// Round-trip time of the newest segment it covers, if unambiguous.
    pub rtt: Option<Duration>,
    /// Smoothed round-trip time.
    pub smoothed_rtt: Option<Duration>,
    /// The congestion window limited the sender while this data was in flight. If the application or the receiver
    /// limited it, the window was not tested and must not grow (RFC 5681 section 3.1, RFC 7661).
    pub window_limited: bool,
    /// The sender is retransmitting after a retransmission timeout.
    pub after_timeout: bool,
}

/// Kind of loss recovery in progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repair {
    /// Nothing.
    #[default]
    None,
    /// Fast recovery.
    Fast,
    /// Retransmission of the data that was outstanding at a timeout.
    Timeout,
}

/// Everything that one ACK reports, for controllers that use it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delivery {
    /// Time of arrival.
    pub now: Instant,
    /// Data that it delivered, and the delivery rate.
    pub sample: RateSample,
    /// Bytes newly declared lost.
    pub lost: u64,
    /// Estimated bytes in flight before it.
    pub prior_in_flight: u64,
    /// Estimated bytes in flight after it.
    pub in_flight: u64,
    /// It acknowledges new data in sequence.
    pub advanced: bool,
    /// The recovery state after it.
    pub repair: Repair,
    /// Smoothed round-trip time.
    pub smoothed_rtt: Option<Duration>,
    /// The clocks it carries, if the transport has timestamps (TCP-RRE needs them).
    pub stamps: Option<Stamps>,
    /// At some time since the last report, the peer's windows and not the application limited the sender.
    pub receiver_limited: bool,
    /// The receiver's own measurements, if it reports any.
    pub receiver: Option<ReceiverReport>,
}

/// Measurements that the receiver reports at its own rate (TACK).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverReport {
    /// Recent arrival rate of data; `None` if unknown. Never more than was sent.
    pub rate: Option<BitRate>,
    /// Fraction of the packets that met no queue and were lost, in units of 1/256.
    pub base_loss: u8,
    /// The time unit for a controller: RTT_min / beta, or longer if reports are rarer than once per round trip.
    pub interval: Duration,
    /// How long feedback may be delayed in addition to the round trip; zero if that is at most the interval.
    pub wait: Duration,
    /// Most bytes that recently arrived in one burst.
    pub burst: Bytes,
}

/// The clocks in an ACK, in ticks of the clock's owner; each wraps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamps {
    /// The receiver's clock when it sent the ACK.
    pub receiver: u32,
    /// Our clock, including its offset, when the acknowledged data was sent.
    pub sender: u32,
}

/// Parameters that are known when data transfer starts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Start {
    /// Seed for random numbers: the same in each run, different for each connection.
    pub seed: u32,
    /// Time of the start.
    pub at: Instant,
    /// Round-trip time of the handshake, if measured.
    pub rtt: Option<Duration>,
    /// The clocks in the handshake's last segment.
    pub stamps: Option<Stamps>,
    /// The length of a tick of our clock.
    pub tick: Duration,
}
