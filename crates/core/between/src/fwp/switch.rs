//! The bi-stable switch: whether a flow's holes are due to the link or to congestion (section V-C of the paper).

use super::Placeholders;
use tacit_packet::tcp::Timestamps;
use tacit_packet::units::{Duration, Instant};

/// Losses are counted in parts per million.
const MILLION: u64 = 1_000_000;

/// Bounds of the period over which losses are measured.
const ROUND_TRIPS: [Duration; 2] = [Duration::from_millis(1), Duration::from_secs(1)];

/// A flow's round-trip time as seen by its receiver: from one of its own segments to the first that echoes its
/// timestamp.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrip {
    smoothed: Option<Duration>,
    /// A timestamp that was sent and not echoed yet, and the time of sending.
    sent: Option<(u32, Instant)>,
}

impl RoundTrip {
    pub const UNKNOWN: Self = Self { smoothed: None, sent: None };

    /// Records that a segment was sent.
    pub fn sent(&mut self, now: Instant, stamps: Option<Timestamps>) {
        if let (None, Some(stamps)) = (self.sent, stamps) {
            self.sent = Some((stamps.value, now));
        }
    }

    /// Records that a segment arrived.
    pub fn arrived(&mut self, now: Instant, stamps: Option<Timestamps>) {
        let (Some((value, at)), Some(stamps)) = (self.sent, stamps) else { return };
        if !stamps.echoes(value) {
            return;
        }
        self.sent = None;
        let sample = now.saturating_since(at);
        // RFC 6298's gain: one eighth.
        self.smoothed = Some(match self.smoothed {
            None => sample,
            Some(before) => Duration::from_nanos(before.as_nanos() / 8 * 7 + sample.as_nanos() / 8),
        });
    }

    /// The current estimate, or `usual` if there is none.
    pub fn or(&self, usual: Duration) -> Duration {
        let [least, most] = ROUND_TRIPS;
        self.smoothed.unwrap_or(usual).clamp(least, most)
    }
}

/// Whether holes are filled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Switch {
    pub on: bool,
    /// Start of the current measurement period.
    since: Option<Instant>,
    /// Frames of the link until then.
    link: LinkFrames,
    arrived: u64,
    lost: u64,
}

impl Switch {
    pub const ON: Self = Self { on: true, since: None, link: LinkFrames::NONE, arrived: 0, lost: 0 };

    /// A segment arrived, and `lost` segments before it did not. At the end of a round trip the sums, without this
    /// segment, are compared with the limit; returns true if that moved the switch.
    pub fn note(&mut self, now: Instant, lost: u64, round_trip: Duration, limit: Limit) -> bool {
        let was_on = self.on;
        let ends = self.since.is_some_and(|since| now.saturating_since(since) >= round_trip);
        if ends {
            self.on = !limit.is_exceeded(self.lost, self.lost + self.arrived, self.link);
        }
        if ends || self.since.is_none() {
            *self = Self { on: self.on, since: Some(now), link: limit.link_before, arrived: 0, lost: 0 };
        }
        self.arrived += 1;
        self.lost += lost;
        self.on != was_on
    }

    /// A segment arrived that was only late, not lost.
    pub fn arrived(&mut self) {
        self.arrived += 1;
    }
}

/// Frames of the link, as its driver counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LinkFrames {
    pub arrived: u64,
    pub lost: u64,
}

impl LinkFrames {
    pub const NONE: Self = Self { arrived: 0, lost: 0 };

    pub const fn plus(self, other: Self) -> Self {
        Self { arrived: self.arrived + other.arrived, lost: self.lost + other.lost }
    }

    /// What was counted after `earlier`.
    const fn since(self, earlier: Self) -> Self {
        Self { arrived: self.arrived - earlier.arrived, lost: self.lost - earlier.lost }
    }

    /// Lost frames per million; 0 without any frame.
    pub fn lost_ppm(self) -> u32 {
        // At most MILLION, which fits.
        (self.lost * MILLION).checked_div(self.lost + self.arrived).unwrap_or(0) as u32
    }
}

/// Losses that a link may cause.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    /// Expected losses per million frames; `None` is what the link lost in the same round trip.
    pub expected_ppm: Option<u32>,
    /// Margin in tenths of a standard deviation.
    pub margin_tenths: u32,
    pub placeholders: Placeholders,
    /// Frames of the link so far.
    pub link: LinkFrames,
    /// Those before the newest packet and the frames missing directly before it, which belong to the next round trip.
    pub link_before: LinkFrames,
}

impl Limit {
    /// True if the link has lost frames or is expected to. What the driver counts goes before an expectation.
    pub fn loses_frames(self) -> bool {
        match (self.placeholders, self.expected_ppm) {
            (Placeholders::Tcp, Some(expected_ppm)) => expected_ppm > 0,
            (Placeholders::Tcp, None) | (Placeholders::Driver, _) => self.link.lost > 0,
        }
    }

