//! Needs of live transports beside streams: datagrams, paths that change, packets that must be shorter, reasons for an end.

use tacit_packet::Endpoint;
use tacit_packet::endpoint::Event;
use tacit_packet::tack::packet::{Body, Control, Reason, StreamId};
use tacit_packet::units::{Bytes, Duration, Instant};
use tacit_tack_proto::{Config, Reader, TooLong};

use crate::driver::Net;
use crate::ms;
use crate::script::{Script, at_ms};

fn config() -> Config {
    Config { fit_sync: true, ..Config::default() }
}

/// Two ends that are established, on a path of 20 ms.
fn established(config: Config) -> Net {
    let mut net = Net::new(config);
    net.run(at_ms(100), |_, _, _| {});
    assert_eq!(net.ends[1].events, [Event::Connected]);
    net
}

fn send(net: &mut Net, content: Vec<u8>) -> u64 {
    let end = &mut net.ends[0];
    let number = end.connection.send_datagram(content.len() as u32).expect("it is short enough");
    end.datagrams.insert(number, content);
    number
}

#[test]
fn datagrams_arrive_as_they_were_once_or_not_at_all() {
    let mut net = established(config());
    (net.lose_one_in, net.double_one_in) = (4, 3);
    for number in 0..400u64 {
        assert_eq!(send(&mut net, vec![number as u8; 1 + number as usize]), number);
        net.run(at_ms(100 + number), |_, _, _| {});
    }
    net.run(at_ms(5_000), |_, _, _| {});
    let arrived = &net.ends[1].datagrams_in;
    assert!((250..350).contains(&arrived.len()), "{}", arrived.len());
    assert!(arrived.windows(2).all(|pair| pair[0].len() < pair[1].len()), "each once, in order");
    assert!(arrived.iter().all(|content| content.iter().all(|byte| *byte == (content.len() - 1) as u8)));
    let stats = net.ends[0].connection.stats();
    assert_eq!((stats.data_packets_sent, stats.packets_retransmitted, stats.bytes_in_flight), (400, 0, 0));
    assert!(stats.fast_recoveries > Some(0), "their losses count");
}

#[test]
fn of_datagrams_that_wait_the_oldest_is_dropped() {
    let mut script = Script::established(config());
    let most = script.end.max_datagram();
    assert_eq!(most, 1472 - 9 - 4 - 12 - 16);
    assert_eq!(script.end.send_datagram(most + 1), Err(TooLong(most + 1, most)));
    for number in 0..100 {
        assert_eq!(script.end.send_datagram(most), Ok(number));
    }
    assert_eq!(script.end.oldest_datagram(), 100 - 64);
    let sent = script.end.poll_packet(at_ms(10)).expect("it may leave");
    assert_eq!((sent.start, sent.packet.len()), (36, 1472), "the first tells the receiver of the path");
    // The window holds the others.
    while script.end.poll_packet(at_ms(10)).is_some() {}
    assert!(script.end.oldest_datagram() < 50);
}

#[test]
fn streams_and_datagrams_take_turns() {
    let mut script = Script::established(config());
    script.end.write(100_000);
    for _ in 0..8 {
        script.end.send_datagram(1_000).expect("it is short enough");
    }
    let bodies = script.takes(at_ms(10));
    let kinds: Vec<_> = bodies.iter().map(|body| matches!(body, Body::Datagram(_))).collect();
    assert!(kinds.len() >= 4 && kinds.windows(2).all(|pair| pair[0] != pair[1]), "{kinds:?}");
}

#[test]
fn path_challenges_are_the_drivers_to_send_and_to_answer() {
    let mut net = established(config());
    let now = net.now;
    for (room, len) in [(5_000, 1200), (300, 300)] {
        let sent = net.ends[0].connection.path_challenge(now, *b"tokenone", room).expect("established");
        assert_eq!(sent.packet.len(), len);
        let bytes = net.ends[0].seal(&sent);
        net.ends[1].open(now, bytes);
        let token = net.ends[1].challenges.pop().expect("it was asked");
        let answer = net.ends[1].connection.path_response(now, token, room).expect("established");
        let bytes = net.ends[1].seal(&answer);
        net.ends[0].open(now, bytes);
        assert_eq!(net.ends[0].responses.pop(), Some(*b"tokenone"));
    }
    assert!(Net::new(config()).ends[0].connection.path_challenge(now, [0; 8], 1200).is_none());
}

/// RFC 9000 section 9.4: nothing of the old path counts, and nothing is lost for it.
#[test]
fn another_path_is_measured_anew() {
    let mut net = established(Config { mtu: Bytes(1280), max_mtu: Bytes(1500), ..config() });
    net.ends[0].write(StreamId(0), 4_000_000);
    net.run(at_ms(190), |_, _, _| {});
    let before = net.ends[0].connection.stats();
    assert_eq!(net.ends[0].connection.rtt_min(), Some(ms(20)));
    assert!(before.bytes_in_flight > 0, "{before:?}");
    assert_eq!(net.ends[0].connection.max_datagram(), 1472 - 41);
    let now = net.now;
    for end in &mut net.ends {
        end.connection.on_path_changed(now);
    }
    net.delay = ms(60);
    let fresh = net.ends[0].connection.stats();
    assert_eq!((fresh.bytes_in_flight, fresh.srtt, fresh.rtt_min), (0, None, None));
    assert!(fresh.cwnd < before.cwnd);
    assert_eq!(net.ends[0].connection.max_datagram(), 1252 - 41, "the old path's packet size says nothing");
    net.run(at_ms(9_000), |_, _, _| {});
    let after = net.ends[0].connection.stats();
    assert_eq!((after.bytes_acked, net.ends[0].connection.max_datagram()), (4_000_000, 1472 - 41));
    // Packets that left on the old path and came by it are no samples of the new one.
    assert_eq!(net.ends[0].connection.rtt_min(), Some(ms(120)));
    assert_eq!((after.packets_retransmitted, after.fast_recoveries), (0, Some(0)));
}

