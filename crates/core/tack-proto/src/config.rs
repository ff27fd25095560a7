//! Configuration of a TACK endpoint.

use tacit_ack::{AckClock, StartUp};

use tacit_congestion::Controller;
use tacit_congestion::pacing::{Bursts, Pacer};
use tacit_congestion::rtt::INITIAL_RTO;
use tacit_packet::IpVersion;
use tacit_packet::units::{Bytes, Duration};

/// Length of the lists of blocks in acknowledgments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lists {
    /// TACK-poor: one block of each list.
    Poor,
    /// TACK-rich: as many blocks as the losses on both paths ask for, up to the room (section 5.1, equations 6 to 8).
    Rich,
}

/// When the receiver reports a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossReports {
    /// Reported at once, with an IACK (section 5.1).
    Instant,
    /// It waits for the next TACK.
    WithTack,
}

/// How the round-trip time is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// By the packet of least one-way delay among those that a TACK acknowledges (section 5.2).
    LeastDelay,
    /// By the newest packet that an ACK acknowledges, less the time it waited.
    Newest,
}

/// The end that measures the rate of delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateFrom {
    /// The receiver, which sees packets arrive (section 5.3).
    Receiver,
    /// The sender, which sees ACKs arrive.
    Sender,
}

/// How received data is consumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// At once.
    Immediate,
    /// By calls of [`Connection::read`](super::Connection::read).
    Explicit,
}

/// What a sender leaves to the queue of its own host, in full-sized packets, where a link follows that sends packets in aggregates. A
/// queue that overflows pushes no sender back: it learns of the losses a round trip later, as of those in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnQueue {
    /// Packets that it sends at once, at least: spread over time they would go out in shorter aggregates.
    pub burst: u32,
    /// Packets that lie there, at most.
    pub most: u32,
}

/// Longer A-MPDUs, of 802.11ax, are not filled: stations whose TCP waits for ACKs between its turns would have nearly none of the air
/// (`tack/harm-sharing`). Ours.
const AGGREGATE_MAX: u32 = 128;

impl OwnQueue {
    /// Before a link that sends `aggregate` packets at a time, in a queue of at most `room`: one aggregate that is on the air, and a
    /// third of the next, two packets at least, so that the link never waits for the sender.
    pub fn before(aggregate: u32, room: Option<u32>) -> Self {
        let aggregate = aggregate.min(AGGREGATE_MAX);
        let most = aggregate.saturating_add((aggregate / 3).max(2)).min(room.unwrap_or(u32::MAX)).max(1);
        Self { burst: aggregate.min(most), most }
    }
}

/// Configuration of one end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// IP version.
    pub ip: IpVersion,
    /// Size of IP packets that pass when a path changes and takes those of [`mtu`](Self::mtu) no more; `mtu` where packets never
    /// get shorter.
    pub min_mtu: Bytes,
    /// Size of the largest IP packet that passes at first.
    pub mtu: Bytes,
    /// Size of the largest IP packet that is tried ([`mtu`](Self::mtu) for none; RFC 8899 section 5.1.2, MAX_PLPMTU).
    pub max_mtu: Bytes,
    /// Congestion control and pacing.
    pub congestion: tacit_congestion::Config,
    /// How often this end acknowledges.
    pub ack_clock: AckClock,
    /// How often it does at the start of a connection.
    pub start_up: StartUp,
    /// Lists of holes in a TACK.
    pub lists: Lists,
    /// When it reports losses.
    pub loss_reports: LossReports,
    /// How the round-trip time is measured.
    pub timing: Timing,
    /// How the rate is measured.
    pub rate_from: RateFrom,
    /// Mark data as ECN-capable, and obey marks.
    pub ecn: bool,
    /// Bytes of a connection that may be on their way to the receiver at first; they grow with the path.
    pub receive_buffer: Bytes,
    /// Bound on the growth of [`receive_buffer`](Self::receive_buffer), and on the bytes that streams may borrow beyond
    /// [`min_stream_buffer`](Self::min_stream_buffer) until their readers have taken them.
    pub max_receive_buffer: Bytes,
    /// Bytes of each stream that the receiver always holds for its reader, independent of other streams: no reader that stalls
    /// takes more from others than they have beyond this. No more than [`receive_buffer`](Self::receive_buffer).
    pub min_stream_buffer: Bytes,
    /// Bytes of one stream that it holds at most.
    pub stream_buffer: Bytes,
    /// How received data is consumed.
    pub reader: Reader,
    /// Most bytes in flight, even where the windows allow more.
    pub send_buffer: Bytes,
    /// What may lie in the queue of its own host, if that is limited. The driver of the connection honours
    /// [`Connection::small_queue`](super::Connection::small_queue).
    pub own_queue: Option<OwnQueue>,
    /// Streams of the peer that may be open at once beside stream 0, at least 1.
    pub max_streams: u16,
    /// Packets that tell the receiver of the path are no longer than others. Without, they are ten bytes longer than the MTU:
    /// so it is in the simulator, whose published runs have it so.
    pub fit_sync: bool,
    /// A connection on which nothing arrives for this long has ended.
    pub idle_timeout: Duration,
    /// How often a probe is sent while nothing else is; none where it is `None`.
    pub keep_alive: Option<Duration>,
    /// First wait for an answer to a hello, which doubles each time after the first second, and the longest.
    pub hello_timeout: Duration,
    /// See [`hello_timeout`](Self::hello_timeout).
    pub max_hello_timeout: Duration,
    /// Probe a peer whose data stopped in the middle of a stream, after a few round trips. Otherwise an end that only receives
    /// would not notice that its server was restarted, or sends to an old address.
    pub probe_silence: bool,
}

