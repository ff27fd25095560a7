//! Counters and readings of an endpoint, for monitoring.

use tacit_packet::Stats;
use tacit_packet::units::{BitRate, Duration};

tacit_packet::counters! {
    /// Counters of an endpoint.
    #[non_exhaustive]
    pub struct Counters {
        /// Datagrams that arrived.
        datagrams_received: u64,
        /// Bytes of UDP payload in them.
        bytes_received: u64,
        /// Datagrams sent.
        datagrams_sent: u64,
        /// Bytes of UDP payload in them.
        bytes_sent: u64,
        /// Datagrams that belong to no connection, or are malformed.
        datagrams_strange: u64,
        /// Datagrams with a wrong authentication tag.
        datagrams_forged: u64,
        /// Replayed datagrams, including those too old to check.
        datagrams_repeated: u64,
        /// Datagrams from another address than the server's.
        datagrams_misplaced: u64,
        /// Datagrams that arrived on another shard and were passed on.
        datagrams_handed_on: u64,
        /// Resets sent for unknown connections.
        resets_sent: u64,
        /// Handshakes of clients that were answered.
        handshakes_begun: u64,
        /// Handshakes that ended before the client had proved its key, including requests for the server's key.
        handshakes_unfinished: u64,
        /// Retries sent, which validate a client's address.
        retries_sent: u64,
        /// Handshakes refused because too many were half open.
        handshakes_refused: u64,
        /// Clients refused after they had proved their key.
        clients_refused: u64,
        /// Streams reset for lack of memory.
        streams_given_up: u64,
        /// Connections established, in either role.
        connections_made: u64,
        /// Connections that timed out.
        ended_silent: u64,
        /// Connections closed by the peer's application.
        ended_by_peer: u64,
        /// Connections closed by this end.
        ended_here: u64,
        /// Connections that ended by a protocol violation, or without a reason.
        ended_broken: u64,
        /// Address changes of clients.
        paths_changed: u64,
        /// Key updates, in both directions.
        keys_updated: u64,
    }
}

tacit_packet::counters! {
    /// Sums over all connections, ended ones included.
    #[non_exhaustive]
    pub struct Totals {
        /// Packets sent, of any kind.
        packets_sent: u64,
        /// Packets received, of any kind.
        packets_received: u64,
        /// Packets sent with data.
        data_packets_sent: u64,
        /// Packets received with data.
        data_packets_received: u64,
        /// TACKs sent: periodic ACKs.
        tacks_sent: u64,
        /// IACKs sent: immediate ACKs for one event.
        iacks_sent: u64,
        /// TACKs and IACKs received.
        acks_received: u64,
        /// Packets declared lost.
        packets_lost: u64,
        /// Packets that retransmit data.
        packets_retransmitted: u64,
        /// Bytes of data sent, retransmissions included.
        bytes_sent: u64,
        /// Bytes of data retransmitted.
        bytes_retransmitted: u64,
        /// Bytes delivered to readers.
        bytes_delivered: u64,
        /// Probe timeouts.
        timeouts: u64,
        /// Round trips with losses.
        loss_episodes: u64,
        /// Streams that were opened, by either end.
        streams_opened: u64,
    }
}

impl Totals {
    /// Adds the counters of the core of one connection.
    pub(crate) fn add(&mut self, stats: &Stats) {
        self.packets_sent += stats.packets_sent;
        self.packets_received += stats.packets_received;
        self.data_packets_sent += stats.data_packets_sent;
        self.data_packets_received += stats.data_packets_received;
        self.acks_received += stats.acks_received;
        self.packets_retransmitted += stats.packets_retransmitted;
        self.bytes_sent += stats.bytes_sent;
        self.bytes_retransmitted += stats.bytes_retransmitted;
        self.bytes_delivered += stats.delivered_bytes;
        self.timeouts += stats.timeouts.unwrap_or(0);
        self.loss_episodes += stats.fast_recoveries.unwrap_or(0);
    }
}

/// A histogram with fixed buckets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// Upper bounds of the buckets, ascending. An additional bucket has larger values.
    pub bounds: &'static [u64],
    /// Number of values per bucket, one more than `bounds`.
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

    /// Adds another histogram with these bounds.
    fn add(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.sum = self.sum.saturating_add(other.sum);
    }
}

/// In microseconds. Ours: from round-trip times of a local network to those of a satellite, in steps of about 2.5.
const RTT_BOUNDS_US: [u64; 13] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000,
];

/// In bits per second. Ours: powers of ten, and three times those.
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

/// Readings that a connection gives once per second while it receives acknowledgments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub rtt: Option<Duration>,
    /// Rate of the bytes that the peer has acknowledged since the last sample.
    pub rate: Option<BitRate>,
}

/// Distributions of the samples of all connections.
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

/// Counters of an endpoint since its start, and current readings.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Metrics {
    /// Datagrams, handshakes and connections.
    pub counters: Counters,
    /// Sums of all connections.
    pub totals: Totals,
    /// Open connections. A reading.
    pub connections_open: u64,
    /// Half-open handshakes. A reading.
    pub handshakes_open: u64,
    /// Open streams of all connections. A reading.
    pub streams_open: u64,
    /// Bytes in flight, of all connections. A reading.
    pub bytes_in_flight: u64,
    /// Received bytes that wait for readers or for earlier data. A reading.
    pub bytes_unread: u64,
    /// Limit of [`bytes_unread`](Self::bytes_unread) for the open connections: the receive window of each, plus the
    /// reserved window of each of its streams.
    pub bytes_unread_max: u64,
    /// Capacity of the buffers of all streams, in bytes. A reading.
    pub bytes_held: u64,
    /// Limit of [`bytes_held`](Self::bytes_held): [`max_memory`](crate::Config::max_memory).
    pub bytes_held_max: u64,
    /// Smoothed round-trip time in microseconds: one value for each second in which a connection received
    /// acknowledgments.
    pub rtt_us: Histogram,
    /// Rate of acknowledged bytes in bits per second, over each of those seconds.
    pub rate_bps: Histogram,
    /// Socket buffers for sending and receiving, in bytes.
    pub socket_buffers: [usize; 2],
    /// qlog records dropped, because they came too fast or could not be written.
    pub qlog_records_dropped: u64,
}

impl Metrics {
    /// Adds the metrics of another shard of the endpoint. Shards share the memory and the qlog writer.
    pub(crate) fn add(&mut self, other: &Self) {
        self.counters = self.counters.plus(&other.counters);
        self.totals = self.totals.plus(&other.totals);
        self.connections_open += other.connections_open;
        self.handshakes_open += other.handshakes_open;
        self.streams_open += other.streams_open;
        self.bytes_in_flight += other.bytes_in_flight;
        self.bytes_unread += other.bytes_unread;
        self.bytes_unread_max += other.bytes_unread_max;
        self.rtt_us.add(&other.rtt_us);
        self.rate_bps.add(&other.rate_bps);
        for (bytes, more) in self.socket_buffers.iter_mut().zip(other.socket_buffers) {
            *bytes += more;
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
