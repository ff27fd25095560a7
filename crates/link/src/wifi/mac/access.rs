//! Contention: DCF and EDCA backoff (802.11-2020 clauses 10.3.4 and 10.23.2).

use tacit_proto::units::{Duration, Instant};

use crate::random::Stream;
use crate::wifi::category::EdcaParameters;
use crate::wifi::phy::Phy;

/// The backoff state of one station.
#[derive(Clone, Debug)]
pub(crate) struct Contention {
    /// Slots left from the start of the countdown.
    counter: u32,
    /// `counter` as it was drawn.
    drawn: u32,
    cw: u32,
    cw_min: u32,
    cw_max: u32,
    /// AIFS less that of the physical layer's own rule, where it is longer.
    aifs_longer: Duration,
    /// AIFS of the physical layer's own rule less this one's, where it is shorter.
    aifs_shorter: Duration,
    /// The countdown starts no earlier than this.
    not_before: Instant,
    /// The idle period in which this station does not defer to the exchange it took part in.
    exempt_in: Option<u64>,
    /// Its usual parameters, and from when on they apply again, where an access point told it to contend otherwise.
    usual: Option<(EdcaParameters, Instant)>,
    stream: Stream,
}

/// The idle period all stations of a channel share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdlePeriod {
    /// Numbers the idle periods.
    pub number: u64,
    /// When stations that had no part in the last exchange may start their countdown.
    pub countdown_from: Instant,
    /// When the stations that had may.
    pub exempt_countdown_from: Instant,
    /// It goes on after an access that came to nothing: AIFS is over, for everybody.
    pub resumed: bool,
}

impl IdlePeriod {
    /// The one that a channel of `phy` begins with.
    pub fn first(phy: &Phy) -> Self {
        let countdown_from = Instant::ZERO + phy.aifs();
        Self { number: 0, countdown_from, exempt_countdown_from: countdown_from, resumed: false }
    }
}

impl Contention {
    /// Contends with `edca`, in a basic service set whose idle periods count from AIFS of `phy`.
    pub fn new(phy: &Phy, edca: &EdcaParameters, stream: Stream) -> Self {
        let slots = |slots: u32| phy.slot * u64::from(slots);
        Self {
            counter: 0,
            drawn: 0,
            cw: edca.cw_min,
            cw_min: edca.cw_min,
            cw_max: edca.cw_max,
            aifs_longer: slots(edca.aifs_slots.saturating_sub(phy.aifs_slots)),
            aifs_shorter: slots(phy.aifs_slots.saturating_sub(edca.aifs_slots)),
            not_before: Instant::ZERO,
            exempt_in: None,
            usual: None,
            stream,
        }
    }

    /// AIFS.
    pub fn aifs(&self, phy: &Phy) -> Duration {
        phy.aifs() + self.aifs_longer - self.aifs_shorter
    }

    /// When this station transmits if nothing comes before.
    #[inline]
    pub fn transmits_at(&self, idle: &IdlePeriod, slot: Duration) -> Instant {
        self.countdown_from(idle) + slot * u64::from(self.counter)
    }

    #[inline]
    fn countdown_from(&self, idle: &IdlePeriod) -> Instant {
        let shared = if self.exempt_in == Some(idle.number) {
            idle.exempt_countdown_from
        } else {
            idle.countdown_from
        };
        let own = if idle.resumed { shared } else { shared + self.aifs_longer - self.aifs_shorter };
        own.max(self.not_before)
    }

    /// Counts down the slots that passed until another station took the medium at `at`.
    #[inline]
    pub fn freeze(&mut self, idle: &IdlePeriod, at: Instant, phy: &Phy) {
        let from = self.countdown_from(idle);
        if at >= from {
            let slots = ((at - from).as_nanos() / phy.slot.as_nanos()) as u32;
            let counted = if phy.counts_busy_slot { slots + 1 } else { slots };
            self.counter = self.counter.saturating_sub(counted);
        }
        if self.usual.is_some() {
            self.relax(phy, at);
        }
    }

    /// A packet arrived while the medium was idle and no backoff was left: transmit at once, or as
    /// soon as the medium has been idle for long enough.
    #[inline]
    pub fn start_at_once(&mut self, now: Instant) {
        self.counter = 0;
        self.drawn = 0;
        self.not_before = now;
    }

    /// Draws a backoff from the present contention window.
    pub fn draw(&mut self) {
        self.counter = self.stream.up_to(self.cw);
        self.drawn = self.counter;
    }

    /// After an exchange that succeeded: the smallest window, and a backoff before the next.
    pub fn succeeded(&mut self) {
        self.cw = self.cw_min;
        self.draw();
    }

    /// After one that failed, noticed at `noticed_at`: the window doubles.
    pub fn failed(&mut self, noticed_at: Instant, idle_number: u64) {
        self.cw = (2 * self.cw + 1).min(self.cw_max);
        self.not_before = noticed_at;
        self.exempt_in = Some(idle_number);
        self.draw();
    }

    /// After the last try: back to the smallest window.
    pub fn gave_up(&mut self) {
        self.cw = self.cw_min;
        self.draw();
    }

    /// A more urgent category of the same station took the access: as after a collision, but nothing was
    /// sent (802.11-2020 clause 10.23.2.4).
    pub fn yielded(&mut self) {
        self.cw = (2 * self.cw + 1).min(self.cw_max);
        self.draw();
    }

    /// Whether it failed just before idle period `idle_number`.
    pub fn failed_before(&self, idle_number: u64) -> bool {
        self.exempt_in == Some(idle_number)
    }