impl Config {
    /// How this end, as a sender, asks its peer to acknowledge. A sender whose window grows with ACKs needs some in each round
    /// trip; one that paces by reported rates does not.
    pub(super) fn wished_clock(&self) -> AckClock {
        match self.ack_clock {
            AckClock::Tack { beta, every, .. } if !self.paces_by_reports() => {
                AckClock::Tack { beta, every, min_interval: Duration::ZERO }
            }
            clock => clock,
        }
    }

    /// The controller reads the rates that the receiver reports.
    pub(super) fn paces_by_reports(&self) -> bool {
        matches!(self.congestion.algorithm, tacit_congestion::Algorithm::TackBbr(_))
            && self.rate_from == RateFrom::Receiver
    }

    /// When `congestion` lets packets leave, if it is paced.
    pub(super) fn pacer(&self, congestion: &Controller) -> Option<Pacer> {
        let pacer = congestion.pacer(self.congestion.pacing, Bursts::Datagrams)?;
        Some(pacer.at_least(self.own_queue.map_or(0, |queue| queue.burst)))
    }

    /// How long an end that has no answer yet waits for one after `repeated` repetitions: [`hello_timeout`](Self::hello_timeout) during
    /// the first second, twice as long each time after it. A short wait saves time where packets are lost. A station that cannot get
    /// through wastes the air of others with each repetition, so it repeats no more often than a SYN (RFC 6298) after that second.
    pub(super) fn hello_wait(&self, repeated: u32) -> Duration {
        let steady = (INITIAL_RTO.as_nanos() / self.hello_timeout.as_nanos().max(1)).max(1);
        let doubled = (u64::from(repeated) + 1).saturating_sub(steady).min(6);
        self.hello_timeout.saturating_mul(1 << doubled).min(self.max_hello_timeout)
    }

    /// Bytes of UDP payload of a packet of [`min_mtu`](Self::min_mtu).
    pub(super) fn min_payload(&self) -> u32 {
        self.payload_of(self.min_mtu.min(self.mtu))
    }

    /// Bytes of UDP payload in the largest packet that passes at first.
    pub fn payload(&self) -> u32 {
        self.payload_of(self.mtu)
    }

    /// Bytes of UDP payload in the largest packet that is tried.
    pub fn max_payload(&self) -> u32 {
        self.payload_of(self.max_mtu.max(self.mtu))
    }

    /// Bytes of UDP payload in a packet of Ethernet's MTU (RFC 1122 section 2.3.3), which most paths take.
    pub(super) fn usual_payload(&self) -> u32 {
        self.payload_of(Bytes(1500))
    }

    /// Limit of unread data at this end, in bytes: the floors of all streams and the shared pool.
    pub fn max_unread(&self) -> Bytes {
        // Streams of the peer, stream 0, and ours: the peer allows as many.
        let streams = 2 * u64::from(self.max_streams.max(1)) + 1;
        let floor = self.min_stream_buffer.min(self.receive_buffer).min(self.stream_buffer);
        Bytes(self.max_receive_buffer.0.max(self.receive_buffer.0).saturating_add(streams * floor.0))
    }

    fn payload_of(&self, mtu: Bytes) -> u32 {
        let headers = u64::from(self.ip.header_len() + tacit_packet::tack::packet::UDP_HEADER_LEN);
        // Most bytes that an IPv4 packet carries.
        u32::try_from(mtu.0.saturating_sub(headers)).unwrap_or(u32::MAX).min(65_507)
    }

    /// Bytes of data that every packet of [`mtu`](Self::mtu) has room for, at least 1: short packets hold four or eight more.
    pub fn mss(&self) -> u32 {
        tacit_packet::tack::packet::room_for_data(self.payload()).max(1)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            ip: IpVersion::V4,
            min_mtu: Bytes(1500),
            mtu: Bytes(1500),
            max_mtu: Bytes(1500),
            congestion: tacit_congestion::Config {
                algorithm: tacit_congestion::Algorithm::TACK_BBR,
                pacing: tacit_congestion::Pacing::On,
                byte_counting_limit: u32::MAX,
                ..tacit_congestion::Config::default()
            },
            ack_clock: AckClock::USUAL,
            start_up: StartUp::Often,
            lists: Lists::Rich,
            loss_reports: LossReports::Instant,
            timing: Timing::LeastDelay,
            rate_from: RateFrom::Receiver,
            ecn: false,
            receive_buffer: Bytes(256 << 10),
            max_receive_buffer: Bytes(64 << 20),
            min_stream_buffer: Bytes(256 << 10),
            stream_buffer: Bytes(64 << 20),
            reader: Reader::Immediate,
            send_buffer: Bytes(64 << 20),
            own_queue: None,
            max_streams: 256,
            fit_sync: false,
            idle_timeout: Duration::from_secs(60),
            keep_alive: Some(Duration::from_secs(20)),
            hello_timeout: INITIAL_RTO,
            max_hello_timeout: Duration::from_secs(64),
            probe_silence: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_keeps_an_aggregate_and_a_third_of_the_next() {
        let most = |aggregate, room| OwnQueue::before(aggregate, room).most;
        assert_eq!(most(42, None), 56);
        assert_eq!(most(42, Some(1_000)), 56);
        assert_eq!(most(1, None), 3, "one on the air and two behind it");
        assert_eq!(OwnQueue::before(64, Some(64)), OwnQueue { burst: 64, most: 64 });
        assert_eq!(OwnQueue::before(42, Some(4)), OwnQueue { burst: 4, most: 4 });
        assert_eq!(OwnQueue::before(256, None), OwnQueue { burst: 128, most: 170 });
    }
}
