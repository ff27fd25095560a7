//! Queues of clients: as they report them, and as an access point estimates them.

use tacit_packet::units::{BitRate, Bytes, Duration, Instant};

use super::plan::PpduPlan;
use crate::wifi::air::StationId;
use crate::wifi::mu_scheduler::UplinkClient;
use crate::wifi::ofdma::Triggers;

/// A client's report of its queue: Queue Size (802.11-2020 clause 9.2.4.5.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BufferStatus {
    units: u8,
}

impl BufferStatus {
    /// Bytes of a unit.
    const UNIT_BYTES: u64 = 256;
    /// This value means 254 units or more; 255 means unknown.
    const MOST_UNITS: u8 = 254;

    /// The report for packets of these sizes in bytes.
    pub fn from_packets(packets: impl Iterator<Item = u64>) -> Self {
        let mut bytes = 0;
        for more in packets {
            bytes += more;
            if bytes >= Self::UNIT_BYTES * u64::from(Self::MOST_UNITS) {
                return Self { units: Self::MOST_UNITS };
            }
        }
        Self { units: bytes.div_ceil(Self::UNIT_BYTES) as u8 }
    }

    /// The value of the Queue Size field.
    pub fn units(self) -> u8 {
        self.units
    }

    /// An upper bound of the bytes in the queue, unless the value is the maximum.
    pub fn bytes(self) -> u32 {
        u32::from(self.units) * Self::UNIT_BYTES as u32
    }

    pub fn is_empty(self) -> bool {
        self.units == 0
    }
}

/// An access point's estimate of a client's queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UplinkDemand {
    left: BufferStatus,
    /// Data MPDUs sent to the client since its last report.
    acks_for: u32,
    /// Bytes of PSDU per reported byte, in 1/256.
    per_byte: u32,
    /// Bytes of PSDU per data MPDU sent to the client, in 1/256.
    per_mpdu: u32,
    /// When it last reported its queue.
    received_at: Instant,
    /// It did so with a Block Ack.
    with_block_ack: bool,
    /// Until when it contends by MU EDCA, because it answered a trigger.
    restricted_until: Instant,
    /// Start of the current second; the MPDU counts are for this second and the one before.
    second: Instant,
    mpdus: u32,
    mpdus_before: u32,
}

impl UplinkDemand {
    /// Bytes of a TCP ACK in an A-MPDU.
    const ACK_BYTES: u32 = 96;
    /// Assumed for a client without a report, as in ns-3 (UlPsduSize).
    pub const UNKNOWN_BYTES: u32 = 500;
    /// A client with this number of MPDUs per second is busy (NIST IR 8506).
    const BUSY_MPDUS: u32 = 100;
    const SECOND: Duration = Duration::from_secs(1);
    /// A client to which data was sent is triggered after this time, even if few ACKs are due, because it may be barred
    /// from contending. Ours.
    const LONGEST_SILENCE: Duration = Duration::from_millis(20);
    /// The weight of a new sample is the inverse of this.
    const WEIGHT: u32 = 8;
    /// The largest sample, in 1/256.
    const MOST: u32 = 4 * Self::ACK_BYTES * 256;

    /// `mpdus` data MPDUs were sent to the client.
    pub fn sent(&mut self, mpdus: u32) {
        self.acks_for = self.acks_for.saturating_add(mpdus);
    }

    /// The client sent `mpdus` MPDUs by contention at `at`, and reported the rest of its queue.
    pub fn received_single_user(&mut self, at: Instant, mpdus: u32, left: BufferStatus) {
        self.count(at, mpdus);
        self.reported(at, left);
    }

    /// Data MPDUs that were sent to the client and whose ACKs are still due.
    pub fn awaited(&self) -> u32 {
        self.acks_for
    }

    /// The client sent `plan` in response to a trigger. When it was assembled, ACKs for `awaited` MPDUs were due; in a
    /// cascade, more were sent since.
    pub fn received_triggered(&mut self, at: Instant, awaited: u32, plan: PpduPlan, left: BufferStatus) {
        let learn = |known: &mut u32, sample: u32| {
            *known = *known - *known / Self::WEIGHT + sample.min(Self::MOST) / Self::WEIGHT;
        };
        // Packets beyond those that it had reported are ACKs for data that was sent to it.
        let born = (plan.bytes + left.bytes()).saturating_sub(self.waiting_bytes());
        if let Some(sample) = (born * 256).checked_div(awaited) {
            learn(&mut self.per_mpdu, sample);
        } else if left.is_empty()
            && let Some(sample) = (plan.bytes * 256).checked_div(self.left.bytes())
        {
            learn(&mut self.per_byte, sample);
        }
        self.count(at, plan.mpdus);
        self.received_at = at;
        self.left = left;
        self.with_block_ack = false;
        self.acks_for = self.acks_for.saturating_sub(awaited);
    }

    /// The client's TCP ACKs arrived compressed with a Block Ack at `at`: none of them needs a trigger.
    pub fn appended_acks_arrived(&mut self, at: Instant) {
        self.received_triggered(at, self.acks_for, PpduPlan::default(), self.left);
    }

    /// The client reported its queue at `at`.
    pub fn reported(&mut self, at: Instant, left: BufferStatus) {
        self.received_at = at;
        self.left = left;
        self.with_block_ack = false;
        self.acks_for = 0;
    }

    /// The client reported its queue at `at` with its Block Ack: ACKs for the data that it acknowledges come later.
    pub fn reported_with_block_ack(&mut self, at: Instant, left: BufferStatus) {
        self.reported(at, left);
        self.with_block_ack = true;
    }

