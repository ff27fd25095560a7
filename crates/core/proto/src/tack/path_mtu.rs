//! How long a packet may be: path MTU discovery for datagrams (RFC 8899).
//!
//! Packets of the base size are taken to pass. Longer ones are tried with probes of padding: first the usual size, then the
//! longest, then by halving the unknown range. A probe that is lost says nothing about congestion.
//!
//! A path may change and take packets of the base size no more. Packets shrink to the floor then, and the search begins again.

use crate::units::{Duration, Instant};

/// "The default value of MAX_PROBES is 3" (RFC 8899 section 5.1.2).
const MAX_PROBES: u8 = 3;

/// Bytes that are not worth another probe.
const CLOSE_ENOUGH: u32 = 16;

/// PMTU_RAISE_TIMER (RFC 8899 section 5.1.1): when a search that is over begins again.
const RAISE_AFTER: Duration = Duration::from_secs(600);

/// Probe timeouts in a row after which a path that took long packets is held to take them no more (section 4.3).
const BLACK_HOLE_TIMEOUTS: u32 = 3;

/// Packets longer than a size that vanish in a row before the path counts as one that takes only that size.
/// Ours: where each second packet is lost at random, that happens once in 65,536 times.
const VANISHED_MIN: u32 = 16;

#[derive(Clone, Copy, Debug)]
pub(super) struct PathMtu {
    /// What passes when packets of the base size do not.
    floor: u32,
    base: u32,
    max: u32,
    /// Most paths take it.
    usual: u32,
    /// The size that passes, and the smallest that did not, in bytes of UDP payload.
    passes: u32,
    fails: u32,
    probing: Option<u32>,
    tries: u8,
    again_at: Instant,
    /// When the first of the packets was lost that are longer than [`shorter`](Self::shorter), and how many were since.
    vanished: Option<(Instant, u32)>,
}

impl PathMtu {
    /// A search between `base` bytes of UDP payload, which pass, and `max`, that begins with `usual` where that lies between.
    /// Packets are as short as `floor` where the path changes.
    pub fn new([floor, base, max]: [u32; 3], usual: u32) -> Self {
        let max = max.max(base);
        Self {
            floor: floor.min(base),
            base,
            max,
            usual,
            passes: base,
            fails: max + 1,
            probing: None,
            tries: 0,
            again_at: Instant::ZERO,
            vanished: None,
        }
    }

    /// The same search on another path.
    pub fn restarted(self) -> Self {
        Self::new([self.floor, self.base, self.max], self.usual)
    }

    /// No packet is longer than `max`, even where the path takes longer ones.
    pub fn limit(&mut self, max: u32) {
        if max < self.max {
            let fresh = Self::new([self.floor, self.base.min(max), max], self.usual);
            *self = Self { passes: self.passes.min(max), ..fresh };
        }
    }

    /// Bytes of UDP payload that pass.
    pub fn payload(&self) -> u32 {
        self.passes
    }

    /// Bytes of UDP payload of the packets to send where `most` are wanted at most: what is usual is never too long.
    pub fn payload_up_to(&self, most: u32) -> u32 {
        self.passes.min(most.max(self.usual))
    }

    /// The size to try now, if any: a probe of it leaves.
    pub fn next(&mut self, now: Instant) -> Option<u32> {
        if self.probing.is_some() || now < self.again_at {
            return None;
        }
        if self.fails - self.passes <= 1 {
            if self.passes >= self.max {
                return None;
            }
            // The path may have changed since.
            self.fails = self.max + 1;
        }
        let size = if self.fails <= self.max {
            self.passes + (self.fails - self.passes) / 2
        } else if self.passes < self.usual {
            self.usual.min(self.max)
        } else {
            self.max
        };
        self.probing = Some(size);
        Some(size)
    }

    /// The fate of the probe; true when longer packets pass than before.
    pub fn on_fate(&mut self, now: Instant, arrived: bool) -> bool {
        let Some(size) = self.probing.take() else { return false };
        if arrived {
            self.passes = size;
            self.tries = 0;
        } else {
            self.tries += 1;
            if self.tries < MAX_PROBES {
                return false;
            }
            self.fails = size;
            self.tries = 0;
        }
        if self.fails - self.passes <= CLOSE_ENOUGH {
            self.fails = self.passes + 1;
            self.again_at = now + RAISE_AFTER;
        }
        arrived
    }

    /// Nothing was acknowledged for a number of probe timeouts; true when packets get shorter for it.
    pub fn on_timeouts(&mut self, now: Instant, timeouts: u32) -> bool {
        let steps = if self.passes > self.base { 1 } else { 2 };
        timeouts >= steps * BLACK_HOLE_TIMEOUTS && self.shrink(now)
    }

