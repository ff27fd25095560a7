//! Data that stops in the middle of a stream: its receiver asks after a few round trips whether the sender is there.
//!
//! A sender finds out by its probe timeout that it hears nothing. A receiver that only receives has nothing of its own to time:
//! where the sender forgot the connection, or sends to an address that this end had, both would wait for ever.

use tacit_packet::units::{Duration, Instant};

/// Round trips without a packet after which the peer is asked. Ours: a lost round of packets and its repair take two.
const ROUND_TRIPS: u64 = 4;
/// Beyond them, the time for which a sender may hold its next packet for a reason of its own. Ours, the longest that a TACK
/// waits for company.
const SLACK: Duration = Duration::from_millis(25);
/// The wait where no round trip was measured (RFC 6298 section 2.1), and the longest between two questions. Ours.
const UNKNOWN: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(2);

/// When to ask, while more of a stream is to come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Silence {
    /// The next question, and the wait that leads to it. `None` while nothing is expected.
    next: Option<(Instant, Duration)>,
    /// The peer was asked since it sent data.
    probed: bool,
}

impl Silence {
    /// Data arrived; more of its stream is to come where `open`.
    pub fn on_data(&mut self, now: Instant, open: bool, rtt: Option<Duration>) {
        let wait = rtt.map_or(UNKNOWN, |rtt| rtt.saturating_mul(ROUND_TRIPS) + SLACK).min(LONGEST);
        *self = Self { next: open.then(|| (now + wait, wait)), probed: false };
    }

    /// An acknowledgment arrived. A peer that was asked is there, and has nothing to send.
    pub fn on_feedback(&mut self) {
        if self.probed {
            *self = Self::default();
        }
    }

    /// When [`poll_probe`](Self::poll_probe) has a question.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.next.map(|(at, _)| at)
    }

    /// Whether the peer is to be asked at `now`; again after twice the time.
    pub fn poll_probe(&mut self, now: Instant) -> bool {
        let Some((_, wait)) = self.next.filter(|(at, _)| *at <= now) else { return false };
        let wait = wait.saturating_mul(2).min(LONGEST);
        *self = Self { next: Some((now + wait, wait)), probed: true };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_sender_that_falls_silent_is_probed_until_it_answers() {
        let mut silence = Silence::default();
        assert_eq!(silence.poll_timeout(), None);
        silence.on_data(at(0), true, Some(Duration::from_millis(10)));
        silence.on_data(at(5), true, Some(Duration::from_millis(10)));
        assert_eq!(silence.poll_timeout(), Some(at(70)));
        silence.on_feedback();
        assert!(!silence.poll_probe(at(69)) && silence.poll_probe(at(70)));
        assert_eq!(silence.poll_timeout(), Some(at(200)));
        assert!(silence.poll_probe(at(200)));
        silence.on_feedback();
        assert_eq!(silence.poll_timeout(), None, "it is there, and has nothing to send");
    }

    #[test]
    fn a_stream_that_ended_is_not_missed() {
        let mut silence = Silence::default();
        silence.on_data(at(0), false, None);
        assert_eq!(silence.poll_timeout(), None);
    }
}
