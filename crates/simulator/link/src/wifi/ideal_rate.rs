//! The mode that gives TCP the highest goodput under a station's retry rules: the upper limit of rate control.
//!
//! This is not always the mode with the highest throughput. A mode that loses every third MPDU may carry more than the
//! next slower one, but some of its MPDUs fail their last retry, and TCP shrinks its window for each of them.

use tacit_packet::units::Duration;

use super::Decibels;
use super::air::StationId;
use super::category::AccessCategory;
use super::config::BssConfig;
use super::error_rate::{mpdu_success, preamble_success};
use super::phy::{
    ACK_LEN, BLOCK_ACK_REQUEST_LEN, MPDU_DELIMITER_LEN, Mode, block_ack_len, mpdu_len, subframe_len,
};

/// Bytes of an IP packet with a pure ACK and timestamps.
const ACK_PACKET: u32 = 52;
/// MPDUs to simulate, and the least number of exchanges: enough for three correct digits of the mean.
const MPDUS: u32 = 25_600;
const LEAST_EXCHANGES: u32 = 400;

/// The TCP traffic that a mode is chosen for.
#[derive(Clone, Copy, Debug)]
pub struct TcpOver<'a> {
    /// Limits of aggregation and retries.
    pub config: &'a BssConfig,
    /// Bytes of IP packets with data.
    pub packet: u32,
    /// Round-trip time of the path without queueing.
    pub round_trip: Duration,
}

