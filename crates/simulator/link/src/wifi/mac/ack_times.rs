//! Airtime of TCP ACKs, for drivers that compare appending them with sending them as packets.

use tacit_between::hack::AckAirtime;
use tacit_packet::units::Duration;

use super::aggregation::AggregationLimits;
use super::originator::Originator;
use super::rules::Rules;
use crate::wifi::category::EdcaParameters;
use crate::wifi::phy::{ACK_LEN, Mode};

/// Airtime of TCP ACKs from one station to another. Rates are the configured ones, even under rate control.
#[derive(Clone, Copy, Debug)]
pub struct AckTimes {
    data: Mode,
    control: Mode,
    limits: AggregationLimits,
    /// AIFS plus half of CWmin, in slots.
    access: Duration,
    /// From the end of a PPDU to the start of its response.
    response_after: Duration,
}

impl AckTimes {
    /// Airtime for PPDUs of `originator`, which contends with `edca`.
    pub(crate) fn new(rules: &Rules, edca: &EdcaParameters, originator: &Originator) -> Self {
        let phy = rules.phy;
        Self {
            data: originator.mode,
            control: originator.control_mode,
            limits: originator.limits(),
            access: phy.sifs + phy.slot * u64::from(edca.aifs_slots) + phy.slot * u64::from(edca.cw_min) / 2,
            response_after: rules.response_after(),
        }
    }

    /// Bytes of the response to a PPDU of `mpdus`.
    fn triggered_response_len(&self, mpdus: u32) -> u32 {
        if mpdus > 1 { self.limits.block_ack_len() } else { ACK_LEN }
    }

    /// Airtime of a PPDU of `packets` packets of `bytes` bytes, `per_mpdu` to an MPDU, including the access before it
    /// and the response after it; zero if there are no packets.
    fn exchange(&self, packets: u32, per_mpdu: u32, bytes: u32) -> Duration {
        let Some(before) = packets.div_ceil(per_mpdu).checked_sub(1) else { return Duration::ZERO };
        let len = |packets| self.limits.shared_mpdu_len(packets, bytes);
        let psdu = self.limits.psdu_len(before, len(per_mpdu), len(packets - before * per_mpdu));
        let answer = self.control.ppdu_duration(self.triggered_response_len(before + 1));
        self.access + self.data.ppdu_duration(psdu) + self.response_after + answer
    }
}

impl AckAirtime for AckTimes {
    fn appended(&self, bytes: u32) -> Duration {
        // The acknowledgment that carries them answers data, so it is a Block Ack if Block Acks are in use.
        let plain = self.triggered_response_len(self.limits.most_mpdus(0));
        self.control.ppdu_duration(plain.saturating_add(bytes)) - self.control.ppdu_duration(plain)
    }

    fn packets(&self, acks: u32, bytes: u32) -> Duration {
        let per_mpdu = self.limits.packets_per_mpdu(bytes);
        let most = self.limits.most_packets(bytes);
        let of = |packets| self.exchange(packets, per_mpdu, bytes);
        of(most) * u64::from(acks / most) + of(acks % most)
    }
}

#[cfg(test)]
mod tests {
    use tacit_packet::units::{BitRate, Instant};

    use super::*;
    use crate::wifi::phy::{ModeChoice, Standard};
    use crate::wifi::{AmsduLimit, Bss, BssConfig, StationConfig, StationId};

    /// Airtimes of a client at `kbps`, with its configuration modified by `change`.
    fn times(standard: Standard, kbps: u64, change: impl FnOnce(&mut BssConfig)) -> AckTimes {
        let choice = ModeChoice::rate(BitRate::from_kbps(kbps));
        let mode = Mode::choose(standard, crate::wifi::phy::Variant::for_standard(standard), choice).unwrap();
        let mut config = BssConfig::new(standard, vec![StationConfig::new(mode)]);
        change(&mut config);
        let names = ["ap", "client"];
        let bss = Bss::new(config, 1, "test", &names, (Instant::ZERO, Instant::ZERO));
        bss.ack_times(StationId(1).first_function(), StationId::AP.first_function())
    }

    fn us(tenths: u64) -> Duration {
        Duration::from_nanos(tenths * 100)
    }

    /// AIFS 43, half of 15 slots 67.5, SIFS 16. One ACK of 52 bytes takes 60.8 in HE SU at 80 MHz and MCS 11 with two
    /// LTFs and packet extension, and its ACK 28. 32 ACKs take 101.6, and the Block Ack with a bitmap of 256 bits takes
    /// 40.
    #[test]
    fn packets_cost_an_access_the_ppdu_and_its_answer() {
        let times = times(Standard::Ax, 600_500, |_| {});
        assert_eq!(times.packets(1, 52), us(430 + 675 + 608 + 160 + 280));
        assert_eq!(times.packets(32, 52), us(430 + 675 + 1_016 + 160 + 400));
        assert_eq!(times.packets(0, 52), Duration::ZERO);
        // More than one window: 256, then 44 after another access.
        assert_eq!(times.packets(300, 52), times.packets(256, 52) + times.packets(44, 52));
    }

    /// 56 bytes, 16 service bits and 6 tail bits are 470 bits; they leave 10 bits of a symbol of 96 bits (24 Mb/s) free.
    #[test]
    fn bytes_that_ride_cost_whole_symbols() {
        let times = times(Standard::Ax, 600_500, |_| {});
        let symbols = |bytes| (16 + 6 + 8 * bytes as u64).div_ceil(96);
        for bytes in [0, 1, 2, 12, 13, 100, 1_000] {
            let more = symbols(56 + bytes) - symbols(56);
            assert_eq!(times.appended(bytes), Duration::from_micros(4 * more), "{bytes}");
        }
        assert_eq!(times.appended(100), Duration::from_micros(36));
    }

    /// 802.11a: DIFS 34 and an ACK of 14 bytes at 24 Mb/s; each TCP ACK has its own access.
    #[test]
    fn without_aggregation_each_packet_has_its_access() {
        let times = times(Standard::A, 54_000, |_| {});
        // 52 bytes, 24 of MAC header, 8 of LLC/SNAP, and the FCS, at 216 bits per symbol: 4 symbols.
        let one = us(340 + 675 + 200 + 160 + 160 + 280);
        assert_eq!(times.packets(1, 52), one);
        assert_eq!(times.packets(5, 52), one * 5);
        let symbols = |bytes: u64| (22 + 8 * bytes).div_ceil(96);
        assert_eq!(times.appended(8), Duration::from_micros(4 * (symbols(22) - symbols(14))));
    }

    #[test]
    fn acks_that_share_mpdus_take_fewer_bytes_and_no_more_time() {
        let alone = times(Standard::N, 150_000, |_| {});
        let shared = times(Standard::N, 150_000, |config| config.amsdu = Some(AmsduLimit::Bytes3839));
        assert!(shared.packets(64, 52) < alone.packets(64, 52));
        assert_eq!(shared.packets(1, 52), alone.packets(1, 52));
    }
}
