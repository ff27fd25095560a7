//! Contention: DCF and EDCA backoff (802.11-2020 clauses 10.3.4 and 10.23.2).

use tacit_packet::units::{Duration, Instant};

use crate::random::Stream;
use crate::wifi::category::EdcaParameters;
use crate::wifi::phy::Phy;

/// Later than any run: the end of a time that ends with an event.
pub(crate) const AWAY: Instant = Instant::from_nanos(u64::MAX / 4);

/// The backoff state of one function.
#[derive(Clone, Debug)]
pub(crate) struct Contention {
    /// Backoff slots left when the countdown starts.
    counter: u32,
    /// Value of `counter` when it was last drawn.
    drawn: u32,
    cw: u32,
    cw_min: u32,
    cw_max: u32,
    /// Accesses without success in a row: QSRC (802.11-2020 clause 10.23.2.12.1).
    retries: u32,
    /// By how much AIFS exceeds that of the physical layer's default; zero if it is shorter.
    aifs_longer: Duration,
    /// By how much AIFS is below that of the physical layer's default; zero if it is longer.
    aifs_shorter: Duration,
    /// The countdown does not start before this.
    not_before: Instant,
    /// It had its turn in the slot before this, and had nothing to send.
    acts_from: Instant,
    /// The idle period in which this station does not defer, because it took part in the preceding exchange.
    exempt_in: Option<u64>,
    /// The usual parameters and the time when they apply again, if an access point has set others.
    usual: Option<(EdcaParameters, Instant)>,
    stream: Stream,
}

/// A period in which a station perceives the medium as idle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdlePeriod {
    /// Sequential number of this idle period.
    pub number: u64,
    /// When stations that took no part in the last exchange may start their countdown.
    pub countdown_from: Instant,
    /// When stations that took part in it may start theirs.
    pub exempt_countdown_from: Instant,
}

impl IdlePeriod {
    /// The first idle period of a channel of `phy`.
    pub fn first(phy: &Phy) -> Self {
        let countdown_from = Instant::ZERO + phy.aifs();
        Self { number: 0, countdown_from, exempt_countdown_from: countdown_from }
    }
}

impl Contention {
    /// Contends with `edca` in a basic service set whose idle periods assume the AIFS of `phy`.
    pub fn new(phy: &Phy, edca: &EdcaParameters, stream: Stream) -> Self {
        let slots = |slots: u32| phy.slot * u64::from(slots);
        Self {
            counter: 0,
            drawn: 0,
            cw: edca.cw_min,
            cw_min: edca.cw_min,
            cw_max: edca.cw_max,
            retries: 0,
            aifs_longer: slots(edca.aifs_slots.saturating_sub(phy.aifs_slots)),
            aifs_shorter: slots(phy.aifs_slots.saturating_sub(edca.aifs_slots)),
            not_before: Instant::ZERO,
            acts_from: Instant::ZERO,
            exempt_in: None,
            usual: None,
            stream,
        }
    }

    /// Arbitration interframe space of this function.
    pub fn aifs(&self, phy: &Phy) -> Duration {
        phy.aifs() + self.aifs_longer - self.aifs_shorter
    }

    /// The contention window after a success.
    pub fn cw_min(&self) -> u32 {
        self.cw_min
    }

    /// When this station transmits if the medium stays idle.
    pub fn transmits_at(&self, idle: &IdlePeriod, slot: Duration) -> Instant {
        self.countdown_from(idle) + slot * u64::from(self.counter)
    }

    fn countdown_from(&self, idle: &IdlePeriod) -> Instant {
        let shared = if self.exempt_in == Some(idle.number) {
            idle.exempt_countdown_from
        } else {
            idle.countdown_from
        };
        (shared + self.aifs_longer - self.aifs_shorter).max(self.not_before)
    }

    /// Counts down the slots that passed before another station took the medium at `at`.
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

    /// The medium stays idle, but the station senses it no longer: counts down the slots that passed.
    pub fn stand_still(&mut self, idle: &IdlePeriod, at: Instant, phy: &Phy) {
        let from = self.countdown_from(idle);
        let slots = (at.saturating_since(from).as_nanos() / phy.slot.as_nanos()) as u32;
        self.counter = self.counter.saturating_sub(slots);
    }

    /// The countdown starts at `at` at the earliest, because the station senses the medium only from AIFS before that on.
    pub fn sense_from(&mut self, at: Instant) {
        self.not_before = at;
    }