    /// True if `lost` segments of `sent`, which came after the frames `earlier`, are more than the link explains. Without a margin, that is more than the
    /// expected share, as in the paper. With a margin of z deviations, that is an excess over t with
    /// `t^2 = z^2 (n p (1 - p) + t / 3)`, which independent losses exceed with a probability of at most exp(-z^2 / 2) (Bernstein's
    /// inequality; the normal distribution's t^2 = z^2 n p (1 - p) is too small if few losses are expected). A link
    /// that loses nothing explains nothing.
    pub fn is_exceeded(self, lost: u64, sent: u64, earlier: LinkFrames) -> bool {
        let expected_ppm = self.expected_ppm.unwrap_or_else(|| self.link_before.since(earlier).lost_ppm());
        let expected_ppm = u64::from(expected_ppm).min(MILLION);
        let Some(excess) = (lost * MILLION).checked_sub(sent * expected_ppm).filter(|excess| *excess > 0)
        else {
            return false;
        };
        if expected_ppm == 0 {
            return true;
        }
        let [excess, sent, margin] = [excess, sent, self.margin_tenths.into()].map(u128::from);
        let variance = sent * u128::from(expected_ppm * (MILLION - expected_ppm));
        300 * excess * excess > margin * margin * (3 * variance + excess * u128::from(MILLION))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn expecting(expected_ppm: u32, margin_tenths: u32) -> Limit {
        let link = LinkFrames::NONE;
        Limit {
            expected_ppm: Some(expected_ppm),
            margin_tenths,
            placeholders: Placeholders::Tcp,
            link,
            link_before: link,
        }
    }

    #[test]
    fn without_a_margin_losses_are_compared_as_in_the_paper() {
        let limit = expecting(100_000, 0);
        assert!(!limit.is_exceeded(0, 0, LinkFrames::NONE));
        assert!(!limit.is_exceeded(10, 100, LinkFrames::NONE), "at the expected share");
        assert!(limit.is_exceeded(11, 100, LinkFrames::NONE));
        assert!(limit.is_exceeded(1, 9, LinkFrames::NONE), "figure 5 of the paper");
    }

    #[test]
    fn a_margin_is_so_many_standard_deviations_and_more_where_few_losses_are_expected() {
        // n p = 100, n p (1 - p) = 90: t^2 = 9 (90 + t / 3) at 30.0.
        let limit = expecting(100_000, 30);
        assert!(!limit.is_exceeded(129, 1000, LinkFrames::NONE));
        assert!(limit.is_exceeded(131, 1000, LinkFrames::NONE));
        // n p = 0.03: t^2 = 9 (0.03 + t / 3) at 3.09.
        let rare = expecting(10_000, 30);
        assert!(!rare.is_exceeded(3, 3, LinkFrames::NONE));
        assert!(rare.is_exceeded(4, 4, LinkFrames::NONE));
        let clean = expecting(0, 30);
        assert!(clean.is_exceeded(1, 1_000_000, LinkFrames::NONE), "no errors explain none");
        assert!(!clean.is_exceeded(0, 10, LinkFrames::NONE));
        assert!(!expecting(1_000_000, 0).is_exceeded(100, 100, LinkFrames::NONE));
    }

    #[test]
    fn without_an_expectation_a_round_trip_is_compared_with_what_the_link_lost_in_it() {
        let earlier = LinkFrames { arrived: 5_000, lost: 1_000 };
        let link = earlier.plus(LinkFrames { arrived: 90, lost: 10 });
        let limit = Limit {
            expected_ppm: None,
            margin_tenths: 0,
            placeholders: Placeholders::Tcp,
            link,
            link_before: link,
        };
        assert!(!limit.is_exceeded(10, 100, earlier), "one in ten of the link's");
        assert!(limit.is_exceeded(11, 100, earlier), "and not one in six, as before");
        assert!(limit.is_exceeded(1, 100, link), "nothing was lost since");
        assert!(limit.loses_frames() && !Limit { link: LinkFrames::NONE, ..limit }.loses_frames());
        let mut switch = Switch::ON;
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        switch.note(at(0), 0, MS * 10, Limit { link_before: earlier, ..limit });
        switch.note(at(5), 1, MS * 10, limit);
        assert!(
            switch.note(at(10), 0, MS * 10, limit) && !switch.on,
            "one of two, where the link lost a tenth"
        );
    }

    #[test]
    fn the_switch_moves_at_the_end_of_a_round_trip_and_back() {
        let (mut switch, limit) = (Switch::ON, expecting(100_000, 0));
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        assert!(!switch.note(at(0), 0, MS * 10, limit));
        assert!(!switch.note(at(1), 5, MS * 10, limit), "the round trip is not over");
        assert!(switch.note(at(10), 0, MS * 10, limit) && !switch.on);
        assert!(!switch.note(at(15), 0, MS * 10, limit));
        assert!(switch.note(at(20), 0, MS * 10, limit) && switch.on);
        assert!(!switch.note(at(900), 0, MS * 10, limit), "silence is no loss");
    }

    #[test]
    fn a_round_trip_is_from_a_stamp_to_its_echo() {
        let mut trip = RoundTrip::UNKNOWN;
        let stamps = |value, echo_reply| Some(Timestamps { value, echo_reply });
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        assert_eq!(trip.or(MS * 40), MS * 40);
        trip.sent(at(0), stamps(u32::MAX, 0));
        trip.sent(at(5), stamps(4, 0));
        trip.arrived(at(6), stamps(0, u32::MAX - 1));
        assert_eq!(trip.or(MS * 40), MS * 40, "an echo of an earlier stamp");
        trip.arrived(at(30), stamps(0, 2));
        assert_eq!(trip.or(MS * 40), MS * 30);
        trip.arrived(at(90), stamps(0, 2));
        assert_eq!(trip.or(MS * 40), MS * 30, "measured once");
        trip.arrived(at(95), None);
        trip.sent(at(100), None);
    }
}