    /// Reservations by others do not hold it back in idle period `idle_number`: it was in that exchange.
    pub fn exempt(&mut self, idle_number: u64) {
        self.exempt_in = Some(idle_number);
    }

    /// Contends with `edca` until then, and not at all where that has no AIFSN (MU EDCA, 802.11ax-2021 clause 26.2.7): its
    /// data goes out when it is asked.
    pub fn restrict(&mut self, phy: &Phy, edca: &EdcaParameters, until: Instant) {
        if edca.aifs_slots == 0 {
            self.not_before = self.not_before.max(until);
            return;
        }
        let present =
            EdcaParameters { aifs_slots: self.aifs_slots(phy), cw_min: self.cw_min, cw_max: self.cw_max };
        let usual = self.usual.map(|(usual, _)| usual);
        self.usual = Some((usual.unwrap_or(present), until));
        if usual.is_none() {
            self.use_parameters(phy, edca);
            self.draw();
        }
    }

    /// The parameters that it contended with before, if their time has come at `at`.
    fn relax(&mut self, phy: &Phy, at: Instant) {
        if let Some((usual, until)) = self.usual
            && until <= at
        {
            self.usual = None;
            self.use_parameters(phy, &usual);
        }
    }

    fn use_parameters(&mut self, phy: &Phy, edca: &EdcaParameters) {
        let slots = |slots: u32| phy.slot * u64::from(slots);
        (self.cw, self.cw_min, self.cw_max) = (edca.cw_min, edca.cw_min, edca.cw_max);
        self.aifs_longer = slots(edca.aifs_slots.saturating_sub(phy.aifs_slots));
        self.aifs_shorter = slots(phy.aifs_slots.saturating_sub(edca.aifs_slots));
    }

    /// AIFSN.
    fn aifs_slots(&self, phy: &Phy) -> u32 {
        let slots = |time: Duration| (time.as_nanos() / phy.slot.as_nanos()) as u32;
        phy.aifs_slots + slots(self.aifs_longer) - slots(self.aifs_shorter)
    }

    /// The backoff drawn for the present transmission; zero for one that went at once.
    pub fn drawn(&self, phy: &Phy) -> Duration {
        phy.slot * u64::from(self.drawn)
    }

    /// True when no slot is left to count.
    pub fn is_over(&self) -> bool {
        self.counter == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wifi::category::AccessCategory;
    use crate::wifi::phy::Standard;

    fn contention(phy: &Phy, counter: u32) -> Contention {
        let edca = AccessCategory::BestEffort.parameters(phy);
        Contention { counter, ..Contention::new(phy, &edca, Stream::new(1, "test")) }
    }

    const IDLE: IdlePeriod = IdlePeriod {
        number: 0,
        countdown_from: Instant::from_nanos(43_000),
        exempt_countdown_from: Instant::from_nanos(43_000),
        resumed: false,
    };

    #[test]
    fn frozen_counters_resume() {
        let phy = Standard::A.phy();
        let mut station = contention(phy, 5);
        // Taken after two idle slots: three remain under DCF.
        station.freeze(&IDLE, IDLE.countdown_from + phy.slot * 2, phy);
        assert_eq!(station.counter, 3);
        // Taken before the countdown started: nothing counted.
        station.freeze(&IDLE, Instant::from_nanos(42_999), phy);
        assert_eq!(station.counter, 3);
        assert_eq!(station.transmits_at(&IDLE, phy.slot), IDLE.countdown_from + phy.slot * 3);
    }

    #[test]
    fn edca_counts_the_busy_slot_too() {
        let phy = Standard::N.phy();
        let mut station = contention(phy, 5);
        station.freeze(&IDLE, IDLE.countdown_from + phy.slot * 2, phy);
        assert_eq!(station.counter, 2);
        station.freeze(&IDLE, IDLE.countdown_from, phy);
        assert_eq!(station.counter, 1);
    }

    #[test]
    fn the_window_doubles_and_resets() {
        let phy = Standard::A.phy();
        let mut station = contention(phy, 0);
        let windows: Vec<_> = (0..8)
            .map(|_| {
                station.failed(Instant::ZERO, 0);
                station.cw
            })
            .collect();
        assert_eq!(windows, [31, 63, 127, 255, 511, 1023, 1023, 1023]);
        station.succeeded();
        assert_eq!(station.cw, 15);
        station.failed(Instant::ZERO, 0);
        station.gave_up();
        assert_eq!(station.cw, 15);
    }

    /// An internal collision is one for the function that gives way (802.11-2020 clause 10.23.2.4).
    #[test]
    fn giving_way_doubles_the_window_too() {
        let phy = Standard::N.phy();
        let mut station = contention(phy, 0);
        station.yielded();
        assert_eq!(station.cw, 31);
    }

    /// AIFS of a less urgent category is over when an idle period goes on after an access that came to nothing: it is
    /// not waited for again.
    #[test]
    fn aifs_counts_once_in_an_idle_period() {
        let phy = Standard::N.phy();
        let edca = AccessCategory::Background.parameters(phy);
        let station = Contention { counter: 2, ..Contention::new(phy, &edca, Stream::new(1, "test")) };
        let longer = phy.slot * 4;
        assert_eq!(station.transmits_at(&IDLE, phy.slot), IDLE.countdown_from + longer + phy.slot * 2);
        let resumed = IdlePeriod { resumed: true, ..IDLE };
        assert_eq!(station.transmits_at(&resumed, phy.slot), IDLE.countdown_from + phy.slot * 2);
    }
}
