//! Measures the traffic through a live hop.

use hdrhistogram::Histogram;
use rustc_hash::FxHashMap;
use tacit_packet::FlowKey;
use tacit_packet::tcp::Flags;
use tacit_packet::units::{Duration, Instant};

use crate::datagram::{Content, Datagram, Summary};

/// Maximum number of connections that are tracked. Further ones count only in the totals.
const MAX_FLOWS: usize = 16_384;
/// Maximum number of seconds with individual results: one day.
const MAX_INTERVALS: usize = 86_400;
/// Maximum delay that the histogram can represent.
const DELAY_MAX: Duration = Duration::from_secs(100);
/// Length of an interval.
const INTERVAL: Duration = Duration::from_secs(1);

/// A direction of the hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the command's side.
    Down,
    /// From the command's side.
    Up,
}

impl Direction {
    /// The opposite direction.
    pub const fn reverse(self) -> Self {
        match self {
            Self::Down => Self::Up,
            Self::Up => Self::Down,
        }
    }
}

/// Totals of one direction since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets that entered the hop.
    pub packets_in: u64,
    /// Packets that left the hop.
    pub packets_out: u64,
    /// Payload bytes of TCP and UDP that entered the hop, including retransmissions.
    pub payload_in: u64,
    /// Payload bytes received by the far end: acknowledged by its TCP, or delivered UDP.
    pub received: u64,
    /// TCP segments with data that left the hop.
    pub data_segments_out: u64,
    /// TCP segments that entered the hop without any new byte.
    pub retransmitted_segments: u64,
    /// Pure TCP ACKs that entered the hop in this direction, sent by receivers of *the other* direction.
    pub pure_acks_in: u64,
    /// When the first payload entered the hop.
    pub first: Option<Instant>,
    /// When the last payload left the hop.
    pub last: Option<Instant>,
}

impl Totals {
    /// Time from the first payload that entered to the last that left.
    pub fn active(&self) -> Duration {
        match (self.first, self.last) {
            (Some(first), Some(last)) => last.saturating_since(first),
            _ => Duration::ZERO,
        }
    }

    /// Payload bits per second during this time; zero without payload.
    pub fn goodput_bps(&self) -> f64 {
        let seconds = self.active().as_secs_f64();
        if seconds > 0.0 { self.received as f64 * 8.0 / seconds } else { 0.0 }
    }
}

/// One second in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Bytes received in this second: downlink, uplink.
    pub received: [u64; 2],
}

/// State of one direction of a TCP connection.
#[derive(Debug, Default)]
struct Flow {
    /// Sequence number after the last byte that entered the hop.
    sent_to: Option<u32>,
    /// Sequence number after the last acknowledged byte.
    acknowledged_to: Option<u32>,
    /// The sequence number of a FIN, which must not count as a byte.
    fin: Option<u32>,
}

/// Counts packets that enter and leave the hop.
#[derive(Debug)]
pub struct Meter {
    totals: [Totals; 2],
    delays_us: [Histogram<u64>; 2],
    flows: FxHashMap<FlowKey, Flow>,
    intervals: Vec<Interval>,
    /// Totals at the end of the last interval.
    before: [u64; 2],
}

impl Default for Meter {
    fn default() -> Self {
        // Valid bounds: 1 us to 100 s with two significant digits.
        let delays_us =
            Histogram::new_with_bounds(1, DELAY_MAX.as_micros(), 2).expect("the bounds are constants");
        Self {
            totals: Default::default(),
            delays_us: [delays_us.clone(), delays_us],
            flows: FxHashMap::default(),
            intervals: Vec::new(),
            before: [0; 2],
        }
    }
}

impl Meter {
    /// Delays of packets in a direction, in microseconds of the medium's time. Packets reconstructed in the hop are not
    /// included, such as ACKs carried on link-layer ACKs.
    pub fn delays_us(&self, direction: Direction) -> &Histogram<u64> {
        &self.delays_us[direction as usize]
    }