#[test]
fn losses_of_the_old_path_are_retransmitted_without_a_window_cut() {
    let mut net = established(config());
    net.ends[0].write(StreamId(0), 400_000);
    net.run(at_ms(300), |_, _, _| {});
    net.ends[0].write(StreamId(0), 20_000);
    net.lose_one_in = 1;
    net.run(at_ms(305), |_, _, _| {});
    net.lose_one_in = 0;
    let now = net.now;
    net.ends[0].connection.on_path_changed(now);
    let before = net.ends[0].connection.stats();
    net.ends[0].write(StreamId(0), 20_000);
    net.run(at_ms(3_000), |_, _, _| {});
    let after = net.ends[0].connection.stats();
    assert_eq!(after.bytes_acked, 440_000);
    assert!(after.packets_retransmitted > before.packets_retransmitted);
    assert_eq!(after.fast_recoveries, before.fast_recoveries);
}

/// The system refuses a packet as too long (EMSGSIZE): those after it are shorter, and so are those sent again.
#[test]
fn packets_can_be_made_shorter_at_any_time() {
    let mut net = established(config());
    net.lose_one_in = 20;
    net.ends[0].write(StreamId(0), 200_000);
    net.run(at_ms(120), |_, _, _| {});
    assert_eq!(net.ends[0].longest, 1472);
    for end in &mut net.ends {
        end.connection.set_max_payload(1_000);
        end.longest = 0;
    }
    net.run(at_ms(10_000), |_, _, _| {});
    assert_eq!(net.ends[0].connection.stats().bytes_acked, 200_000);
    assert_eq!((net.ends[0].longest, net.ends[0].connection.max_datagram()), (1_000, 1_000 - 41));
    assert!(net.ends[1].longest <= 1_000);
}

#[test]
fn a_reason_is_heard_and_heard_again_by_who_missed_it() {
    let mut net = established(config());
    net.lose_one_in = 1;
    net.ends[0].connection.abort_with(42, "the disk is full");
    net.run(at_ms(110), |_, _, _| {});
    net.lose_one_in = 0;
    assert_eq!(net.ends[0].events.last(), Some(&Event::Closed));
    net.ends[1].write(StreamId(0), 100);
    net.run(at_ms(200), |_, _, _| {});
    assert_eq!(net.ends[1].events.last(), Some(&Event::Reset));
    assert_eq!(net.ends[1].connection.peer_reason(), Some(&Reason::new(42, "the disk is full")));
    assert_eq!(net.ends[0].connection.peer_reason(), None);
}

#[test]
fn without_keep_alive_silence_ends_a_connection() {
    let idle_timeout = Duration::from_secs(30);
    for (keep_alive, ended) in [(None, true), (Some(Duration::from_secs(10)), false)] {
        let mut net = established(Config { idle_timeout, keep_alive, ..config() });
        let sent = net.ends[0].connection.stats().packets_sent;
        net.run(Instant::ZERO + Duration::from_secs(29), |_, _, _| {});
        assert_eq!(net.ends[0].events, [Event::Connected]);
        net.run(Instant::ZERO + Duration::from_secs(100), |_, _, _| {});
        for end in &net.ends {
            assert_eq!(end.events.last() == Some(&Event::TimedOut), ended);
        }
        assert_eq!(net.ends[0].connection.stats().packets_sent == sent, ended, "nothing is sent for nothing");
        assert!(!ended || net.ends[0].connection.poll_timeout().is_none());
    }
}

/// A reader that takes little by little frees the sender of its stream, and no packets fly while it takes nothing.
#[test]
fn a_slow_reader_of_a_stream_costs_next_to_nothing() {
    let mut net = established(Config { reader: Reader::Explicit, stream_buffer: Bytes(10_000), ..config() });
    let stream = net.ends[0].connection.open_stream().expect("some are allowed");
    net.ends[0].write(stream, 100_000);
    net.run(at_ms(1_000), |_, _, _| {});
    assert_eq!(net.ends[1].connection.readable(stream), 10_000);
    let before = net.ends[0].connection.stats().packets_sent;
    net.run(at_ms(61_000), |_, _, _| {});
    let asked = net.ends[0].connection.stats().packets_sent - before;
    assert!((5..=30).contains(&asked), "{asked} packets in a minute");
    let mut now = 61_000;
    while net.ends[1].connection.delivered_of(stream) < 100_000 {
        net.ends[1].read(stream);
        now += 50;
        net.run(at_ms(now), |_, _, _| {});
    }
    assert!(now < 61_000 + 50 * 12, "each read is told at once");
}

#[test]
fn a_second_stop_says_nothing_and_a_reset_needs_no_answer() {
    let mut script = Script::established(config());
    let stream = script.end.open_stream().expect("some are allowed");
    assert_eq!(stream, StreamId(1));
    script.end.stop_stream(stream, 5);
    script.end.stop_stream(stream, 6);
    script.end.reset_stream(stream, 7);
    script.end.reset_stream(stream, 8);
    let controls = [
        Body::Control(Control::Stop { stream, code: 5 }),
        Body::Control(Control::Reset { stream, code: 7, end: Default::default() }),
    ];
    assert_eq!(script.takes(at_ms(10)), controls);
    script.end.reset_stream(StreamId(0), 9);
    script.end.reset_stream(StreamId(99), 9);
    assert_eq!(script.takes(at_ms(10)), []);
}
