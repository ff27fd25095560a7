//! How long a packet may be: path MTU discovery for datagrams (RFC 8899).
//!
//! Packets of the base size are taken to pass. Longer ones are tried with probes of padding: first the usual size, then the
//! longest, then by halving the unknown range. A probe that is lost says nothing about congestion.
//!
//! A path may change and take long packets no more (section 4.3). Each probe timeout asks with a long packet and a short one behind
//! it, so the sender hears of the long ones that are lost. Packets shrink then to a size that passes, and the search begins again at
//! once: where the path lost packets of every size for a while, it costs a round trip.

use tacit_packet::units::{Duration, Instant};

/// "The default value of MAX_PROBES is 3" (RFC 8899 section 5.1.2).
const MAX_PROBES: u8 = 3;

/// Bytes that are not worth another probe.
const CLOSE_ENOUGH: u32 = 16;

/// PMTU_RAISE_TIMER (RFC 8899 section 5.1.1): when a search that is over begins again.
const RAISE_AFTER: Duration = Duration::from_secs(600);

/// The same where the search found less than what is usual: probes may have been lost as any packet may. It doubles with each search.
/// Ours: a search below the usual size costs some 20 packets.
const RAISE_SHORT_AFTER: Duration = Duration::from_secs(5);

/// Long packets that vanish in a row, over a probe timeout at least, before the path counts as one that takes them no more.
/// Ours: where each second packet is lost at random, that happens once in 65,536 times.
const VANISHED_MIN: u32 = 16;

/// Long packets that were lost, with none as long among them that arrived.
#[derive(Clone, Copy, Debug)]
struct Vanished {
    /// When the first was reported.
    since: Instant,
    count: u32,
    /// Those that a short packet followed at once, which arrived: probes of the size in use.
    probes: u32,
    /// Bytes of data of the shortest of them, and of the longest packet that arrived meanwhile.
    least_lost: u32,
    most_arrived: u32,
}

/// Short packets sent behind long ones that were lost.
#[derive(Clone, Copy, Debug, Default)]
struct Followers {
    count: u32,
    lost: u32,
}

impl Followers {
    /// Number of them whose fate decides; older ones count half, a quarter and less.
    const REMEMBERED: u32 = 32;

    fn add(&mut self, arrived: bool) {
        if self.count == Self::REMEMBERED {
            *self = Self { count: self.count / 2, lost: self.lost / 2 };
        }
        self.count += 1;
        self.lost += u32::from(!arrived);
    }

