//! Kinds of TCP segments, and counts of segments.

use tacit_packet::counters;

use super::tcp::Tcp;

/// If no MSS was announced, the segment size follows from IPv4 or IPv6 packets of this length.
const ETHERNET_MTU: u32 = 1500;

counters! {
    /// Sums over packets.
    pub(super) struct Counters {
        packets: u64,
        ip_bytes: u64,
        data_packets: u64,
        data_segments: u64,
        data_ip_bytes: u64,
        payload_bytes: u64,
        ack_packets: u64,
        ack_bytes: u64,
        sack_acks: u64,
        timestamp_acks: u64,
        duplicate_acks: u64,
        window_updates: u64,
        keep_alives: u64,
        keep_alive_acks: u64,
        zero_window_probes: u64,
        zero_window_probe_acks: u64,
        /// Bytes acknowledged for the first time by pure ACKs.
        acked_bytes: u64,
    }
}

impl Counters {
    /// Counts one packet. `mss` is the value announced in the handshake, if captured.
    pub fn count(&mut self, tcp: &Tcp, kind: Segment, mss: Option<u16>) {
        self.packets += 1;
        self.ip_bytes += u64::from(tcp.ip_len);
        match kind {
            Segment::Data => {
                let segments = u64::from(tcp.payload_len.div_ceil(segment_payload(tcp, mss)));
                self.data_packets += 1;
                self.data_segments += segments;
                // On the link every segment has headers, although a super-segment contains them once.
                self.data_ip_bytes += u64::from(tcp.ip_len) + (segments - 1) * u64::from(tcp.header_len);
                self.payload_bytes += u64::from(tcp.payload_len);
            }
            Segment::Ack | Segment::DuplicateAck => {
                self.ack_packets += 1;
                self.ack_bytes += u64::from(tcp.ip_len);
                self.sack_acks += u64::from(tcp.options.sack);
                self.timestamp_acks += u64::from(tcp.options.timestamps);
                self.duplicate_acks += u64::from(kind == Segment::DuplicateAck);
            }
            Segment::WindowUpdate => self.window_updates += 1,
            Segment::KeepAlive => self.keep_alives += 1,
            Segment::KeepAliveAck => self.keep_alive_acks += 1,
            Segment::ZeroWindowProbe => self.zero_window_probes += 1,
            Segment::ZeroWindowProbeAck => self.zero_window_probe_acks += 1,
            Segment::Other => {}
        }
    }
}

/// Kind of a segment. The kinds are disjoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Segment {
    /// A segment with payload.
    Data,
    /// A pure ACK.
    Ack,
    /// A pure ACK that repeats number and window, or carries SACK without advancing.
    DuplicateAck,
    /// A pure ACK that only changes the window.
    WindowUpdate,
    /// At most one byte, just below the bytes already sent (RFC 9293 section 3.8.4).
    KeepAlive,
    /// The response to a keep-alive.
    KeepAliveAck,
    /// One byte sent while the window is zero (RFC 9293 section 3.8.6.1).
    ZeroWindowProbe,
    /// The response to a window probe, with the window still zero.
    ZeroWindowProbeAck,
    /// A segment that opens or closes a connection.
    Other,
}

/// Payload of a full segment with this packet's options, in bytes. Based on the handshake's MSS, or otherwise on
/// Ethernet's MTU.
fn segment_payload(tcp: &Tcp, mss: Option<u16>) -> u32 {
    let option_len = tcp.tcp_header_len - 20;
    let payload = match mss {
        Some(mss) => u32::from(mss).saturating_sub(option_len),
        None => ETHERNET_MTU.saturating_sub(tcp.header_len),
    };
    // A bogus MSS must not turn one packet into thousands of segments.
    payload.max(64)
}
