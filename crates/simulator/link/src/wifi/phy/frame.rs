//! Lengths of frames in bytes.

/// MAC header of a non-QoS data frame, three addresses (802.11-2020 clause 9.3.2.1).
pub const MAC_HEADER_LEN: u32 = 24;
/// MAC header of a QoS data frame.
pub const QOS_MAC_HEADER_LEN: u32 = 26;
/// LLC and SNAP headers before the IP packet.
pub const LLC_SNAP_LEN: u32 = 8;
/// Frame check sequence.
pub const FCS_LEN: u32 = 4;
/// Delimiter before each MPDU of an A-MPDU (802.11-2020 clause 9.7.1).
pub const MPDU_DELIMITER_LEN: u32 = 4;
/// Header of an A-MSDU subframe: destination, source, length (802.11-2020 clause 9.3.2.2.2).
pub const AMSDU_SUBFRAME_HEADER_LEN: u32 = 14;
/// ACK frame.
pub const ACK_LEN: u32 = 14;
/// Compressed Block Ack frame with a 64-bit bitmap.
pub const BLOCK_ACK_LEN: u32 = 32;
/// Bytes of a compressed Block Ack frame without its bitmap.
const BLOCK_ACK_HEAD_LEN: u32 = BLOCK_ACK_LEN - 8;

/// Bits of the shortest bitmap that covers a window of `window` sequence numbers: 64; from 802.11ax also 256; from
/// 802.11be also 512 and 1024.
pub const fn bitmap_bits(window: u32) -> u32 {
    match window {
        0..=64 => 64,
        65..=256 => 256,
        257..=512 => 512,
        _ => 1024,
    }
}

/// Compressed Block Ack frame for a window of `window` sequence numbers.
pub const fn block_ack_len(window: u32) -> u32 {
    BLOCK_ACK_HEAD_LEN + bitmap_bits(window) / 8
}

/// Block Ack Request frame.
pub const BLOCK_ACK_REQUEST_LEN: u32 = 24;

/// The response that a trigger requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerKind {
    /// Block Acks.
    MuBar,
    /// Data.
    Basic,
    /// QoS Null frames that report queues (BSRP).
    BufferStatusReport,
    /// A CTS (MU-RTS).
    MuRts,
}

/// Trigger frame without User Info and padding: MAC header with two addresses, Common Info, FCS (802.11ax-2021 clause
/// 9.3.1.22).
const TRIGGER_HEAD_LEN: u32 = 16 + 8 + 4;
/// User Info of a MU-BAR trigger: the common part, BAR Control and BAR Information.
const MU_BAR_USER_LEN: u32 = 5 + 4;

/// User Info of a Basic Trigger: the common part and the preferred access categories.
const BASIC_USER_LEN: u32 = 5 + 1;
/// User Info of a trigger for buffer status reports (BSRP).
const BUFFER_STATUS_USER_LEN: u32 = 5;
/// User Info of a MU-RTS trigger: the common part.
const MU_RTS_USER_LEN: u32 = 5;

/// MU-BAR trigger for `users` with `padding` bytes at its end.
pub const fn mu_bar_len(users: u32, padding: u32) -> u32 {
    trigger_len(TriggerKind::MuBar, users, padding)
}

/// Trigger of kind `kind` for `users` with `padding` bytes at its end.
pub const fn trigger_len(kind: TriggerKind, users: u32, padding: u32) -> u32 {
    let of_user = match kind {
        TriggerKind::MuBar => MU_BAR_USER_LEN,
        TriggerKind::Basic => BASIC_USER_LEN,
        TriggerKind::BufferStatusReport => BUFFER_STATUS_USER_LEN,
        TriggerKind::MuRts => MU_RTS_USER_LEN,
    };
    TRIGGER_HEAD_LEN + of_user * users + padding
}

/// QoS Null frame, which carries no data but reports a queue.
pub const QOS_NULL_LEN: u32 = QOS_MAC_HEADER_LEN + FCS_LEN;

/// Action No Ack frame (802.11-2020 clause 9.3.3.14) of the vendor-specific category, without its content: MAC header,
/// category, OUI, two bytes for a type, FCS.
pub const ACTION_NO_ACK_LEN: u32 = MAC_HEADER_LEN + 1 + 3 + 2 + FCS_LEN;

/// Multi-STA Block Ack (802.11ax-2021 clause 9.3.1.8.6) without its per-station parts: a compressed Block Ack without
/// the starting sequence number.
const MULTI_STA_BLOCK_ACK_HEAD_LEN: u32 = BLOCK_ACK_HEAD_LEN - 2;
/// AID TID Info of one station.
const AID_TID_INFO_LEN: u32 = 2;

