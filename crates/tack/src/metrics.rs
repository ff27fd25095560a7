//! What an endpoint counts, for those who watch it from outside.

use tacit_proto::transport::Stats;
use tacit_proto::units::{BitRate, Duration};

tacit_proto::counters! {
    /// What a hub counted.
    #[non_exhaustive]
    pub struct Counters {
        /// Datagrams that arrived.
        datagrams_received: u64,
        /// Octets of UDP payload in them.
        octets_received: u64,
        /// Datagrams that were handed to the system.
        datagrams_sent: u64,
        /// Octets of UDP payload in them.
        octets_sent: u64,
        /// Datagrams for no connection, or of no form.
        datagrams_strange: u64,
        /// Datagrams for a connection that its peer did not seal.
        datagrams_forged: u64,
        /// Datagrams that came before, or so late that nobody can say.
        datagrams_repeated: u64,
        /// Datagrams for a connection from where its server is not.
        datagrams_misplaced: u64,
        /// Datagrams that the system brought to another socket of the endpoint than the one they were for, and that were handed on.
        datagrams_handed_on: u64,
        /// Clients that were told that their connection is forgotten.
        resets_sent: u64,
        /// Handshakes that clients began, and that were answered.
        handshakes_begun: u64,
        /// Handshakes of clients that ended before the client had proved who it is: those too that only asked for a key.
        handshakes_unfinished: u64,
        /// Clients that were asked to show that they are where they say they are.
        retries_sent: u64,
        /// Handshakes that were not begun, for too many were half open.
        handshakes_refused: u64,
        /// Clients that proved who they are and may not connect.
        clients_refused: u64,
        /// Streams that were given up for want of memory.
        streams_given_up: u64,
        /// Connections that stood, in either role.
        connections_made: u64,
        /// Connections that ended since nothing came from the peer, in each role.
        ended_silent: u64,
        /// Connections that the peer ended with a reason of its own.
        ended_by_peer: u64,
        /// Connections that this end ended.
        ended_here: u64,
        /// Connections that ended for a breach of the protocol, or without a reason.
        ended_broken: u64,
        /// Times that a client was found at another address.
        paths_changed: u64,
        /// Keys that followed on others, in both directions.
        keys_updated: u64,
    }
}

tacit_proto::counters! {
    /// Sums of all connections, those too that are gone.
    #[non_exhaustive]
    pub struct Totals {
        /// Packets sent, of any kind.
        packets_sent: u64,
        /// Packets taken in, of any kind.
        packets_received: u64,
        /// Packets sent with data.
        data_packets_sent: u64,
        /// Packets received with data.
        data_packets_received: u64,
        /// TACKs sent: what a receiver says of all it knows, a few times per round trip.
        tacks_sent: u64,
        /// IACKs sent: what a receiver says of one event, at once.
        iacks_sent: u64,
        /// TACKs and IACKs received.
        acks_received: u64,
        /// Packets held lost.
        packets_lost: u64,
        /// Packets whose contents were sent before.
        packets_retransmitted: u64,
        /// Octets of data sent, those sent again among them.
        octets_sent: u64,
        /// Octets of data that were sent before.
        octets_retransmitted: u64,
        /// Octets handed to readers, in order and once.
        octets_delivered: u64,
        /// Times that nothing was heard for so long that something was sent to ask.
        timeouts: u64,
        /// Round trips in which something was lost.
        loss_episodes: u64,
        /// Streams that were opened, by either end.
        streams_opened: u64,
    }
}

impl Totals {
    /// Adds what the core of one connection counted.
    pub(crate) fn add(&mut self, stats: &Stats) {
        self.packets_sent += stats.packets_sent;
        self.packets_received += stats.packets_received;
        self.data_packets_sent += stats.data_packets_sent;
        self.data_packets_received += stats.data_packets_received;
        self.acks_received += stats.acks_received;
        self.packets_retransmitted += stats.packets_retransmitted;
        self.octets_sent += stats.bytes_sent;
        self.octets_retransmitted += stats.bytes_retransmitted;
        self.octets_delivered += stats.delivered_bytes;
        self.timeouts += stats.timeouts.unwrap_or(0);
        self.loss_episodes += stats.fast_recoveries.unwrap_or(0);
    }
}

/// How often a value was at most how large.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// Upper bounds of the buckets, in order. What lies above all is in one bucket more.
    pub bounds: &'static [u64],
    /// How many values fell in each bucket, one more than there are bounds.
    pub counts: Vec<u64>,
    /// The sum of all values.
    pub sum: u64,
}