    /// The access point acknowledged its response to a trigger: until `until` it contends by MU EDCA.
    pub fn restricted(&mut self, until: Instant) {
        self.restricted_until = until;
    }

    fn count(&mut self, at: Instant, mpdus: u32) {
        if at >= self.second + Self::SECOND {
            let skipped = at >= self.second + Self::SECOND * 2;
            self.mpdus_before = if skipped { 0 } else { self.mpdus };
            self.mpdus = 0;
            self.second = at;
        }
        self.mpdus = self.mpdus.saturating_add(mpdus);
    }

    /// MPDUs that the client sent in the current second at `at` or in the one before: the larger number.
    fn mpdus_per_s(&self, at: Instant) -> u32 {
        if at < self.second + Self::SECOND * 2 { self.mpdus.max(self.mpdus_before) } else { 0 }
    }

    /// Whether the client is busy at `at`.
    pub fn is_busy(&self, at: Instant) -> bool {
        self.mpdus_per_s(at) > Self::BUSY_MPDUS
    }

    /// Whether an access point with the trigger policy `triggers` triggers the client at `at`, while `busy` clients are
    /// busy.
    pub fn is_wanted(&self, triggers: Triggers, busy: usize, at: Instant) -> bool {
        match triggers {
            Triggers::Off | Triggers::RandomAccess => false,
            Triggers::Nist => {
                let reports = self.with_block_ack && !self.left.is_empty();
                let waits = at < self.restricted_until && self.is_overdue(at);
                reports || waits || busy >= Triggers::NIST_BUSY && self.is_busy(at)
            }
            Triggers::Always => true,
            Triggers::AckAware => !self.expects_nothing(at),
        }
    }

    /// Whether it has reported an empty queue, and by `at` no ACKs are due since; lately, or `reports_soon` again.
    pub fn has_nothing(&self, at: Instant, reports_soon: bool) -> bool {
        let is_known = reports_soon || at < self.received_at + Self::LONGEST_SILENCE;
        is_known && self.left.is_empty() && self.bytes_to_come() < Self::ACK_BYTES
    }

    /// Whether at `at` the client has nothing known to wait, and less than a TCP ACK to come.
    pub fn expects_nothing(&self, at: Instant) -> bool {
        self.has_nothing(at, true) && !self.is_overdue(at)
    }

    /// Whether at `at` it has not reported its queue for long, although data was sent to it.
    fn is_overdue(&self, at: Instant) -> bool {
        self.acks_for > 0 && at >= self.received_at + Self::LONGEST_SILENCE
    }

    /// Bytes of PSDU that the client will send in answer to data.
    fn bytes_to_come(&self) -> u32 {
        (u64::from(self.acks_for) * u64::from(self.per_mpdu)).div_ceil(256) as u32
    }

    /// Input for a scheduler: `client` at `at`, which sends at `rate`.
    pub fn as_seen_at(&self, at: Instant, client: StationId, rate: BitRate) -> UplinkClient {
        UplinkClient {
            client,
            reported: Bytes(self.left.bytes().into()),
            sent_mpdus: self.acks_for,
            silent: at.saturating_since(self.received_at),
            mpdus_per_s: self.mpdus_per_s(at),
            rate,
        }
    }

    /// Bytes of PSDU to allocate to the client: its queue after a poll; otherwise at least one MPDU, in which it reports
    /// the rest of its queue.
    pub fn expected_bytes(&self) -> u32 {
        let has_just_reported = self.acks_for == 0 && !self.left.is_empty() && !self.with_block_ack;
        let least = if has_just_reported { Self::ACK_BYTES } else { Self::UNKNOWN_BYTES };
        (self.waiting_bytes() + self.bytes_to_come()).max(least)
    }

    /// Bytes of PSDU that its last report stands for.
    fn waiting_bytes(&self) -> u32 {
        (u64::from(self.left.bytes()) * u64::from(self.per_byte)).div_ceil(256) as u32
    }
}

impl Default for UplinkDemand {
    fn default() -> Self {
        Self {
            left: BufferStatus::default(),
            acks_for: 0,
            per_byte: 256 + 64,
            // One ACK per two packets.
            per_mpdu: Self::ACK_BYTES * 256 / 2,
            received_at: Instant::ZERO,
            with_block_ack: false,
            restricted_until: Instant::ZERO,
            second: Instant::ZERO,
            mpdus: 0,
            mpdus_before: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Units of 52 tones at MCS 4 need 400 us for 500 bytes.
    #[test]
    fn a_trigger_after_a_poll_has_room_for_what_was_reported() {
        let mut demand = UplinkDemand::default();
        assert_eq!(demand.expected_bytes(), UplinkDemand::UNKNOWN_BYTES, "nothing is known");
        let two_acks = BufferStatus::from_packets([60, 60].into_iter());
        demand.reported(Instant::ZERO, two_acks);
        assert_eq!(demand.expected_bytes(), 320, "256 bytes of packets, and a quarter for headers");
        demand.sent(2);
        assert_eq!(demand.expected_bytes(), UplinkDemand::UNKNOWN_BYTES, "an ACK may come");
        demand.reported_with_block_ack(Instant::ZERO, two_acks);
        assert_eq!(
            demand.expected_bytes(),
            UplinkDemand::UNKNOWN_BYTES,
            "ACKs for what it acknowledges follow"
        );
    }
}
