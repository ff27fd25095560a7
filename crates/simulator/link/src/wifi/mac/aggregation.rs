//! How many MPDUs and bytes fit into one PPDU.

use tacit_packet::units::{Bytes, Duration};

use super::plan::PpduPlan;
use crate::packet::PacketRef;
use crate::wifi::config::AmsduLimit;
use crate::wifi::phy::{
    ACK_LEN, FCS_LEN, MPDU_DELIMITER_LEN, Mode, Phy, SingleMpdu, amsdu_subframe_len, bitmap_bits,
    block_ack_len, mpdu_len, subframe_len,
};

/// Limits of a data PPDU to one destination, computed once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AggregationLimits {
    /// Sequence numbers that may be outstanding; 1 without a Block Ack agreement.
    pub window: u16,
    /// Sequence numbers that the bitmap of a Block Ack covers.
    bitmap_bits: u16,
    max_mpdus: u32,
    max_bytes: u32,
    /// The part of them that the longest PPDU has time for at the full rate.
    max_bytes_in_time: u32,
    mac_header_len: u32,
    /// Largest size of a PPDU in bytes, even with a single MPDU.
    most: u32,
    /// Bytes before the MPDU in a PPDU with one MPDU.
    single_overhead: u32,
    /// Bytes of the longest A-MSDU; `None` if each MPDU carries one packet.
    max_amsdu: Option<u32>,
    /// Least number of bytes from the start of one MPDU to the next.
    min_subframe: u32,
    /// Number of parallel aggregates, each with an equal share of the rate.
    streams: u32,
}

impl AggregationLimits {
    /// Limits of `phy` at `mode` with MAC headers of `mac_header_len` bytes, at most `max_mpdus` per PPDU and `window`
    /// outstanding. The whole exchange, including the response at `control`, fits in `txop_limit`.
    pub fn new(
        phy: &Phy,
        mac_header_len: u32,
        [mode, control]: [&Mode; 2],
        (max_mpdus, window): (Option<u32>, u32),
        amsdu: Option<AmsduLimit>,
        txop_limit: Option<Duration>,
    ) -> Self {
        let (mpdus, bytes, ppdu, response) = match phy.aggregation {
            Some(limits) => (limits.mpdus, limits.bytes.0 as u32, limits.ppdu, block_ack_len(window)),
            None => (1, u32::MAX, Duration::MAX, ACK_LEN),
        };
        let max_mpdus = max_mpdus.unwrap_or(mpdus).clamp(1, mpdus);
        let exchange =
            txop_limit.map(|limit| limit.saturating_sub(phy.sifs + control.ppdu_duration(response)));
        let longest = exchange.map_or(ppdu, |exchange| exchange.min(ppdu));
        let within = if longest == Duration::MAX { u32::MAX } else { mode.bytes_within(longest) };
        Self {
            window: if max_mpdus == 1 { 1 } else { window as u16 },
            bitmap_bits: bitmap_bits(window) as u16,
            max_mpdus,
            max_bytes: bytes.min(within),
            max_bytes_in_time: within,
            mac_header_len,
            most: u32::MAX,
            max_amsdu: amsdu.zip(phy.aggregation).map(|(amsdu, limits)| {
                let within_ampdu = limits.mpdu - mac_header_len - FCS_LEN;
                let always_ampdu = limits.single == SingleMpdu::Delimited;
                let alone = max_mpdus == 1 && !always_ampdu;
                if alone { amsdu.bytes() } else { amsdu.bytes().min(within_ampdu) }
            }),
            single_overhead: phy.aggregation.map_or(0, |limits| limits.single.overhead()),
            min_subframe: 0,
            streams: 1,
        }
    }

    /// Sequence numbers that the recipient tracks and that the bitmap of its Block Acks covers.
    pub const fn recipient_window(&self) -> u16 {
        self.bitmap_bits
    }

    /// Bytes of a Block Ack.
    pub const fn block_ack_len(&self) -> u32 {
        block_ack_len(self.bitmap_bits as u32)
    }

