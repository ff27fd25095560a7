//! What an endpoint counts, over all of its shards.

use super::*;

/// 256 kB at 100 kB/s: acknowledgments arrive in three seconds.
#[test]
fn a_transfer_has_a_rate_and_a_round_trip_each_second() {
    let mut net = Net::new();
    net.per_byte[0] = Duration::from_micros(10);
    net.begin(256_000);
    net.run(Duration::from_secs(4));
    let metrics = net.client.metrics();
    let values = |counts: &[u64]| counts.iter().sum::<u64>();
    assert!(values(&metrics.rtt_us.counts) >= 2, "{:?}", metrics.rtt_us);
    let rates = &metrics.rate_bps;
    let near = rates.bounds.partition_point(|bound| *bound < 800_000);
    assert!(rates.counts[near] >= 2, "800 kb/s less headers: {rates:?}");
}

#[test]
fn the_readings_of_shards_add_up() {
    let mut net = Net::new();
    net.begin(10);
    let one = net.server.metrics();
    let mut sum = one.clone();
    sum.socket_buffers = [3, 5];
    let mut other = one.clone();
    other.socket_buffers = [4, 6];
    other.bytes_unread = 7;
    sum.add(&other);
    assert_eq!(sum.connections_open, 2 * one.connections_open);
    assert_eq!(sum.streams_open, 2 * one.streams_open);
    assert_eq!(sum.bytes_in_flight, 2 * one.bytes_in_flight);
    assert_eq!(sum.bytes_unread, one.bytes_unread + 7);
    assert_eq!(sum.bytes_unread_max, 2 * one.bytes_unread_max);
    assert_eq!(sum.counters.connections_made, 2 * one.counters.connections_made);
    assert_eq!(sum.socket_buffers, [7, 11]);
    assert_eq!(sum.bytes_held_max, one.bytes_held_max, "shards share the memory");
    assert!(one.connections_open == 1 && one.bytes_unread_max > 0);
}