    /// Probes that must vanish in a row before packets get shorter: the more, the more short packets the path loses too.
    fn probes_needed(self) -> u32 {
        u32::from(MAX_PROBES) + VANISHED_MIN * self.lost / self.count.max(1)
    }
}

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
    /// When the next search below the usual size begins again.
    raise_short_after: Duration,
    vanished: Option<Vanished>,
    followers: Followers,
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
            raise_short_after: RAISE_SHORT_AFTER,
            vanished: None,
            followers: Followers::default(),
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
        } else if self.passes < self.base {
            self.base
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
            self.again_at = now + if self.passes < self.usual { self.raise_short_after } else { RAISE_AFTER };
            self.raise_short_after = (self.raise_short_after * 2).min(RAISE_AFTER);
        }
        arrived
    }

    /// True where packets are longer than what passes on any path.
    pub fn is_above_floor(&self) -> bool {
        self.passes > self.floor
    }

    /// A packet with `len` bytes of data arrived.
    pub fn on_arrived(&mut self, len: u32) {
        self.vanished.take_if(|vanished| len >= vanished.least_lost);
        if let Some(vanished) = &mut self.vanished {
            vanished.most_arrived = vanished.most_arrived.max(len);
        }
    }

    /// A packet with `len` bytes of data was lost. `follower` says whether the short packet that followed it at once arrived, where
    /// there was one. True when packets get shorter: long ones have vanished for `probe_timeout`, or some in a row whose followers
    /// arrived, [`MAX_PROBES`] where the path loses no short ones.
    pub fn on_lost(
        &mut self,
        now: Instant,
        len: u32,
        follower: Option<bool>,
        probe_timeout: Duration,
    ) -> bool {
        if len <= self.floor {
            return false;
        }
        let fresh = Vanished { since: now, count: 0, probes: 0, least_lost: len, most_arrived: 0 };
        let vanished = self.vanished.get_or_insert(fresh);
        vanished.count += 1;
        vanished.probes += u32::from(follower == Some(true));
        vanished.least_lost = vanished.least_lost.min(len);
        let lasts = now.saturating_since(vanished.since) >= probe_timeout && vanished.count >= VANISHED_MIN;
        let probes = vanished.probes;
        if let Some(arrived) = follower {
            self.followers.add(arrived);
        }
        (lasts || probes >= self.followers.probes_needed()) && self.shrink()
    }

    /// Falls back to the base where packets longer than the floor passed lately, otherwise to the floor.
    fn shrink(&mut self) -> bool {
        let arrived = self.vanished.take().map_or(0, |vanished| vanished.most_arrived);
        let passes = if self.passes > self.base && arrived > self.floor { self.base } else { self.floor };
        *self = Self { passes, followers: self.followers, ..self.restarted() };
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

    /// s2n-quic#3143: a hundred packets to find 1450 bytes below a limit of 8940.
    #[test]
    fn a_limit_far_above_the_path_costs_few_probes() {
        assert_eq!(search(1422), (1421, 12));
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

    const TIMEOUT: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// A path that took probes of `sizes`.
    fn found<const N: usize>(sizes: [u32; N]) -> PathMtu {
        let mut mtu = PathMtu::new([548, 1200, 8952], USUAL);
        for size in sizes {
            assert_eq!(mtu.next(at(0)), Some(size));
            mtu.on_fate(at(0), true);
        }
        mtu
    }

    #[test]
    fn sixteen_long_packets_that_vanish_over_a_probe_timeout_shorten_packets() {
        let mut mtu = found([USUAL]);
        for _ in 0..20 {
            assert!(!mtu.on_lost(at(0), 1400, None, TIMEOUT), "all at once");
        }
        assert!(!mtu.on_lost(at(99), 1400, None, TIMEOUT), "too early");
        assert!(mtu.on_lost(at(100), 1400, None, TIMEOUT));
        assert_eq!((mtu.payload(), mtu.is_above_floor()), (548, false));
        let mut mtu = found([USUAL]);
        for millis in 0..15 {
            assert!(!mtu.on_lost(at(100 * millis), 1400, None, TIMEOUT), "too few");
        }
        assert!(!mtu.on_lost(at(1500), 548, None, TIMEOUT), "a short one");
        assert!(mtu.on_lost(at(1500), 1400, None, TIMEOUT));
    }

    #[test]
    fn three_probes_that_vanish_before_short_packets_that_arrive_shorten_packets() {
        let mut mtu = found([USUAL]);
        assert!(!mtu.on_lost(at(0), 1400, Some(true), TIMEOUT));
        assert!(!mtu.on_lost(at(0), 1400, Some(true), TIMEOUT));
        assert!(!mtu.on_lost(at(0), 1400, None, TIMEOUT));
        assert!(mtu.on_lost(at(0), 1400, Some(true), TIMEOUT));
        assert_eq!(mtu.payload(), 548);
    }

    /// Where half of all packets are lost, short ones are, too, and three probes say nothing.
    #[test]
    fn more_probes_must_vanish_where_short_packets_are_lost_too() {
        let mut mtu = found([USUAL]);
        for _ in 0..16 {
            for arrived in [true, false] {
                assert!(!mtu.on_lost(at(0), 1400, Some(arrived), TIMEOUT));
                mtu.on_arrived(1400);
            }
        }
        let shorter = [(); 11].map(|()| mtu.on_lost(at(0), 1400, Some(true), TIMEOUT));
        assert_eq!(shorter.iter().position(|shorter| *shorter), Some(7), "{shorter:?}");
        // What was lost long ago counts less and less.
        let mut mtu = found([USUAL]);
        let lost = [(); 9].map(|()| mtu.on_lost(at(0), 1400, Some(false), TIMEOUT));
        assert_eq!(lost, [false; 9], "they are no probes");
    }

    /// A search that found less than usual may have lost its probes by chance.
    #[test]
    fn a_search_that_found_less_than_usual_begins_again_within_seconds_then_later() {
        let mut mtu = PathMtu::new([1200, 1200, 8952], USUAL);
        let mut now = Instant::ZERO;
        for seconds in [5, 10, 20, 40, 80, 160, 320, 600, 600] {
            assert_eq!(mtu.next(now), Some(USUAL));
            mtu.on_fate(now, false);
            while mtu.next(now).is_some() {
                mtu.on_fate(now, false);
            }
            assert_eq!(mtu.payload(), 1200);
            now += Duration::from_secs(seconds - 1);
            assert_eq!(mtu.next(now), None);
            now += Duration::from_secs(1);
        }
    }

    #[test]
    fn a_packet_as_long_that_arrives_begins_the_count_again() {
        let mut mtu = found([USUAL]);
        for round in 0..10 {
            for _ in 0..VANISHED_MIN - 1 {
                assert!(!mtu.on_lost(at(round * 1000), 1400, None, TIMEOUT));
            }
            assert!(!mtu.on_lost(at(round * 1000), 1400, Some(true), TIMEOUT), "sixteen, at once");
            // A shorter one says nothing.
            mtu.on_arrived(1399);
            assert_eq!(mtu.vanished.map(|vanished| vanished.count), Some(VANISHED_MIN));
            mtu.on_arrived(1400);
        }
    }

    #[test]
    fn packets_shrink_to_the_base_where_packets_above_the_floor_arrive() {
        for (arrives, passes) in [(548, 548), (549, 1200)] {
            let mut mtu = found([USUAL, 8952]);
            assert!(!mtu.on_lost(at(0), 8900, None, TIMEOUT));
            mtu.on_arrived(arrives);
            for _ in 0..VANISHED_MIN {
                assert!(!mtu.on_lost(at(50), 8900, None, TIMEOUT));
            }
            assert!(mtu.on_lost(at(100), 8900, None, TIMEOUT));
            assert_eq!(mtu.payload(), passes);
        }
        // At the base there is nothing but the floor.
        let mut mtu = found([]);
        assert!(!mtu.on_lost(at(0), 1100, Some(true), TIMEOUT));
        mtu.on_arrived(1000);
        assert!(
            !mtu.on_lost(at(0), 1100, Some(true), TIMEOUT) && mtu.on_lost(at(0), 1100, Some(true), TIMEOUT)
        );
        assert_eq!(mtu.payload(), 548);
    }

    /// Where nothing passed for a while, two probes find what passed before.
    #[test]
    fn a_search_begins_at_once_when_packets_have_become_shorter() {
        for takes in [972, 1300, USUAL] {
            let mut mtu = found([USUAL]);
            let shorter = [(); MAX_PROBES as usize].map(|()| mtu.on_lost(at(0), 1400, Some(true), TIMEOUT));
            assert_eq!(shorter, [false, false, true]);
            assert_eq!((mtu.payload(), mtu.next(at(0))), (548, Some(1200)));
            mtu.on_fate(at(0), 1200 <= takes);
            let mut probes = 1;
            while mtu.payload() < USUAL
                && let Some(size) = mtu.next(at(0))
            {
                mtu.on_fate(at(0), size <= takes);
                probes += 1;
            }
            assert!((takes - CLOSE_ENOUGH..=takes).contains(&mtu.payload()), "{takes}: {}", mtu.payload());
            assert!(probes < 22 && (takes < USUAL || probes == 2), "{takes}: {probes}");
        }
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
