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
/// The uplink was idle if the first ACK of a round trip waited for fewer others; and the least such time that can be measured.
const STANDING_ACKS: u64 = 1;
const STANDING_US: u64 = 4_000;
/// The bound grows by this factor after a round trip in which the uplink was idle, and by the second one if it was idle for
/// all but that part of it. That is every other round trip, so not faster than slow start.
const GROWTH: u64 = 2;
const QUICK_GROWTH: u64 = 4;

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
        // Others, such as an upload, cause a longer handshake. Then waiting for ACKs would not help.
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
    /// Arrival of the latest ACK whose receiver's time is known.
    pub(super) read_us: u64,
    /// Most bytes that may be outstanding, 0 without a bound.
    pub(super) bound: u64,
    /// The round trip: the delivered bytes at which it ends, and its beginning.
    pub(super) round_end: u64,
    pub(super) round_us: u64,
    /// The bound has changed in the round trip before.
    pub(super) is_fresh: bool,
}

impl Uplink {
    /// Bounds the connection by `window` bytes.
    pub fn bind(&mut self, window: u64) {
        self.bound = window;
        // The connection's first ACK waits for none of its own.
        self.is_fresh = true;
    }

    /// From now on times are based on another clock.
    pub fn forget(&mut self) {
        self.lag_known = false;
        self.wait_us = 0;
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
        let last_us = std::mem::replace(&mut self.read_us, now_us);
        self.wait_us = (lag_us - self.least_lag_us) as u64;
        if self.bound == 0 || delivered <= self.round_end {
            return;
        }
        let standing_us = (STANDING_ACKS * self.spacing_us(now_us)).max(STANDING_US);
        // This ACK is the first of a round trip. The one after a change does not show it yet.
        let grows = !self.is_fresh && self.wait_us <= standing_us;
        if grows {
            // All ACKs of the round trip came in a small part of it.
            let is_short = QUICK_GROWTH * (last_us - self.round_us) <= now_us - self.round_us;
            let growth = if is_short { QUICK_GROWTH } else { GROWTH };
            self.bound = (growth * self.bound).min(MAX_WINDOW);
        }
        self.is_fresh = grows;
        self.round_end = delivered + in_flight;
        self.round_us = now_us;
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

    /// Whether [`Self::update_client`] has anything to add.
    pub fn has_evidence(&self, delivered: u64, mss: u64) -> bool {
        self.bound > 0 || (self.wait_us >= WAIT_US && self.excess(delivered, mss) > 0)
    }

    /// Adds what this connection has measured to the record of its client.
    pub fn update_client(&self, client: &mut Client, now_us: u64, delivered: u64, mss: u64) {
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

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_448;
    const WINDOW: u64 = 10 * MSS;
    /// Time of an ACK of 52 bytes through 50 kb/s.
    const ACK_US: u64 = 8_320;
    const HOUR_US: u64 = 3_600_000_000;

    /// A connection whose receiver makes `acks` for `segments` in `made_us`; the ACKs then wait for each other.
    fn fetched(bound: u64, acks: u64, segments: u64, made_us: u64) -> (Uplink, u64) {
        let mut uplink = Uplink::default();
        if bound > 0 {
            uplink.bind(bound);
        }
        let mut now_us = HOUR_US;
        for ack in 0..acks {
            let received_us = 7 + ack * made_us / acks;
            now_us = HOUR_US + (ack * ACK_US).max(ack * made_us / acks);
            uplink.count(now_us);
            uplink.on_reading(
                now_us,
                Reading { received_us, sent_us: 0 },
                ack * segments * MSS / acks,
                WINDOW,
            );
        }
        (uplink, now_us)
    }

    /// 1 MB in 2 s: what Linux's receiver makes of a sender that fills its window, and of one that does not.
    fn after(bound: u64, acks: u64, client: Client) -> (Client, u64) {
        let (uplink, now_us) = fetched(bound, acks, 691, 2_000_000);
        let mut known = client;
        uplink.update_client(&mut known, now_us, 691 * MSS, MSS);
        (known, now_us)
    }

    #[test]
    fn acks_beyond_one_for_two_segments_are_a_debt() {
        let (client, now_us) = after(0, 613, Client::default());
        assert!((2_200_000..2_300_000).contains(&client.excess_us), "{client:?}");
        assert!((3_000_000..3_200_000).contains(&client.wait_us), "{client:?}");
        assert_eq!(client.heard_us, now_us);
        assert_eq!(after(0, 346, Client::default()).0.excess_us, 0, "no more than needed");
        assert_eq!(after(0, 200, Client::default()).0.excess_us, 0, "the uplink drops them");
    }

    /// The uplink does not delay the ACKs of a receiver that acknowledges each segment.
    #[test]
    fn acks_that_never_waited_are_no_debt() {
        let (uplink, now_us) = fetched(0, 613, 691, 613 * ACK_US);
        let mut client = Client::default();
        uplink.update_client(&mut client, now_us, 691 * MSS, MSS);
        assert!(!uplink.has_evidence(691 * MSS, MSS));
        assert_eq!(client.excess_us, 0);
    }

    #[test]
    fn a_client_is_bounded_until_its_pause_is_as_long_as_the_debt() {
        let (client, now_us) = after(0, 613, Client::default());
        let syn_at = |idle_us| now_us + idle_us + 60_000;
        // Its SYN waited behind ACKs for more than a second, or for less, and then it paused for 2.5 s and more.
        assert!(client.bounds(syn_at(10_000), 60_000, true));
        assert!(client.bounds(now_us + 190_000, 0, true), "a repeated handshake measures no round trip");
        assert!(!client.bounds(syn_at(10_000), 60_000, false));
        assert!(!client.bounds(syn_at(300_000), 60_000, true));
        assert!(!Client::default().bounds(syn_at(0), 60_000, true));
        // A bounded connection leaves no ACKs, so the pause is the idle time.
        let (client, now_us) = after(WINDOW, 360, client);
        assert!(client.excess_us > 2_200_000, "{client:?}");
        let client = Client { wait_us: 100_000, ..client };
        let syn_at = |idle_us| now_us + idle_us + 60_000;
        assert!(client.bounds(syn_at(10_000), 60_000, false));
        assert!(client.bounds(syn_at(2_000_000), 60_000, false));
        assert!(!client.bounds(syn_at(2_300_000), 60_000, false));
    }

    /// A memory of the longest debt ends after a minute.
    #[test]
    fn no_client_is_bounded_for_longer_than_a_minute() {
        let (uplink, now_us) = fetched(0, 60_000, 70_000, 2_000_000);
        let mut client = Client::default();
        uplink.update_client(&mut client, now_us, 70_000 * MSS, MSS);
        assert_eq!(client.excess_us, MAX_EXCESS_US);
        client.wait_us = 0;
        assert!(client.bounds(now_us + 59_000_000, 0, false));
        assert!(!client.bounds(now_us + 60_000_000, 0, false));
    }

    /// An upload that fills the uplink delays the handshake by more than the ACKs explain.
    #[test]
    fn a_handshake_that_others_delay_bounds_nothing() {
        let (client, now_us) = after(0, 613, Client::default());
        assert!(!client.bounds(now_us + 6_000_000, 6_000_000, true));
        assert!(client.bounds(now_us + 3_000_000, 3_000_000, true), "own ACKs explain it");
    }

    #[test]
    fn a_receiver_that_acknowledges_each_segment_of_a_bounded_sender_is_left_alone() {
        let (client, _) = after(0, 691, Client::default());
        assert!(client.excess_us > 2_000_000, "{client:?}");
        let (client, now_us) = after(WINDOW, 691, client);
        assert_eq!((client.excess_us, client.vain_us), (0, now_us));
        // Not even by another connection, for ten minutes.
        let (client, _) =
            after(0, 691, Client { vain_us: HOUR_US - VAIN_US + 30_000_000, ..Client::default() });
        assert_eq!(client.excess_us, 0);
        let (client, _) = after(0, 691, Client { vain_us: HOUR_US - VAIN_US, ..Client::default() });
        assert!(client.excess_us > 0, "{client:?}");
    }

    /// A connection in which an earlier one's debt is forgotten: it had drained.
    #[test]
    fn an_old_debt_is_replaced_and_a_recent_one_is_kept() {
        let large = Client { excess_us: 9_000_000, wait_us: 1, ..Client::default() };
        let (client, _) = after(0, 613, Client { heard_us: HOUR_US - 1_000_000, ..large });
        assert_eq!(client.excess_us, 9_000_000);
        let (client, _) = after(0, 613, Client { heard_us: HOUR_US - 10_000_000, ..large });
        assert!(client.excess_us < 2_300_000, "{client:?}");
    }

    /// The bound after `rounds` round trips of `rtt_us` behind 50 kb/s, an ACK for two segments.
    fn bound_after(rounds: u32, rtt_us: u64) -> u64 {
        let mut uplink = Uplink::default();
        uplink.bind(WINDOW);
        let (mut delivered, mut free_us, mut sent_us) = (0, HOUR_US, HOUR_US);
        for _ in 0..rounds {
            let (flight, mut next_us) = (uplink.bound, sent_us);
            for ack in 1..=flight / MSS / 2 {
                let received_us = sent_us + rtt_us / 2 + ack * 3_000;
                free_us = free_us.max(received_us) + ACK_US;
                let now_us = free_us + rtt_us / 2;
                uplink.count(now_us);
                delivered += 2 * MSS;
                let reading = Reading { received_us, sent_us: 0 };
                uplink.on_reading(now_us, reading, delivered, flight - ack * 2 * MSS);
                next_us = if ack == 1 { now_us } else { next_us };
            }
            sent_us = next_us;
        }
        uplink.bound / MSS
    }

    #[test]
    fn the_bound_fills_the_uplink_and_no_more() {
        // The uplink carries 12 segments in 50 ms, and 144 in 600 ms.
        let (short, long) = (bound_after(20, 50_000), bound_after(20, 600_000));
        assert!((12..=24).contains(&short), "{short}");
        assert!((144..=640).contains(&long), "{long}");
        // A path that is long enough is filled as fast as by slow start, which has 10, 20, 40, 80 segments.
        assert!(bound_after(4, 600_000) >= 80);
    }
}