    /// Totals of a direction.
    pub fn totals(&self, direction: Direction) -> &Totals {
        &self.totals[direction as usize]
    }

    /// The completed seconds so far.
    pub fn intervals(&self) -> &[Interval] {
        &self.intervals
    }

    /// Pure ACKs per data segment that left the hop in `direction`; `None` without data.
    pub fn ack_ratio(&self, direction: Direction) -> Option<f64> {
        let segments = self.totals(direction).data_segments_out;
        let acks = self.totals(direction.reverse()).pure_acks_in;
        (segments > 0).then(|| acks as f64 / segments as f64)
    }

    /// Advances the medium's time to `now`, and completes intervals that have ended.
    pub fn advance(&mut self, now: Instant) {
        while self.intervals.len() < MAX_INTERVALS {
            let end = Instant::ZERO + INTERVAL.saturating_mul(self.intervals.len() as u64 + 1);
            if now < end {
                return;
            }
            let total = [self.totals[0].received, self.totals[1].received];
            let received = [total[0] - self.before[0], total[1] - self.before[1]];
            self.before = total;
            self.intervals.push(Interval { received });
        }
    }

    /// Records that `packet` enters the hop.
    pub fn packet_in(&mut self, now: Instant, direction: Direction, packet: &Datagram) {
        let summary = packet.summary();
        let totals = &mut self.totals[direction as usize];
        totals.packets_in += 1;
        let payload_len = payload_len(summary);
        totals.payload_in += u64::from(payload_len);
        if payload_len > 0 {
            totals.first.get_or_insert(now);
        }
        let Content::Tcp(tcp) = &summary.content else { return };
        totals.pure_acks_in += u64::from(tcp.is_pure_ack());
        if let Some(flow) = self.flow(summary.flow) {
            let end = tcp.seq.wrapping_add(payload_len);
            if tcp.flags.contains(Flags::FIN) {
                flow.fin = Some(end);
            }
            let again = flow.sent_to.is_some_and(|sent_to| !is_after(end, sent_to));
            if !again {
                flow.sent_to = Some(end);
            }
            if again && payload_len > 0 {
                self.totals[direction as usize].retransmitted_segments += 1;
            }
        }
        if let Some(ack) = tcp.ack {
            self.acknowledge(direction.reverse(), summary.reverse, ack);
        }
    }

    /// Records that `packet` leaves the hop.
    pub fn packet_out(&mut self, now: Instant, direction: Direction, packet: &Datagram) {
        let summary = packet.summary();
        let totals = &mut self.totals[direction as usize];
        totals.packets_out += 1;
        if let Some(entry) = packet.entry() {
            self.delays_us[direction as usize].saturating_record(now.saturating_since(entry.at).as_micros());
        }
        let payload_len = payload_len(summary);
        if payload_len > 0 {
            totals.last = Some(now);
        }
        match &summary.content {
            Content::Tcp(_) => totals.data_segments_out += u64::from(payload_len > 0),
            Content::Udp { .. } => totals.received += u64::from(payload_len),
            Content::Other => {}
        }
    }

    /// Records that the receiver of `flow`, whose data goes in `direction`, has everything before `ack`.
    fn acknowledge(&mut self, direction: Direction, flow: FlowKey, ack: u32) {
        let Some(flow) = self.flow(flow) else { return };
        let ack =
            if flow.fin.is_some_and(|fin| ack == fin.wrapping_add(1)) { ack.wrapping_sub(1) } else { ack };
        let Some(before) = flow.acknowledged_to else {
            // The ACK of an existing connection, or of the SYN: counting starts here.
            flow.acknowledged_to = Some(ack);
            return;
        };
        // An ACK of data that did not pass this hop must not count.
        if is_after(ack, before) && flow.sent_to.is_some_and(|sent_to| !is_after(ack, sent_to)) {
            flow.acknowledged_to = Some(ack);
            self.totals[direction as usize].received += u64::from(ack.wrapping_sub(before));
        }
    }