    /// These limits with at most `window` outstanding sequence numbers.
    pub fn with_window(self, window: u16) -> Self {
        Self { window, ..self }
    }

    /// These limits for one of `streams` aggregates that are sent in parallel, each with an equal share of the rate.
    pub fn of_stream(self, streams: u32) -> Self {
        Self { max_bytes: self.max_bytes.min(self.max_bytes_in_time / streams), streams, ..self }
    }

    /// These limits in mode `mode` with MPDU starts at least `spacing` apart (the Minimum MPDU Start Spacing of
    /// 802.11-2020 clauses 9.4.2.55.3 and 10.12). Empty delimiters of 4 bytes each fill the gap after a shorter MPDU,
    /// until it has `spacing` times the rate.
    pub fn spaced(self, mode: &Mode, spacing: Duration) -> Self {
        let nanobits =
            u128::from(spacing.as_nanos()) * u128::from(mode.rate().as_bps()) / u128::from(self.streams);
        let bytes = nanobits.div_ceil(8_000_000_000) as u32;
        Self { min_subframe: bytes.next_multiple_of(MPDU_DELIMITER_LEN), ..self }
    }

    /// Bytes from the delimiter of an MPDU of `len` bytes to the next delimiter.
    pub fn subframe_len(&self, len: u32) -> u32 {
        subframe_len(len).max(self.min_subframe)
    }

    /// Most bytes in a PPDU with several MPDUs; at most 2^24, which exceeds the limit of every standard here.
    pub fn longest(&self) -> u32 {
        self.max_bytes.min(1 << 24)
    }

    /// These limits for a PPDU of at most `bytes`, even with a single MPDU.
    pub fn within(&self, bytes: u32) -> Self {
        Self { max_bytes: self.max_bytes.min(bytes), most: bytes, ..*self }
    }

    /// These limits with at most `bytes` in a PPDU of several MPDUs.
    pub fn aggregating_within(self, bytes: u32) -> Self {
        Self { max_bytes: self.max_bytes.min(bytes), ..self }
    }

    /// These limits for a PPDU of at most `mpdus` MPDUs, but at least one.
    pub fn at_most(&self, mpdus: u32) -> Self {
        Self { max_mpdus: self.max_mpdus.min(mpdus), ..*self }
    }

    /// These limits for a PPDU of one MPDU.
    pub fn single(&self) -> Self {
        Self { max_mpdus: 1, ..*self }
    }

    /// Whether a PPDU with one MPDU has a delimiter too.
    pub const fn delimits_single(&self) -> bool {
        self.single_overhead > 0
    }

    /// Bytes of a PPDU with `before` MPDUs of `len` bytes each and one of `last` bytes.
    pub fn psdu_len(&self, before: u32, len: u32, last: u32) -> u32 {
        match before {
            0 => self.single_overhead + last,
            _ => before * self.subframe_len(len) + MPDU_DELIMITER_LEN + last,
        }
    }

    /// Most MPDUs of `len` bytes that fit into one PPDU; at least one.
    pub fn most_mpdus(&self, len: u32) -> u32 {
        let within = self.max_bytes.saturating_sub(MPDU_DELIMITER_LEN + len) / self.subframe_len(len) + 1;
        within.min(self.max_mpdus).min(self.window.into())
    }

    /// Number of packets of `bytes` bytes that fit into one MPDU.
    pub fn packets_per_mpdu(&self, bytes: u32) -> u32 {
        let padded = amsdu_subframe_len(bytes).next_multiple_of(4);
        let further = self.max_amsdu.map(|most| most.saturating_sub(amsdu_subframe_len(bytes)) / padded);
        1 + further.unwrap_or(0)
    }

    /// Packets of `bytes` bytes each that one PPDU takes.
    pub fn most_packets(&self, bytes: u32) -> u32 {
        let per_mpdu = self.packets_per_mpdu(bytes);
        per_mpdu * self.most_mpdus(self.shared_mpdu_len(per_mpdu, bytes))
    }

