//! TCP small queues: how much of a connection's data may be in its own host's queue (Linux `tcp_small_queue_check`).

use tacit_packet::units::{BitRate, Bytes, Duration};

/// Limit for a connection without a pacer (Linux `tcp_limit_output_bytes`, 1 MiB from 4.20 to 6.18).
const LIMIT_OUTPUT: Bytes = Bytes(1 << 20);

/// Most bytes that the stack hands down in one piece: the size limit of one IP packet.
const MAX_PIECE: u64 = 65_535;

/// Least segments in a piece (Linux `tcp_min_tso_segs`).
const MIN_PIECE_SEGMENTS: u64 = 2;

/// Bytes in the queue at which the stack stops handing down data: the data of `time` at `rate` (Linux
/// `sk_pacing_shift`: 2^-10 s, or 2^-7 s if mac80211 requests it), and at least two pieces, each as large as that data
/// in whole segments of `mss` bytes (`tcp_tso_autosize`).
pub(crate) fn limit(time: Duration, rate: BitRate, mss: u64, is_paced: bool) -> Bytes {
    let in_time = rate.amount_in(time);
    let segments = (in_time.0.min(MAX_PIECE) / mss.max(1)).max(MIN_PIECE_SEGMENTS);
    let limit = in_time.max(Bytes(2 * segments * mss));
    if is_paced { limit } else { limit.min(LIMIT_OUTPUT) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;

    #[test]
    fn two_pieces_lie_there_at_least() {
        let at = |mbps, ms| limit(Duration::from_millis(ms), BitRate::from_mbps(mbps), MSS, true);
        // 125 bytes per millisecond: the minimum of four segments.
        assert_eq!(at(1, 1), Bytes(4 * MSS));
        // Two pieces of twelve segments.
        assert_eq!(at(100, 1), Bytes(24 * MSS));
        // A piece is no longer than an IP packet, and 100 ms are more than two pieces.
        assert_eq!(at(1_000, 1), Bytes(2 * 65 * MSS));
        assert_eq!(at(1_000, 100), Bytes(12_500_000));
    }

    #[test]
    fn without_a_pacer_there_is_a_limit_of_bytes() {
        let at = |is_paced| limit(Duration::from_millis(100), BitRate::from_mbps(1_000), MSS, is_paced);
        assert_eq!((at(false), at(true)), (Bytes(1 << 20), Bytes(12_500_000)));
    }
}
