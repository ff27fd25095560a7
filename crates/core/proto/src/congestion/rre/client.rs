//! What connections to a client showed about its uplink, and the bound that follows for the next one.
//!
//! A sender that does not wait for ACKs leaves them in the uplink, and the next connection's SYN waits behind them. That
//! moves time from one fetch to the next and costs nothing in total, unless there are more ACKs than one for two
//! segments: Linux's receiver acknowledges each segment that widens its window, and a sender that fills the window
//! widens it. So the memory is of the uplink's time that those ACKs took [DERIVED].

use std::sync::{Arc, Mutex, PoisonError};

use super::clock::Reading;
use super::steering::MAX_WINDOW;

/// A segment for which no ACK of its own is needed (RFC 5681 section 4.2: an ACK for at least every second segment).
const SEGMENTS_PER_ACK: u64 = 2;
/// ACKs beyond this share of all are too many.
const MANY: u64 = 4;
/// Fewest ACKs that show how a receiver acknowledges: Linux's first 16 answer a segment each.
const JUDGED_ACKS: u64 = 64;
/// Shortest wait of ACKs that counts. An uplink that was idle for less was never idle: paths jitter, and repeated SYNs take their time.
const WAIT_US: u64 = 250_000;
/// The middle of the times that a SYN may have waited if it was not repeated (RFC 6298 section 2.1: after a second).
const SYN_WAIT_US: u64 = 500_000;
/// The longest time that counts. No connection is bounded for longer after the last ACK.
const MAX_EXCESS_US: u64 = 60_000_000;
/// How long a client counts as one that acknowledges each segment of any sender.
const VAIN_US: u64 = 600_000_000;
/// The uplink is never idle while this many ACKs wait there; and the least such time that can be measured.
const STANDING_ACKS: u64 = 2;
const STANDING_US: u64 = 4_000;
/// The bound grows by this factor after a round trip in which the uplink was idle, as in slow start; and by the second one if
/// the last ACK hardly waited, for less than this part of the round trip. Every other round trip, so as fast as slow start.
const GROWTH: u64 = 2;
const QUICK_GROWTH: u64 = 4;
const HARDLY: u64 = 8;

/// What is known of a client. All zeros if nothing is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// Arrival of the latest ACK of a connection that waited for the uplink, or was bounded.
    pub heard_us: u64,
    /// How long that ACK had waited.
    pub wait_us: u64,
    /// Time of the uplink for ACKs beyond one for two segments, in a connection without a bound.
    pub excess_us: u64,
    /// When a bounded connection caused as many of them, 0 if none did.
    pub vain_us: u64,
}

impl Client {
    /// Whether a connection that starts at `now_us` after a handshake of `handshake_rtt_us` is bounded. `repeated` if its SYN
    /// was.
    pub(super) fn bounds(&self, now_us: u64, handshake_rtt_us: u64, repeated: bool) -> bool {
        let idle_us = now_us.saturating_sub(handshake_rtt_us).saturating_sub(self.heard_us);
        // The client's pause, from its last arrival to its SYN.
        let pause_us = match idle_us {
            WAIT_US.. => idle_us + self.wait_us,
            // The SYN waited behind ACKs, for longer than a timeout if it was repeated.
            _ if repeated => 0,
            _ => self.wait_us.saturating_sub(SYN_WAIT_US),
        };
        // Of a longer handshake others are the cause, such as an upload. Then waiting for ACKs would help nobody.
        let is_own = handshake_rtt_us <= self.excess_us + self.wait_us;
        pause_us < self.excess_us && is_own
    }
}

/// A client as all connections to it share it.
#[derive(Clone, Debug, Default)]
pub struct SharedClient(Arc<Mutex<Client>>);