    /// Bytes of an MPDU with `packets` packets of `bytes` bytes.
    pub fn shared_mpdu_len(&self, packets: u32, bytes: u32) -> u32 {
        let subframe = amsdu_subframe_len(bytes);
        match packets {
            0 | 1 => mpdu_len(self.mac_header_len, bytes),
            _ => self.mac_header_len + (packets - 1) * subframe.next_multiple_of(4) + subframe + FCS_LEN,
        }
    }

    /// Bytes of the MPDU that carries an IP packet of `payload`.
    pub fn mpdu_len(&self, payload: Bytes) -> u32 {
        mpdu_len(self.mac_header_len, payload.0 as u32)
    }

    /// Whether an MPDU may carry several packets.
    pub const fn joins_packets(&self) -> bool {
        self.max_amsdu.is_some()
    }

    /// Adds packet `next` as a subframe to the A-MSDU of `msdus`, the last MPDU of `plan` with length `len`, if it
    /// fits.
    pub fn join<'a>(
        &self,
        plan: &mut PpduPlan,
        len: &mut u32,
        msdus: impl Iterator<Item = &'a PacketRef>,
        next: &PacketRef,
    ) -> bool {
        let Some(max_amsdu) = self.max_amsdu else { return false };
        let subframe = |payload: &PacketRef| amsdu_subframe_len(payload.len().0 as u32);
        let amsdu = msdus.map(|payload| subframe(payload).next_multiple_of(4)).sum::<u32>() + subframe(next);
        let longer = self.mac_header_len + amsdu + FCS_LEN;
        let before = plan.padded_bytes - self.subframe_len(*len);
        let bytes = match plan.mpdus {
            1 => self.single_overhead + longer,
            _ => before + MPDU_DELIMITER_LEN + longer,
        };
        if amsdu > max_amsdu || bytes > self.max_bytes {
            return false;
        }
        plan.bytes = bytes;
        plan.padded_bytes = before + self.subframe_len(longer);
        *len = longer;
        true
    }

    /// Adds an MPDU of `len` bytes to `plan` if it fits. The first MPDU is refused only if it exceeds the time limit,
    /// because no smaller PPDU can carry it.
    pub fn admit(&self, plan: &mut PpduPlan, len: u32) -> bool {
        if plan.mpdus == 0 {
            let bytes = self.single_overhead + len;
            if bytes > self.most {
                return false;
            }
            plan.bytes = bytes;
        } else {
            // All subframes before this one are padded; the last is not.
            let bytes = plan.padded_bytes + MPDU_DELIMITER_LEN + len;
            if plan.mpdus >= self.max_mpdus || bytes > self.max_bytes {
                return false;
            }
            plan.bytes = bytes;
        }
        plan.mpdus += 1;
        plan.padded_bytes += self.subframe_len(len);
        true
    }
}

#[cfg(test)]
mod tests {
    use tacit_packet::units::BitRate;

    use super::*;
    use crate::wifi::phy::Standard;

    fn fill(mbps: u64, max_mpdus: Option<u32>, txop_limit: Option<Duration>) -> PpduPlan {
        let phy = Standard::N.phy();
        let mode = Mode::for_rate(Standard::N, BitRate::from_mbps(mbps)).unwrap();
        let (header, control) = (phy.mac_header_len(), phy.control_mode(&mode));
        let limits =
            AggregationLimits::new(phy, header, [&mode, &control], (max_mpdus, 64), None, txop_limit);
        let mut plan = PpduPlan::default();
        while limits.admit(&mut plan, limits.mpdu_len(Bytes(1500))) {}
        plan
    }

    #[test]
    fn batches_of_forty_two() {
        let plan = fill(150, None, None);
        assert_eq!(plan.mpdus, 42);
        assert_eq!(plan.bytes, 41 * 1544 + 4 + 1538);
    }