impl Histogram {
    fn new(bounds: &'static [u64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len() + 1], sum: 0 }
    }

    fn observe(&mut self, value: u64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        self.counts[bucket] += 1;
        self.sum = self.sum.saturating_add(value);
    }

    /// Adds what another one with these bounds has.
    fn add(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.sum = self.sum.saturating_add(other.sum);
    }
}

/// Microseconds. Ours: from the turn of a local network to that of a satellite, by about 2.5.
const RTT_BOUNDS_US: [u64; 13] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000,
];

/// Bits per second. Ours: decades, and 3 between them.
const RATE_BOUNDS_BPS: [u64; 12] = [
    100_000,
    300_000,
    1_000_000,
    3_000_000,
    10_000_000,
    30_000_000,
    100_000_000,
    300_000_000,
    1_000_000_000,
    3_000_000_000,
    10_000_000_000,
    30_000_000_000,
];

/// What a connection that hears acknowledgments tells once a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub rtt: Option<Duration>,
    /// Octets that the peer acknowledged since the last sample, over that time.
    pub rate: Option<BitRate>,
}

/// Distributions over the seconds of connections.
#[derive(Clone, Debug)]
pub(crate) struct Distributions {
    pub rtt_us: Histogram,
    pub rate_bps: Histogram,
}

impl Default for Distributions {
    fn default() -> Self {
        Self { rtt_us: Histogram::new(&RTT_BOUNDS_US), rate_bps: Histogram::new(&RATE_BOUNDS_BPS) }
    }
}

impl Distributions {
    pub fn add(&mut self, sample: &Sample) {
        if let Some(rtt) = sample.rtt {
            self.rtt_us.observe(rtt.as_micros());
        }
        if let Some(rate) = sample.rate {
            self.rate_bps.observe(rate.as_bps());
        }
    }
}

/// Counts of an endpoint since it was made, and readings as of now.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Metrics {
    /// What came and went, and what was refused.
    pub counters: Counters,
    /// Sums of all connections.
    pub totals: Totals,
    /// Connections that stand. A reading.
    pub connections_open: u64,
    /// Handshakes that are not finished. A reading.
    pub handshakes_open: u64,
    /// Streams that are open in all connections. A reading.
    pub streams_open: u64,
    /// Octets sent and not acknowledged, in all connections. A reading.
    pub octets_in_flight: u64,
    /// Octets that arrived and wait for readers, or for others before them, and how many these may become. Readings.
    pub octets_unread: u64,
    /// See [`octets_unread`](Self::octets_unread): of each connection [`max_unread`](tacit_proto::tack::Config::max_unread).
    pub octets_unread_max: u64,
    /// Octets of the buffers of all streams, and how many these may become. Readings.
    pub octets_held: u64,
    /// See [`octets_held`](Self::octets_held): [`max_memory`](crate::Config::max_memory).
    pub octets_held_max: u64,
    /// Smoothed round-trip time in microseconds: a value for each second in which a connection heard acknowledgments.
    pub rtt_us: Histogram,
    /// Rate in bits per second at which octets were acknowledged, over each of those seconds.
    pub rate_bps: Histogram,
    /// Octets that the system holds for the socket, out and in.
    pub socket_buffers: [usize; 2],
    /// Records that no qlog has, for they came too fast or could not be written.
    pub qlog_records_dropped: u64,
}

impl Metrics {
    /// Adds what another shard of the endpoint counted. They share memory, and what writes records.
    pub(crate) fn add(&mut self, other: &Self) {
        self.counters = self.counters.plus(&other.counters);
        self.totals = self.totals.plus(&other.totals);
        self.connections_open += other.connections_open;
        self.handshakes_open += other.handshakes_open;
        self.streams_open += other.streams_open;
        self.octets_in_flight += other.octets_in_flight;
        self.octets_unread += other.octets_unread;
        self.octets_unread_max += other.octets_unread_max;
        self.rtt_us.add(&other.rtt_us);
        self.rate_bps.add(&other.rate_bps);
        for (octets, more) in self.socket_buffers.iter_mut().zip(other.socket_buffers) {
            *octets += more;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_in_the_first_bucket_that_is_not_below_it() {
        let mut histogram = Histogram::new(&[10, 20]);
        for value in [0, 10, 11, 20, 21, u64::MAX] {
            histogram.observe(value);
        }
        assert_eq!((histogram.counts, histogram.sum), (vec![2, 2, 2], u64::MAX));
    }
}
