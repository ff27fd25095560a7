//! Failures that users of other programs reported: docs/validation/reports.md.

use super::*;

/// s2n-quic#360: an interop case that lost the client's second to seventh datagram. Of their server, too little had come to be allowed more.
#[test]
fn a_handshake_survives_the_loss_of_the_clients_second_to_seventh_datagram() {
    let mut net = Net::new();
    let client = net.connect();
    let mut number = 0;
    for _ in 0..2_000 {
        net.drain();
        // Each is here once: it arrives within one round.
        let launched = std::mem::take(&mut net.in_flight).into_sorted_vec().into_iter().rev();
        let arrive = launched.filter(|Reverse((_, _, from, ..))| {
            number += u32::from(*from == client_address());
            *from != client_address() || !(2..=7).contains(&number)
        });
        net.in_flight = arrive.collect();
        net.run(net.one_way);
    }
    assert_eq!(net.client.get(client).unwrap().alive(), Ok(()));
    assert!(net.client.get(client).unwrap().is_connected());
    assert!(net.server.accept().is_some());
}

/// quic-go#1597: a connection whose handshake had a Retry ended after 80 s of any traffic.
#[test]
fn a_connection_that_began_with_a_retry_stays() {
    let mut net = Net::new();
    net.longest = crate::handshake::SHORT_INITIATION_LEN;
    let client = net.connect();
    net.run(Duration::from_secs(2));
    assert!(net.seen.iter().any(|(.., bytes)| bytes[0] == kind::RETRY), "the test wants one");
    net.run(Duration::from_secs(600));
    let session = net.client.session(client).unwrap();
    let stream = session.open().unwrap().unwrap();
    assert_eq!(session.write(stream, b"still there"), Ok(Some(11)));
    session.end_stream(stream).unwrap();
    net.run(Duration::from_secs(1));
    assert_eq!(net.read(), (b"still there".to_vec(), true));
}

/// quic-go#1275: one end of a path that was cut noticed it by its keep-alives, and the other waited for ever.
#[test]
fn both_ends_of_a_path_that_was_cut_notice_it() {
    let mut net = Net::new();
    let client = net.connect();
    net.run(Duration::from_secs(1));
    let server = net.server.accept().unwrap();
    net.lose = |_| true;
    net.run(Config::default().transport.idle_timeout + Duration::from_secs(1));
    assert_eq!(net.client.get(client).unwrap().alive(), Err(ConnectionError::TimedOut));
    assert_eq!(net.server.get(server).unwrap().alive(), Err(ConnectionError::TimedOut));
}

/// Share of the client's long datagrams, in percent of those with as much data as fits the path at first.
fn full_share(net: &Net) -> usize {
    let lens = net.seen.iter().filter(|(from, ..)| *from == client_address()).map(|(.., bytes)| bytes.len());
    let lens: Vec<_> = lens.filter(|len| *len > 1_000).collect();
    lens.iter().filter(|len| **len > 1_400).count() * 100 / lens.len().max(1)
}

/// A client that has sent for two seconds, and whose packets are as long as the path takes.
fn settled() -> (Net, Bulk) {
    let mut net = Net::new();
    net.per_byte[0] = Duration::from_nanos(400);
    let mut bulk = Bulk::begin(&mut net);
    for _ in 0..200 {
        bulk.step(&mut net);
    }
    bulk.step_seen(&mut net);
    assert!(full_share(&net) > 90, "{}", full_share(&net));
    (net, bulk)
}

fn assert_no_packets_get_short(lose: fn(u64) -> bool) {
    let (mut net, mut bulk) = settled();
    net.lose = lose;
    for step in 0..300 {
        bulk.step_seen(&mut net);
        let share = full_share(&net);
        assert!(net.seen.len() < 10 || share > 80, "step {step}: {share} %");
    }
}

/// quinn#2212, quinn#2791: usual losses passed for a path that takes long packets no more, and packets stayed short.
#[test]
fn random_losses_shorten_no_packets() {
    assert_no_packets_get_short(|order| scattered(order) % 100 < 13);
}

/// Three probes of the size in use vanished by chance in 13 of 100 runs, and so did those of the search that followed in 5.
#[test]
fn losses_of_one_half_shorten_no_packets() {
    assert_no_packets_get_short(|order| scattered(order).is_multiple_of(2));
}

/// s2n-quic#1680: all packets of a round trip were lost, and packets stayed short for a minute.
#[test]
fn packets_are_as_long_as_before_a_few_round_trips_after_all_were_lost() {
    for outage in [1, 3, 30, 100, 300] {
        let (mut net, mut bulk) = settled();
        net.lose = |_| true;
        (0..outage).for_each(|_| bulk.step(&mut net));
        net.lose = |_| false;
        let read = bulk.read;
        // The probe timeout has doubled up to the length of the outage.
        let again = (0..outage + 30).find(|_| {
            bulk.step(&mut net);
            bulk.read > read
        });
        assert!(again.is_some(), "{outage}");
        (0..20).for_each(|_| bulk.step(&mut net));
        bulk.step_seen(&mut net);
        assert!(full_share(&net) > 90, "{outage}: {} %", full_share(&net));
    }
}

/// s2n-quic#2558: a hundred datagrams that were lost at once passed for such a path.
#[test]
fn a_spike_of_datagrams_that_is_lost_shortens_no_packets() {
    let (mut net, mut bulk) = settled();
    for _ in 0..10 {
        net.lose = |_| true;
        for _ in 0..100 {
            net.client.session(bulk.client).unwrap().send_datagram(vec![0; 1_300].into()).unwrap();
        }
        net.drain();
        net.lose = |_| false;
        (0..20).for_each(|_| bulk.step(&mut net));
        bulk.step_seen(&mut net);
        assert!(full_share(&net) > 80, "{}", full_share(&net));
    }
}
