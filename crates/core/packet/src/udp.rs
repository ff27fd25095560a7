//! UDP datagrams: sources, and a sink that counts them.

mod datagram;

pub use datagram::Datagram;

use std::collections::VecDeque;

use crate::endpoint::{Endpoint, Ends};
use crate::units::{BitRate, Bytes, Duration, Instant};
use crate::{Ecn, IpHeader, IpVersion, Packet, Transport};

/// The packet with `datagram` from one end to the other; `sent` packets were sent before.
fn packet(ends: Ends, ip: IpVersion, sent: u64, datagram: Datagram) -> Packet {
    Packet {
        flow: ends.flow,
        source: ends.local,
        destination: ends.remote,
        ip: IpHeader::numbered(ip, Ecn::NotEct, &mut (sent as u16)),
        transport: Transport::Udp(datagram),
    }
}

/// When a [`Sender`] sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// Whenever the driver asks.
    Saturating,
    /// One datagram per interval; `next` is when the next is due.
    Constant { interval: Duration, next: Instant },
    /// Supplied payload bytes that were not sent yet.
    Supplied { bytes: u64 },
}

/// A source of datagrams: either of one size at a given pace, or of supplied bytes in datagrams of at most that size.
#[derive(Clone, Debug)]
pub struct Sender {
    ends: Ends,
    ip: IpVersion,
    payload_len: u32,
    pace: Pace,
    sent: u64,
    /// Most datagrams to send.
    limit: u64,
    /// Datagrams that arrived, according to reports.
    reported: u64,
}

impl Sender {
    /// A source that is as fast as its driver: [`next_packet`](Self::next_packet) always returns another datagram.
    ///
    /// It does not follow [`Endpoint`]'s drain-before-wait law, because draining would never end. Its
    /// [`poll_transmit`](Endpoint::poll_transmit) therefore returns `None`, and the driver calls `next_packet` while
    /// the first queue has room. `payload_len` is raised to [`Datagram::MIN_PAYLOAD`].
    pub fn saturating(ends: Ends, ip: IpVersion, payload_len: u32) -> Self {
        Self::new(ends, ip, payload_len, Pace::Saturating)
    }

    /// A source of constant bit rate from `start` on. `rate` counts whole IP packets. Panics if `rate` is zero.
    pub fn constant(ends: Ends, ip: IpVersion, payload_len: u32, rate: BitRate, start: Instant) -> Self {
        let payload_len = payload_len.max(Datagram::MIN_PAYLOAD);
        let packet = Bytes(u64::from(ip.header_len() + Datagram::HEADER_LEN + payload_len));
        Self::every(ends, ip, payload_len, rate.time_for(packet), start)
    }

    /// A source of one datagram per `interval` (at least a nanosecond) from `start` on.
    pub fn every(ends: Ends, ip: IpVersion, payload_len: u32, interval: Duration, start: Instant) -> Self {
        let interval = interval.max(Duration::from_nanos(1));
        Self::new(ends, ip, payload_len, Pace::Constant { interval, next: start })
    }

    /// A source that sends the bytes that [`supply`](Self::supply) provides, in datagrams of at most `payload_len` bytes.
    pub fn supplied(ends: Ends, ip: IpVersion, payload_len: u32) -> Self {
        Self::new(ends, ip, payload_len, Pace::Supplied { bytes: 0 })
    }

    /// Makes `bytes` available at once. The last datagram has the remainder, but at least [`Datagram::MIN_PAYLOAD`].
    /// Drain the source before the next call, because unsent bytes are combined with the next ones. Sources with a pace
    /// ignore it.
    pub fn supply(&mut self, bytes: u64) {
        if let Pace::Supplied { bytes: waiting } = &mut self.pace {
            *waiting = waiting.saturating_add(bytes);
        }
    }

    fn new(ends: Ends, ip: IpVersion, payload_len: u32, pace: Pace) -> Self {
        Self {
            ends,
            ip,
            payload_len: payload_len.max(Datagram::MIN_PAYLOAD),
            pace,
            sent: 0,
            limit: u64::MAX,
            reported: 0,
        }
    }

    /// Stops after `datagrams`.
    pub fn with_limit(mut self, datagrams: u64) -> Self {
        self.limit = datagrams;
        self
    }