impl SharedClient {
    /// What is known.
    pub(super) fn get(&self) -> Client {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is known.
    pub(super) fn change(&self, change: impl FnOnce(&mut Client)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// The ACKs of a connection, and its bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Uplink {
    /// ACKs of new data, and the arrival of the first one.
    pub(super) acks: u64,
    pub(super) first_us: u64,
    /// Arrival minus the receiver's time: the least of all ACKs, and how much more the latest one took.
    pub(super) lag_known: bool,
    pub(super) least_lag_us: i64,
    pub(super) wait_us: u64,
    /// Most bytes that may be outstanding, 0 without a bound.
    pub(super) bound: u64,
    /// The round trip: the delivered bytes at which it ends, its beginning, and the shortest wait in it.
    pub(super) round_end: u64,
    pub(super) round_us: u64,
    pub(super) round_wait_us: u64,
    /// The bound has changed in the round trip before.
    pub(super) is_fresh: bool,
}

impl Uplink {
    /// Bounds the connection by `window` bytes.
    pub fn bind(&mut self, window: u64) {
        self.bound = window;
        self.is_fresh = true;
    }

    /// From now on times are based on another clock.
    pub fn forget(&mut self) {
        self.lag_known = false;
        self.wait_us = 0;
        self.round_wait_us = 0;
    }

    /// An ACK of new data arrived.
    pub fn count(&mut self, now_us: u64) {
        if self.acks == 0 {
            self.first_us = now_us;
        }
        self.acks += 1;
    }

    /// It was sent at the receiver's time of `reading`. `delivered` bytes have been delivered in total.
    pub fn on_reading(&mut self, now_us: u64, reading: Reading, delivered: u64, in_flight: u64) {
        let lag_us = now_us as i64 - reading.received_us as i64;
        if !self.lag_known || lag_us < self.least_lag_us {
            self.lag_known = true;
            self.least_lag_us = lag_us;
        }
        let last_wait_us = self.wait_us;
        self.wait_us = (lag_us - self.least_lag_us) as u64;
        if self.bound == 0 || delivered <= self.round_end {
            self.round_wait_us = self.round_wait_us.min(self.wait_us);
            return;
        }
        let standing_us = (STANDING_ACKS * self.spacing_us(now_us)).max(STANDING_US);
        // ACKs of the round that follows a change answer data from before it.
        let grows = !self.is_fresh && self.round_wait_us <= standing_us;
        if grows {
            let is_quick = last_wait_us < (now_us - self.round_us) / HARDLY;
            let growth = if is_quick { QUICK_GROWTH } else { GROWTH };
            self.bound = (growth * self.bound).min(MAX_WINDOW);
        }
        // In the first round the first ACK never waits.
        self.is_fresh = grows || self.round_end == 0;
        self.round_end = delivered + in_flight;
        self.round_us = now_us;
        self.round_wait_us = self.wait_us;
    }

    /// Mean time between two ACKs.
    fn spacing_us(&self, now_us: u64) -> u64 {
        (now_us - self.first_us) / self.acks.max(1)
    }

    /// Number of ACKs beyond one for two segments, if they are many.
    fn excess(&self, delivered: u64, mss: u64) -> u64 {
        let excess = self.acks.saturating_sub(delivered / (SEGMENTS_PER_ACK * mss));
        if self.acks >= JUDGED_ACKS && excess > self.acks / MANY { excess } else { 0 }
    }

    /// Whether [`Self::tell`] has something to tell at `now_us`.
    pub fn tells(&self, delivered: u64, mss: u64) -> bool {
        self.bound > 0 || (self.wait_us >= WAIT_US && self.excess(delivered, mss) > 0)
    }

    /// Adds what this connection shows to what is known of its client.
    pub fn tell(&self, client: &mut Client, now_us: u64, delivered: u64, mss: u64) {
        let excess_us = self.excess(delivered, mss) * self.spacing_us(now_us);
        if self.bound > 0 && excess_us > client.excess_us / 2 {
            client.excess_us = 0;
            client.vain_us = now_us;
        } else if self.bound == 0 {
            let is_old = now_us >= client.heard_us + client.excess_us;
            let is_vain = client.vain_us > 0 && now_us < client.vain_us + VAIN_US;
            let before_us = if is_old { 0 } else { client.excess_us };
            let own_us = excess_us.min(self.wait_us).min(MAX_EXCESS_US);
            client.excess_us = if is_vain { 0 } else { own_us.max(before_us) };
        }
        client.heard_us = now_us;
        client.wait_us = self.wait_us;
    }
}