    #[test]
    fn the_exchange_stays_within_the_txop() {
        let limit = Duration::from_millis(4);
        let plan = fill(15, None, Some(limit));
        let phy = Standard::N.phy();
        let mode = Mode::for_rate(Standard::N, BitRate::from_mbps(15)).unwrap();
        let exchange = |bytes| {
            mode.ppdu_duration(bytes) + phy.sifs + phy.control_mode(&mode).ppdu_duration(block_ack_len(64))
        };
        assert_eq!(plan.mpdus, 4);
        assert!(exchange(plan.bytes) <= limit);
        assert!(exchange(plan.bytes + 1544) > limit);
    }

    /// aPPDUMaxTime of HT is 5.484 ms (802.11-2020 table 19-25); the limit in bytes is stricter only at high rates.
    #[test]
    fn no_ppdu_is_longer_than_the_standard_lets_it_be() {
        let plan = fill(15, None, None);
        let mode = Mode::for_rate(Standard::N, BitRate::from_mbps(15)).unwrap();
        let longest = Duration::from_micros(5_484);
        assert_eq!(plan.mpdus, 6);
        assert!(mode.ppdu_duration(plan.bytes) <= longest);
        assert!(mode.ppdu_duration(plan.bytes + 1544) > longest);
    }

    /// 8 us at 150 Mb/s are 150 bytes, rounded up to 152 by delimiters. At 65 Mb/s they are 65 bytes, less than a TCP
    /// ACK takes.
    #[test]
    fn short_mpdus_keep_their_distance() {
        let bytes_of = |mbps: u64, packet: u64, micros: u64| {
            let phy = Standard::N.phy();
            let mode = Mode::for_rate(Standard::N, BitRate::from_mbps(mbps)).unwrap();
            let control = phy.control_mode(&mode);
            let limits =
                AggregationLimits::new(phy, phy.mac_header_len(), [&mode, &control], (None, 64), None, None)
                    .spaced(&mode, Duration::from_micros(micros));
            let mut plan = PpduPlan::default();
            (0..3).for_each(|_| assert!(limits.admit(&mut plan, limits.mpdu_len(Bytes(packet)))));
            plan.bytes
        };
        // MAC header, LLC/SNAP and FCS take 38 bytes, a delimiter 4.
        let (ack, subframe) = (52 + 38 + 4, 96);
        assert_eq!(bytes_of(150, 52, 0), 2 * subframe + ack);
        assert_eq!(bytes_of(150, 52, 4), 2 * subframe + ack, "76 bytes");
        assert_eq!(bytes_of(150, 52, 8), 2 * 152 + ack, "the last one keeps no distance to anything");
        assert_eq!(bytes_of(65, 52, 8), 2 * subframe + ack);
        assert_eq!(bytes_of(150, 1_500, 8), 2 * 1_544 + 1_542, "full packets are longer anyway");
    }

    /// 802.11-2020 clause 10.12: the distance is one of time, so that each of several streams, with its share of the rate, has fewer
    /// bytes to keep it.
    #[test]
    fn streams_side_by_side_share_the_bytes_of_the_least_distance() {
        let phy = Standard::N.phy();
        let mode = Mode::for_rate(Standard::N, BitRate::from_mbps(150)).unwrap();
        let control = phy.control_mode(&mode);
        // 16 us at 150 Mb/s are 300 bytes.
        for (streams, bytes) in [(1, 300), (2, 152), (3, 100), (4, 76)] {
            let limits =
                AggregationLimits::new(phy, phy.mac_header_len(), [&mode, &control], (None, 64), None, None)
                    .of_stream(streams)
                    .spaced(&mode, Duration::from_micros(16));
            assert_eq!(limits.subframe_len(1), bytes, "{streams} streams");
        }
    }

    #[test]
    fn one_mpdu_goes_without_delimiter() {
        let plan = fill(150, Some(1), None);
        assert_eq!((plan.mpdus, plan.bytes), (1, 1538));
    }
}