    /// Datagrams sent so far.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Payload bytes of a full datagram.
    pub fn payload_len(&self) -> u32 {
        self.payload_len
    }

    /// Datagrams that arrived, according to the latest report; 0 without reports.
    pub fn reported(&self) -> u64 {
        self.reported
    }

    /// The next datagram at once, at any pace; `None` only at the limit.
    pub fn next_packet(&mut self) -> Option<Packet> {
        self.packet(self.payload_len)
    }

    fn packet(&mut self, payload_len: u32) -> Option<Packet> {
        if self.sent >= self.limit {
            return None;
        }
        let number = self.sent;
        self.sent += 1;
        Some(packet(self.ends, self.ip, number, Datagram { number, payload_len }))
    }
}

impl Endpoint for Sender {
    type Packet = Packet;
    type Event = ();

    /// Handles a report. Counts only grow, so a report that was overtaken changes nothing.
    fn handle_packet(&mut self, _now: Instant, packet: Packet) {
        if let Transport::Udp(datagram) = packet.transport {
            self.reported = self.reported.max(datagram.reported().unwrap_or(0));
        }
    }

    /// Does nothing: due datagrams are sent by [`poll_transmit`](Endpoint::poll_transmit).
    fn handle_timeout(&mut self, _now: Instant) {}

    /// A datagram for every interval that has passed, or of the supplied bytes; `None` from a saturating source.
    fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        match &mut self.pace {
            Pace::Saturating => None,
            Pace::Constant { interval, next } => {
                if *next > now {
                    return None;
                }
                *next += *interval;
                self.next_packet()
            }
            Pace::Supplied { bytes: 0 } => None,
            Pace::Supplied { bytes } => {
                let payload_len = self.payload_len.min(u32::try_from(*bytes).unwrap_or(u32::MAX));
                *bytes -= u64::from(payload_len);
                self.packet(payload_len.max(Datagram::MIN_PAYLOAD))
            }
        }
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }

    /// When the next datagram is due; only sending changes it.
    fn poll_timeout(&self) -> Option<Instant> {
        match self.pace {
            Pace::Constant { next, .. } if self.sent < self.limit => Some(next),
            _ => None,
        }
    }
}

/// Counters of a [`Receiver`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Datagrams received, including duplicates.
    pub datagrams: u64,
    /// Their payload bytes.
    pub bytes: u64,
    /// Datagrams received more than once.
    pub duplicates: u64,
    /// Datagrams received after one with a higher number, without duplicates.
    pub out_of_order: u64,
    /// Datagrams with a number below the highest one that have not arrived so far.
    pub missing: u64,
    /// Runs of consecutive numbers that were skipped when a higher one arrived.
    pub gaps: u64,
    /// Datagrams that arrived too late to distinguish duplicates from originals. They are not in `out_of_order` or
    /// `duplicates`, and remain in `missing`.
    pub too_late: u64,
}

/// A sink that counts lost, duplicated and reordered datagrams by their numbers.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    counts: Received,
    /// The highest received number.
    highest: Option<u64>,
    /// One bit per number, newest word last; word 0 starts at `window_start`.
    window: VecDeque<u64>,
    window_start: u64,
}

/// Words of history: 4096 datagrams, regardless of the numbers that a peer sends.
const WINDOW_WORDS: u64 = 64;

impl Receiver {
    /// A sink without any datagrams.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts one datagram.
    pub fn receive(&mut self, datagram: Datagram) {
        self.counts.datagrams += 1;
        self.counts.bytes += u64::from(datagram.payload_len);
        let number = datagram.number;
        if self.highest.is_none_or(|highest| number > highest) {
            let skipped = self.highest.map_or(number, |highest| number - highest - 1);
            self.counts.missing = self.counts.missing.saturating_add(skipped);
            self.counts.gaps += u64::from(skipped > 0);
            self.highest = Some(number);
            self.slide(number / 64);
            self.mark(number);
        } else if number / 64 < self.window_start {
            self.counts.too_late += 1;
        } else if self.mark(number) {
            self.counts.out_of_order += 1;
            self.counts.missing -= 1;
        } else {
            self.counts.duplicates += 1;
        }
    }