/// Multi-STA Block Ack. `windows` has one entry per station: its window if it gets a bitmap, or `None` if all its MPDUs
/// arrived, which needs no bitmap.
pub fn multi_sta_block_ack_len(windows: impl Iterator<Item = Option<u32>>) -> u32 {
    let of_station =
        |window: Option<u32>| AID_TID_INFO_LEN + window.map_or(0, |window| 2 + bitmap_bits(window) / 8);
    MULTI_STA_BLOCK_ACK_HEAD_LEN + windows.map(of_station).sum::<u32>()
}

/// HT Control field of a QoS data frame (802.11-2020 clause 9.2.4.6).
pub const HT_CONTROL_LEN: u32 = 4;
/// Bytes that a Control Wrapper adds to the control frame it carries: Carried Frame Control and HT Control
/// (802.11-2020 clause 9.3.1.10).
pub const CONTROL_WRAPPER_LEN: u32 = 2 + HT_CONTROL_LEN;
/// CF-End frame, which ends a TXOP.
pub const CF_END_LEN: u32 = 20;

/// Request to send.
pub const RTS_LEN: u32 = 20;
/// Clear to send.
pub const CTS_LEN: u32 = 14;

/// Bytes of an MPDU that carries an IP packet of `payload_len` bytes after a header of `mac_header_len`.
pub const fn mpdu_len(mac_header_len: u32, payload_len: u32) -> u32 {
    mac_header_len + LLC_SNAP_LEN + payload_len + FCS_LEN
}

/// Bytes of an A-MSDU subframe that carries an IP packet of `payload_len` bytes: header, LLC/SNAP, packet. All
/// subframes but the last are padded to 4 bytes (802.11-2020 clause 9.3.2.2.2).
pub const fn amsdu_subframe_len(payload_len: u32) -> u32 {
    AMSDU_SUBFRAME_HEADER_LEN + LLC_SNAP_LEN + payload_len
}

/// Bytes of an MPDU as a subframe of an A-MPDU: delimiter, MPDU, padding to 4. The last subframe of an A-MPDU is not
/// padded (802.11-2020 clause 9.7.1); callers subtract that.
pub const fn subframe_len(mpdu_len: u32) -> u32 {
    MPDU_DELIMITER_LEN + mpdu_len.next_multiple_of(4)
}

#[cfg(test)]
mod tests {
    use tacit_packet::units::BitRate;

    use super::super::Mode;
    use super::*;

    /// 802.11ax-2021 clause 9.3.1.22: at 24 Mb/s, with 16 us of padding, for 1 to 16 users.
    #[test]
    fn triggers_grow_with_their_users() {
        let control = Mode::ofdm(BitRate::from_mbps(24)).unwrap();
        let of = |users| {
            let bytes = mu_bar_len(users, 48);
            (bytes, control.ppdu_duration(bytes).as_micros())
        };
        assert_eq!([1, 2, 4, 8, 16].map(of), [(85, 52), (94, 56), (112, 60), (148, 72), (220, 96)]);
        let lasts = |bytes| (bytes, control.ppdu_duration(bytes).as_micros());
        let of = |kind| [1, 2, 4, 8, 16].map(|users| lasts(trigger_len(kind, users, 48)));
        assert_eq!(of(TriggerKind::Basic), [(82, 52), (88, 52), (100, 56), (124, 64), (172, 80)]);
        assert_eq!(of(TriggerKind::BufferStatusReport), [(81, 48), (86, 52), (96, 56), (116, 60), (156, 76)]);
        let of = |window| {
            [1, 2, 4, 8, 16].map(|users| lasts(multi_sta_block_ack_len(std::iter::repeat_n(window, users))))
        };
        assert_eq!(of(Some(64)), [(34, 36), (46, 40), (70, 48), (118, 64), (214, 96)]);
        assert_eq!(of(Some(256)), [(58, 44), (94, 56), (166, 80), (310, 128), (598, 224)]);
        assert_eq!(of(None), [(24, 32), (26, 32), (30, 32), (38, 36), (54, 40)]);
    }

    /// 802.11ax: 24 bytes plus the bitmap; at 24 and 6 Mb/s, 20 us of preamble, 16 + 6 bits, symbols of 4 us.
    #[test]
    fn block_acks_grow_with_the_window() {
        let us = |mbps, bytes| Mode::ofdm(BitRate::from_mbps(mbps)).unwrap().ppdu_duration(bytes).as_micros();
        let of = |window| {
            let bytes = block_ack_len(window);
            (bytes, us(24, bytes), us(6, bytes))
        };
        assert_eq!([of(2), of(64)], [(32, 32, 68); 2]);
        assert_eq!(
            [of(65), of(256), of(512), of(1024)],
            [(56, 40, 100), (56, 40, 100), (88, 52, 144), (152, 72, 228)]
        );
    }

    #[test]
    fn forty_two_full_packets_fill_an_ampdu() {
        let mpdu = mpdu_len(QOS_MAC_HEADER_LEN, 1500);
        assert_eq!(mpdu, 1538);
        assert_eq!(subframe_len(mpdu), 1544);
        assert_eq!(65_535 / subframe_len(mpdu), 42);
    }
}