impl TcpOver<'_> {
    /// The mode in `modes` with the highest goodput of a single TCP connection, where `snr_of` gives the SNR of each
    /// mode's channel. On a tie it is the first; `None` if there are no modes.
    pub fn ideal_mode(
        &self,
        modes: impl IntoIterator<Item = Mode>,
        snr_of: impl Fn(&Mode) -> Decibels,
    ) -> Option<Mode> {
        let most = |mode: &Mode| mode.rate().as_bps() as f64 * self.success(mode, snr_of(mode));
        let mut modes: Vec<(f64, Mode)> = modes.into_iter().map(|mode| (most(&mode), mode)).collect();
        // The sort is stable, so equal modes keep their order.
        modes.sort_by(|one, other| other.0.total_cmp(&one.0));
        let mut best: Option<(f64, Mode)> = None;
        for (most, mode) in modes {
            if best.is_some_and(|(goodput, _)| most <= goodput) {
                break;
            }
            let goodput = self.goodput(&mode, snr_of(&mode));
            if best.is_none_or(|(best, _)| goodput > best) {
                best = Some((goodput, mode));
            }
        }
        best.map(|(_, mode)| mode)
    }

    fn success(&self, mode: &Mode, snr: Decibels) -> f64 {
        let bytes = mpdu_len(self.config.phy_at(mode).mac_header_len(), self.packet);
        preamble_success(mode, snr) * mpdu_success(mode, snr, bytes)
    }

    /// Goodput of TCP in bits per second, with IP headers counted as goodput: the smaller of the link's throughput and
    /// the rate that congestion control reaches at the link's losses.
    pub fn goodput(&self, mode: &Mode, snr: Decibels) -> f64 {
        let success = self.success(mode, snr);
        if success <= 0.0 {
            return 0.0;
        }
        let played = self.play(mode, snr);
        // Share of packets lost after their last retry.
        let lost = libm::pow(1.0 - success, f64::from(self.config.retry_limit) + 1.0);
        let round_trip = self.round_trip.as_secs_f64() + 2.0 * played.exchange_s;
        let most = f64::from(self.packet * 8) * window(lost, round_trip) / round_trip;
        // Where the two limits are close, the result is below both.
        let fourth = |of: f64| libm::pow(played.carried / of, 4.0);
        played.carried / libm::pow(1.0 + fourth(most), 0.25)
    }

    /// Upper bound of every transport at `mode`, in bits per second with IP headers: each PPDU has its greatest length
    /// and the air carries nothing else. It does not hold for A-MSDUs or for several PPDUs in a TXOP.
    pub fn bound(&self, mode: &Mode, snr: Decibels) -> f64 {
        let mpdus = self.mpdus(mode);
        let carried = f64::from(mpdus * self.packet * 8) * self.success(mode, snr);
        carried / self.exchange(mode, mpdus, 0, 0)
    }

    /// Throughput with single MPDUs; each is sent until it arrives or has no retries left.
    fn single(&self, mode: &Mode, success: f64) -> Played {
        let (mut reached, mut seconds, mut exchanges, mut delivered) = (1.0, 0.0, 0.0, 0.0);
        for attempt in 0..=self.config.retry_limit {
            let took = |arrived| self.exchange(mode, 1, arrived, attempt);
            exchanges += reached;
            seconds += reached * (success * took(1) + (1.0 - success) * took(0));
            delivered += reached * success;
            reached *= 1.0 - success;
        }
        Played { carried: delivered * f64::from(self.packet * 8) / seconds, exchange_s: seconds / exchanges }
    }

    /// Simulates exchanges of A-MPDUs under a Block Ack window with fixed draws.
    fn play(&self, mode: &Mode, snr: Decibels) -> Played {
        let config = self.config;
        let bytes = mpdu_len(config.phy_at(mode).mac_header_len(), self.packet);
        let (header, body) = (preamble_success(mode, snr), mpdu_success(mode, snr, bytes));
        let most = self.mpdus(mode);
        if most == 1 {
            return self.single(mode, header * body);
        }
        let window = config.window_at(mode) as usize;
        // Per MPDU in the window, its attempts so far; `None` if no attempt is left to make.
        let mut outstanding: std::collections::VecDeque<Option<u32>> = std::collections::VecDeque::new();
        let mut draws = Draws(0x9e37_79b9_7f4a_7c15);
        let (mut delivered, mut seconds, mut failed_in_a_row) = (0_u64, 0.0, 0);
        let exchanges = LEAST_EXCHANGES.max(MPDUS / most);
        for _ in 0..exchanges {
            let waiting = outstanding.iter().filter(|attempts| attempts.is_some()).count();
            let new = (window - outstanding.len()).min((most as usize).saturating_sub(waiting));
            outstanding.extend(std::iter::repeat_n(Some(0), new));
            let header_arrived = draws.next() < header;
            let (mut sent, mut arrived) = (0, 0);
            for mpdu in outstanding.iter_mut().filter(|attempts| attempts.is_some()).take(most as usize) {
                sent += 1;
                let attempts = mpdu.map_or(0, |attempts| attempts + 1);
                if header_arrived && draws.next() < body {
                    arrived += 1;
                    *mpdu = None;
                } else {
                    *mpdu = (attempts <= config.retry_limit).then_some(attempts);
                }
            }
            while let Some(None) = outstanding.front() {
                outstanding.pop_front();
            }
            delivered += arrived;
            seconds += self.exchange(mode, sent, arrived, failed_in_a_row);
            failed_in_a_row = if arrived == 0 { failed_in_a_row + 1 } else { 0 };
        }
        Played {
            carried: delivered as f64 * f64::from(self.packet * 8) / seconds,
            exchange_s: seconds / f64::from(exchanges),
        }
    }

    /// Most MPDUs with full packets in a PPDU.
    fn mpdus(&self, mode: &Mode) -> u32 {
        let phy = self.config.phy_at(mode);
        let Some(limits) = phy.aggregation else { return 1 };
        let most = self.config.ampdu_mpdus.unwrap_or(limits.mpdus).min(limits.mpdus);
        let subframe = subframe_len(mpdu_len(phy.mac_header_len(), self.packet));
        let response =
            phy.sifs + phy.control_mode(mode).ppdu_duration(block_ack_len(self.config.window_at(mode)));
        let in_txop = self.config.txop_limit.map_or(limits.ppdu, |limit| limit.saturating_sub(response));
        let bytes = mode.bytes_within(in_txop.min(limits.ppdu)).min(limits.bytes.0 as u32);
        (bytes / subframe).clamp(1, most.max(1))
    }

    /// Seconds per exchange of `sent` MPDUs: the exchange with its backoff, and its share of the TCP ACKs for the
    /// `arrived` MPDUs and of their collisions with data.
    fn exchange(&self, mode: &Mode, sent: u32, arrived: u64, failed_before: u32) -> f64 {
        let phy = self.config.phy_at(mode);
        let control = phy.control_mode(mode);
        let header_len = phy.mac_header_len();
        // The access point's parameters, for data and for TCP ACKs alike.
        let edca = self.config.edca(StationId::AP, AccessCategory::BestEffort);
        let cw = |failed: u32| {
            ((u64::from(edca.cw_min) + 1) << failed.min(10)).min(u64::from(edca.cw_max) + 1) - 1
        };
        let aifs = phy.sifs + phy.slot * u64::from(edca.aifs_slots);
        let backoff = |failed: u32| phy.slot * cw(failed) / 2;
        let psdu = |mpdus: u32, packet: u32| match mpdus {
            0 | 1 => mpdu_len(header_len, packet),
            _ => mpdus * subframe_len(mpdu_len(header_len, packet)) + MPDU_DELIMITER_LEN,
        };
        let response = |mpdus: u32| {
            let bytes = if mpdus > 1 { block_ack_len(self.config.window_at(mode)) } else { ACK_LEN };
            phy.sifs + control.ppdu_duration(bytes)
        };
        let on_air = mode.ppdu_duration(psdu(sent, self.packet)) + response(sent);
        let data = (aifs + backoff(failed_before) + on_air).as_secs_f64();
        if arrived == 0 {
            return data;
        }
        let contest = Contest::new(cw(0));
        // At most one ACK per two packets.
        let acks = arrived as f64 / 2.0;
        let answers = (1.0 / contest.exchanges).min(acks);
        let in_one = (acks / answers).ceil() as u32;
        // The backoff slots of the answer pass while data counts down too, so they do not count.
        let answer = aifs + mode.ppdu_duration(psdu(in_one, ACK_PACKET)) + response(in_one);
        // After a collision, data is sent again. An A-MPDU is preceded by a request for the Block Ack that never came.
        let again = match sent {
            0 | 1 => backoff(1).saturating_sub(backoff(0)),
            _ => aifs + backoff(1) + control.ppdu_duration(BLOCK_ACK_REQUEST_LEN) + response(sent),
        };
        data + answers * (answer.as_secs_f64() + contest.collides * (on_air + again).as_secs_f64())
    }
}