    /// Its backoff ended at `at`, and it had nothing to send: it acts once in a slot (802.11-2020 clause 10.23.2.4). It may
    /// still contend or not.
    pub fn pass(&mut self, at: Instant, phy: &Phy, still_contends: bool) {
        self.acts_from = at + phy.slot;
        if still_contends {
            self.not_before = self.acts_from;
        }
    }

    /// Something arrived while the station sensed nothing: draws a backoff if the last one `was_counted` to its end before.
    pub fn renew_if_over(&mut self, was_counted: bool) {
        if was_counted && self.is_over() {
            self.draw();
        }
    }

    /// When the countdown starts at the earliest.
    pub fn senses_from(&self) -> Instant {
        self.not_before
    }

    /// A packet arrived while the medium was idle and no backoff was left: transmits at once, or as soon as the medium
    /// has been idle for long enough.
    pub fn start_at_once(&mut self, now: Instant) {
        self.counter = 0;
        self.drawn = 0;
        self.not_before = now.max(self.acts_from);
    }

    /// Draws a backoff from the current contention window.
    pub fn draw(&mut self) {
        self.counter = self.stream.up_to(self.cw);
        self.drawn = self.counter;
    }

    /// After a successful exchange: resets the window and draws a backoff.
    pub fn succeeded(&mut self) {
        (self.cw, self.retries) = (self.cw_min, 0);
        self.draw();
    }

    /// After a failed exchange, detected at `noticed_at`: doubles the window and draws a backoff.
    pub fn failed(&mut self, noticed_at: Instant, idle_number: u64) {
        self.retry();
        self.not_before = noticed_at;
        self.exempt_in = Some(idle_number);
        self.draw();
    }

    /// After the last retry: resets the window.
    pub fn gave_up(&mut self) {
        (self.cw, self.retries) = (self.cw_min, 0);
        self.draw();
    }

    fn retry(&mut self) {
        self.cw = (2 * self.cw + 1).min(self.cw_max);
        self.retries += 1;
    }

    /// A more urgent category of the same station took the access: the same as a collision, except that nothing was
    /// sent. Past `retry_limit` the window is reset, and no packet is given up (802.11-2020 clauses 10.23.2.2, 10.23.2.4).
    pub fn yielded(&mut self, retry_limit: u32) {
        self.retry();
        if self.retries > retry_limit {
            return self.gave_up();
        }
        self.draw();
    }

    /// Whether an exchange of this function failed just before idle period `idle_number`.
    pub fn failed_before(&self, idle_number: u64) -> bool {
        self.exempt_in == Some(idle_number)
    }

    /// Reservations by other stations do not delay this function in idle period `idle_number`, because it took part in
    /// that exchange.
    pub fn exempt(&mut self, idle_number: u64) {
        self.exempt_in = Some(idle_number);
    }

    /// Contends with `edca` until `until`. If `edca` has no AIFSN, the function does not contend and sends only when it
    /// is triggered (MU EDCA, 802.11ax-2021 clause 26.2.7).
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

    /// Restores the usual parameters if their time has come at `at`.
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

    /// AIFSN: the number of slots in AIFS.
    fn aifs_slots(&self, phy: &Phy) -> u32 {
        let slots = |time: Duration| (time.as_nanos() / phy.slot.as_nanos()) as u32;
        phy.aifs_slots + slots(self.aifs_longer) - slots(self.aifs_shorter)
    }

    /// The backoff drawn for the current transmission; zero if it started without one.
    pub fn drawn(&self, phy: &Phy) -> Duration {
        phy.slot * u64::from(self.drawn)
    }

    /// True if no backoff slot is left.
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
    };

    #[test]
    fn frozen_counters_resume() {
        let phy = Standard::A.phy();
        let mut station = contention(phy, 5);
        // The medium is taken after two idle slots: three remain under DCF.
        station.freeze(&IDLE, IDLE.countdown_from + phy.slot * 2, phy);
        assert_eq!(station.counter, 3);
        // The medium is taken before the countdown starts: no slot counts.
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

    /// An internal collision counts as a collision for the function that yields (802.11-2020 clause 10.23.2.2).
    #[test]
    fn giving_way_doubles_the_window_too_up_to_the_retry_limit() {
        let phy = Standard::N.phy();
        let mut station = contention(phy, 0);
        let windows = [31, 63, 127, 255, 511, 1023, 1023, 15, 31];
        assert_eq!(
            windows.map(|_| {
                station.yielded(7);
                station.cw
            }),
            windows
        );
    }
}