    /// Slides the window so that `word` is its last.
    fn slide(&mut self, word: u64) {
        if word >= self.window_start + self.window.len() as u64 + WINDOW_WORDS {
            self.window.clear();
            self.window_start = word;
        }
        while self.window_start + self.window.len() as u64 <= word {
            self.window.push_back(0);
        }
        while self.window.len() as u64 > WINDOW_WORDS {
            self.window.pop_front();
            self.window_start += 1;
        }
    }

    /// Sets the bit of `number`; returns false if it was already set.
    fn mark(&mut self, number: u64) -> bool {
        let word = &mut self.window[(number / 64 - self.window_start) as usize];
        let bit = 1 << (number % 64);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// Counts so far.
    pub fn counts(&self) -> Received {
        self.counts
    }
}

/// When a [`Reporter`] sends a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportAfter {
    /// This time after the first unreported datagram.
    Time(Duration),
    /// After this number of datagrams; 0 counts as 1.
    Datagrams(u32),
}

/// Reports to a source how many of its datagrams arrived: either once per interval that begins with an unreported
/// arrival, or after a number of datagrams. Reports are cumulative, so the next one replaces a lost one.
#[derive(Clone, Debug)]
pub struct Reporter {
    /// Seen from the sink.
    ends: Ends,
    ip: IpVersion,
    after: ReportAfter,
    due: Option<Instant>,
    arrived: u64,
    /// Datagrams since the last report.
    unreported: u32,
    sent: u64,
}

impl Reporter {
    /// A reporter at the sink, which is `ends.local`.
    pub fn new(ends: Ends, ip: IpVersion, after: ReportAfter) -> Self {
        Self { ends, ip, after, due: None, arrived: 0, unreported: 0, sent: 0 }
    }

    /// Reports sent so far.
    pub fn sent(&self) -> u64 {
        self.sent
    }
}

impl Endpoint for Reporter {
    type Packet = Packet;
    type Event = ();

    /// Counts a datagram.
    fn handle_packet(&mut self, now: Instant, _datagram: Packet) {
        self.arrived += 1;
        self.unreported += 1;
        match self.after {
            ReportAfter::Time(interval) => {
                self.due.get_or_insert(now + interval);
            }
            ReportAfter::Datagrams(count) if self.unreported >= count => {
                self.due.get_or_insert(now);
            }
            ReportAfter::Datagrams(_) => {}
        }
    }

    /// Does nothing: a due report is sent by [`poll_transmit`](Endpoint::poll_transmit).
    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        self.due.take_if(|due| *due <= now)?;
        let sent = self.sent;
        self.sent += 1;
        self.unreported = 0;
        Some(packet(self.ends, self.ip, sent, Datagram::report(self.arrived)))
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{FlowId, HostId};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const ENDS: Ends = Ends { flow: FlowId(3), local: HostId(1), remote: HostId(2) };

    fn receive_all(numbers: &[u64]) -> Received {
        let mut receiver = Receiver::new();
        for number in numbers {
            receiver.receive(Datagram { number: *number, payload_len: 100 });
        }
        receiver.counts()
    }

    #[test]
    fn a_constant_source_keeps_its_rate() {
        // 1500-byte packets at 12 Mb/s: one per millisecond.
        let mut source =
            Sender::constant(ENDS, IpVersion::V4, 1472, BitRate::from_mbps(12), Instant::ZERO).with_limit(5);
        let mut now = Instant::ZERO;
        let mut times = Vec::new();
        while let Some(at) = source.poll_timeout() {
            now = at;
            source.handle_timeout(now);
            while source.poll_transmit(now).is_some() {
                times.push(now.as_nanos() / 1_000_000);
            }
        }
        assert_eq!(times, [0, 1, 2, 3, 4]);
        assert_eq!(now, Instant::from_nanos(4_000_000));
    }

    #[test]
    fn a_saturating_source_is_pulled_not_drained() {
        let mut source = Sender::saturating(ENDS, IpVersion::V4, 1472);
        assert_eq!(source.poll_transmit(Instant::ZERO), None);
        assert_eq!(source.poll_timeout(), None);
        let numbers: Vec<_> = std::iter::from_fn(|| source.next_packet())
            .take(3)
            .map(|packet| match packet.transport {
                Transport::Udp(datagram) => datagram.number,
                _ => unreachable!("a UDP source sends datagrams"),
            })
            .collect();
        assert_eq!(numbers, [0, 1, 2]);
    }