/// Contention between a client with something to send and an access point that always has data, both with the same
/// contention window.
///
/// Both draw at the end of the data. In slot s of w, the access point begins to transmit with the probability u(s) = (1
/// + 1/w)^s / w: by its first draw, or by one after an earlier transmission.
struct Contest {
    /// Data exchanges per answer: the sum of u up to the slot of the answer, plus the exchange before.
    exchanges: f64,
    /// Probability that the answer begins in the same slot as data: the mean of u.
    collides: f64,
}

impl Contest {
    fn new(cw: u64) -> Self {
        let slots = (cw + 1) as f64;
        let exchanges = libm::pow(1.0 + 1.0 / slots, slots) - 1.0;
        Self { exchanges, collides: exchanges / slots }
    }
}

struct Played {
    /// Bits per second.
    carried: f64,
    /// Mean duration of an exchange, in seconds.
    exchange_s: f64,
}

/// Mean congestion window in packets if the share `lost` of all packets is lost: that of CUBIC (RFC 9438 section 5.1
/// with C = 0.4 and a decrease to 0.7), or of Reno if it is larger (the response function of RFC 5348 without
/// timeouts).
fn window(lost: f64, round_trip_s: f64) -> f64 {
    let lost = lost.max(1e-15);
    let cubic = 1.054 * libm::pow(round_trip_s / lost, 0.75);
    let reno = libm::sqrt(1.5 / lost);
    cubic.max(reno)
}

/// Pseudo-random numbers from 0 to 1, the same for every mode (xorshift64*).
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
#[path = "ideal_rate_tests.rs"]
mod tests;