    fn flow(&mut self, key: FlowKey) -> Option<&mut Flow> {
        if self.flows.len() >= MAX_FLOWS && !self.flows.contains_key(&key) {
            return None;
        }
        Some(self.flows.entry(key).or_default())
    }
}

fn payload_len(summary: &Summary) -> u32 {
    match &summary.content {
        Content::Tcp(tcp) => tcp.payload_len,
        Content::Udp { payload_len } => *payload_len,
        Content::Other => 0,
    }
}

/// Comparison of sequence numbers (RFC 9293 section 3.4).
fn is_after(one: u32, other: u32) -> bool {
    (one.wrapping_sub(other) as i32) > 0
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;
    use tacit_packet::units::HostId;

    use super::*;

    const SERVER: ([u8; 4], u16) = ([198, 18, 0, 1], 80);
    const CLIENT: ([u8; 4], u16) = ([198, 18, 0, 2], 40_000);

    fn segment(from: ([u8; 4], u16), to: ([u8; 4], u16), seq: u32, ack: u32, payload: &[u8]) -> Datagram {
        let mut bytes = Vec::new();
        PacketBuilder::ipv4(from.0, to.0, 64)
            .tcp(from.1, to.1, seq, 500)
            .ack(ack)
            .write(&mut bytes, payload)
            .unwrap();
        Datagram::new(&bytes, HostId(0))
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// A download of `segments` of 1000 bytes across the wrap of sequence numbers. Each segment is acknowledged.
    fn download(segments: u32) -> Meter {
        let mut meter = Meter::default();
        let first = u32::MAX - 1_500;
        meter.packet_in(at(0), Direction::Up, &segment(CLIENT, SERVER, 1, first, b""));
        for number in 0..segments {
            let seq = first.wrapping_add(1_000 * number);
            let data = segment(SERVER, CLIENT, seq, 1, &[0; 1_000]);
            meter.packet_in(at(10 * u64::from(number)), Direction::Down, &data);
            meter.packet_out(at(10 * u64::from(number) + 5), Direction::Down, &data);
            let ack = segment(CLIENT, SERVER, 1, seq.wrapping_add(1_000), b"");
            meter.packet_in(at(10 * u64::from(number) + 5), Direction::Up, &ack);
        }
        meter
    }

    #[test]
    fn acknowledged_bytes_count() {
        let meter = download(5);
        let down = meter.totals(Direction::Down);
        assert_eq!((down.received, down.data_segments_out, down.retransmitted_segments), (5_000, 5, 0));
        assert_eq!(down.active(), Duration::from_millis(45));
        assert_eq!(meter.totals(Direction::Up).received, 0);
        assert_eq!(meter.ack_ratio(Direction::Down), Some(6.0 / 5.0));
        assert_eq!(meter.ack_ratio(Direction::Up), None);
    }

    #[test]
    fn an_ack_of_what_was_never_sent_counts_nothing() {
        let mut meter = download(2);
        let ahead = (u32::MAX - 1_500).wrapping_add(1_000_000);
        meter.packet_in(at(50), Direction::Up, &segment(CLIENT, SERVER, 1, ahead, b""));
        assert_eq!(meter.totals(Direction::Down).received, 2_000);
    }

    #[test]
    fn a_segment_sent_again_is_one() {
        let mut meter = download(2);
        let again = segment(SERVER, CLIENT, u32::MAX - 1_500, 1, &[0; 1_000]);
        meter.packet_in(at(50), Direction::Down, &again);
        assert_eq!(meter.totals(Direction::Down).retransmitted_segments, 1);
        assert_eq!(meter.totals(Direction::Down).received, 2_000);
    }

    #[test]
    fn intervals_add_up() {
        let mut meter = download(5);
        meter.advance(at(2_500));
        assert_eq!(meter.intervals().len(), 2);
        assert_eq!(meter.intervals()[0].received, [5_000, 0]);
        assert_eq!(meter.intervals()[1].received, [0, 0]);
    }
}