    /// A packet with `len` bytes of data arrived.
    pub fn on_arrived(&mut self, len: u32) {
        if len > self.shorter() {
            self.vanished = None;
        }
    }

    /// A packet with `len` bytes of data was lost. True when packets get shorter: longer ones have vanished for
    /// [`BLACK_HOLE_TIMEOUTS`] times `probe_timeout`, though others were acknowledged.
    pub fn on_lost(&mut self, now: Instant, len: u32, probe_timeout: Duration) -> bool {
        if len <= self.shorter() {
            return false;
        }
        let (since, count) = self.vanished.get_or_insert((now, 0));
        *count += 1;
        let waited = now.saturating_since(*since) >= probe_timeout * u64::from(BLACK_HOLE_TIMEOUTS);
        *count >= VANISHED_MIN && waited && self.shrink(now)
    }

    /// The size to fall back to.
    fn shorter(&self) -> u32 {
        if self.passes > self.base { self.base } else { self.floor }
    }

    fn shrink(&mut self, now: Instant) -> bool {
        let shorter = self.shorter();
        if shorter >= self.passes {
            return false;
        }
        // Few paths take less than the base: most often nothing passed for a while. So the search begins at once.
        let again_at = if shorter == self.base { now + RAISE_AFTER } else { now };
        *self = Self { passes: shorter, again_at, ..self.restarted() };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: u32 = 1472;

    fn search(limit: u32) -> (u32, u32) {
        let mut mtu = PathMtu::new([548, 1200, 8952], USUAL);
        let mut probes = 0;
        while let Some(size) = mtu.next(Instant::ZERO) {
            mtu.on_fate(Instant::ZERO, size <= limit);
            probes += 1;
        }
        (mtu.payload(), probes)
    }

    #[test]
    fn a_path_of_any_length_is_found_within_16_bytes() {
        assert_eq!(search(8952), (8952, 2));
        for limit in [1200, 1472, 4000, 8951] {
            let (found, probes) = search(limit);
            assert!(found <= limit && found + CLOSE_ENOUGH >= limit, "{found} of {limit}");
            assert!(probes <= 4 * u32::from(MAX_PROBES) * 4, "{probes}");
        }
    }

    #[test]
    fn the_usual_size_is_found_first_and_kept_while_longer_ones_are_tried() {
        let mut mtu = PathMtu::new([1200, 1200, 16_356], USUAL);
        assert_eq!(mtu.next(Instant::ZERO), Some(USUAL));
        assert!(mtu.on_fate(Instant::ZERO, true));
        while let Some(size) = mtu.next(Instant::ZERO) {
            assert!(size > USUAL);
            mtu.on_fate(Instant::ZERO, false);
            assert_eq!(mtu.payload(), USUAL);
        }
        // Ten minutes later the longest is tried again.
        assert_eq!(mtu.next(Instant::ZERO + RAISE_AFTER), Some(16_356));
    }

    #[test]
    fn a_path_that_takes_less_than_usual_is_searched_below_it() {
        let mut mtu = PathMtu::new([1200, 1200, 8952], USUAL);
        for _ in 0..MAX_PROBES {
            assert_eq!(mtu.next(Instant::ZERO), Some(USUAL));
            mtu.on_fate(Instant::ZERO, false);
        }
        assert_eq!(mtu.next(Instant::ZERO), Some(1336));
    }

    /// RFC 8899 section 5.1.2: a probe may be lost as any packet may.
    #[test]
    fn a_size_is_tried_three_times_before_it_is_held_too_long() {
        let mut mtu = PathMtu::new([1200, 1200, 8952], USUAL);
        for size in [USUAL, 1336, 1268] {
            for _ in 0..3 {
                assert_eq!(mtu.next(Instant::ZERO), Some(size));
                assert!(!mtu.on_fate(Instant::ZERO, false));
            }
        }
        assert_eq!(mtu.next(Instant::ZERO), Some(1234));
    }

    #[test]
    fn tries_of_a_size_that_arrived_do_not_count_against_the_next() {
        let mut mtu = PathMtu::new([1200, 1200, 8952], USUAL);
        for (size, arrives) in [(USUAL, false), (USUAL, false), (USUAL, true), (8952, false), (8952, false)] {
            assert_eq!(mtu.next(Instant::ZERO), Some(size));
            assert_eq!(mtu.on_fate(Instant::ZERO, arrives), arrives);
        }
        assert_eq!(mtu.next(Instant::ZERO), Some(8952), "the third try");
    }

    #[test]
    fn a_black_hole_brings_back_the_base() {
        let mut mtu = PathMtu::new([1200, 1200, 1472], USUAL);
        assert_eq!(mtu.next(Instant::ZERO), Some(1472));
        assert!(mtu.on_fate(Instant::ZERO, true));
        assert!(!mtu.on_timeouts(Instant::ZERO, 2));
        assert!(mtu.on_timeouts(Instant::ZERO, 3));
        assert_eq!((mtu.payload(), mtu.next(Instant::ZERO)), (1200, None));
        assert_eq!(mtu.next(Instant::ZERO + RAISE_AFTER), Some(1472));
    }

    #[test]
    fn a_path_that_takes_less_than_the_base_is_found_again() {
        let mut mtu = PathMtu::new([548, 1200, 1472], USUAL);
        assert!(mtu.on_timeouts(Instant::ZERO, 6));
        assert_eq!((mtu.payload(), mtu.next(Instant::ZERO)), (548, Some(USUAL)));
        assert!(!mtu.on_timeouts(Instant::ZERO, 9), "there is nothing shorter");
        // A path whose IP packets have 1000 bytes.
        mtu.on_fate(Instant::ZERO, false);
        while let Some(size) = mtu.next(Instant::ZERO) {
            mtu.on_fate(Instant::ZERO, size <= 972);
        }
        assert!((972 - CLOSE_ENOUGH..=972).contains(&mtu.payload()), "{}", mtu.payload());
        // Where nothing passed for a while, the first probe finds what passed before.
        let mut mtu = PathMtu::new([548, 1200, 1472], USUAL);
        assert!(mtu.on_timeouts(Instant::ZERO, 6));
        assert_eq!(mtu.next(Instant::ZERO), Some(USUAL));
        assert!(mtu.on_fate(Instant::ZERO, true));
        assert_eq!(mtu.payload(), USUAL);
    }

    #[test]
    fn long_packets_that_vanish_among_short_ones_that_arrive_shorten_packets() {
        let timeout = Duration::from_millis(100);
        let at = |millis: u64| Instant::ZERO + Duration::from_millis(millis);
        let mut mtu = PathMtu::new([548, 1200, 1472], USUAL);
        assert!(!mtu.on_lost(at(0), 1100, timeout));
        for _ in 0..20 {
            assert!(!mtu.on_lost(at(299), 1100, timeout), "too early");
            mtu.on_arrived(500);
        }
        assert!(mtu.on_lost(at(300), 1100, timeout));
        assert_eq!(mtu.payload(), 548);
        // One that arrives begins the count again.
        let mut mtu = PathMtu::new([548, 1200, 1472], USUAL);
        for round in 0..10 {
            for _ in 0..VANISHED_MIN - 1 {
                assert!(!mtu.on_lost(at(round * 1000), 1100, timeout));
            }
            mtu.on_arrived(1100);
        }
        // A longer size falls to the base first.
        let mut mtu = PathMtu::new([548, 1200, 1472], USUAL);
        assert_eq!(mtu.next(at(0)), Some(1472));
        mtu.on_fate(at(0), true);
        for _ in 0..VANISHED_MIN {
            mtu.on_lost(at(0), 1400, timeout);
        }
        assert!(mtu.on_lost(at(300), 1400, timeout));
        assert_eq!(mtu.payload(), 1200);
    }

    #[test]
    fn a_limit_shortens_packets_and_a_new_path_starts_at_the_base() {
        let mut mtu = PathMtu::new([1200, 1200, 8952], USUAL);
        for size in [USUAL, 8952] {
            assert_eq!(mtu.next(Instant::ZERO), Some(size));
            mtu.on_fate(Instant::ZERO, true);
        }
        mtu.limit(9000);
        assert_eq!(mtu.payload(), 8952);
        mtu.limit(4000);
        assert_eq!((mtu.payload(), mtu.next(Instant::ZERO)), (4000, None));
        mtu = mtu.restarted();
        assert_eq!((mtu.payload(), mtu.next(Instant::ZERO)), (1200, Some(USUAL)));
        mtu.limit(1000);
        assert_eq!((mtu.payload(), mtu.next(Instant::ZERO)), (1000, None));
    }

    #[test]
    fn packets_are_shorter_than_the_path_takes_where_less_is_wanted_but_as_long_as_usual() {
        let mut mtu = PathMtu::new([1200, 1200, 8952], USUAL);
        assert_eq!((mtu.payload_up_to(100), mtu.payload_up_to(9000)), (1200, 1200));
        for size in [USUAL, 8952] {
            assert_eq!(mtu.next(Instant::ZERO), Some(size));
            mtu.on_fate(Instant::ZERO, true);
        }
        assert_eq!([100, 1500, 9000].map(|most| mtu.payload_up_to(most)), [USUAL, 1500, 8952]);
    }

    #[test]
    fn nothing_is_probed_where_nothing_longer_is_wanted() {
        assert_eq!(PathMtu::new([1472, 1472, 1472], USUAL).next(Instant::ZERO), None);
    }
}