    #[test]
    fn one_report_covers_so_many_datagrams() {
        let mut source = Sender::saturating(ENDS, IpVersion::V4, 1472);
        let back = Ends { local: ENDS.remote, remote: ENDS.local, ..ENDS };
        let mut sink = Reporter::new(back, IpVersion::V4, ReportAfter::Datagrams(4));
        let mut reports = 0;
        for number in 1..=12 {
            sink.handle_packet(Instant::ZERO, source.next_packet().unwrap());
            while let Some(report) = sink.poll_transmit(Instant::ZERO) {
                assert_eq!(number % 4, 0);
                source.handle_packet(Instant::ZERO, report);
                reports += 1;
            }
            assert_eq!((sink.poll_timeout(), source.reported()), (None, reports * 4));
        }
        assert_eq!(reports, 3);
    }

    #[test]
    fn supplied_bytes_go_out_at_once_the_rest_in_a_smaller_datagram() {
        let mut source = Sender::supplied(ENDS, IpVersion::V4, 1000);
        let mut sizes = |bytes| {
            source.supply(bytes);
            let packets = std::iter::from_fn(|| source.poll_transmit(Instant::ZERO));
            let sizes = packets.map(|packet| match packet.transport {
                Transport::Udp(datagram) => (datagram.number, datagram.payload_len),
                _ => unreachable!("a UDP source sends datagrams"),
            });
            sizes.collect::<Vec<_>>()
        };
        assert_eq!(sizes(2500), [(0, 1000), (1, 1000), (2, 500)]);
        assert_eq!(sizes(1001), [(3, 1000), (4, Datagram::MIN_PAYLOAD)]);
        assert_eq!(sizes(0), []);
        assert_eq!(source.poll_timeout(), None);
    }

    #[test]
    fn one_report_covers_an_interval() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut source = Sender::saturating(ENDS, IpVersion::V4, 1472);
        let back = Ends { local: ENDS.remote, remote: ENDS.local, ..ENDS };
        let mut sink = Reporter::new(back, IpVersion::V4, ReportAfter::Time(Duration::from_millis(10)));
        assert_eq!(sink.poll_timeout(), None, "nothing came, nothing to tell");
        for ms in [0, 4, 9] {
            sink.handle_packet(at(ms), source.next_packet().unwrap());
            assert_eq!(sink.poll_transmit(at(ms)), None);
        }
        assert_eq!(sink.poll_timeout(), Some(at(10)));
        let report = sink.poll_transmit(at(10)).unwrap();
        assert!(report.is_feedback());
        source.handle_packet(at(11), report);
        assert_eq!(source.reported(), 3);
        assert_eq!((sink.poll_timeout(), sink.sent()), (None, 1));
    }

    #[test]
    fn loss_reordering_and_duplicates_are_told_apart() {
        let counts = receive_all(&[0, 1, 4, 3, 3, 6, 4]);
        let expected = Received {
            datagrams: 7,
            bytes: 700,
            duplicates: 2,
            out_of_order: 1,
            missing: 2,
            gaps: 2,
            too_late: 0,
        };
        assert_eq!(counts, expected);
    }

    #[test]
    fn absurd_numbers_cost_nothing() {
        let counts = receive_all(&[0, u64::MAX, 5, u64::MAX - 1, u64::MAX]);
        assert_eq!((counts.too_late, counts.out_of_order, counts.duplicates), (1, 1, 1));
    }

    proptest! {
        #[test]
        fn near_order_is_counted_exactly(numbers in prop::collection::vec(0u64..300, 1..200)) {
            let counts = receive_all(&numbers);
            let distinct: BTreeSet<_> = numbers.iter().collect();
            let highest = **distinct.last().expect("at least one arrived");
            prop_assert_eq!(counts.duplicates, (numbers.len() - distinct.len()) as u64);
            prop_assert_eq!(counts.missing, highest + 1 - distinct.len() as u64);
        }
    }
}
