//! How connections begin and end.

use tacit_packet::endpoint::Event;
use tacit_packet::tack::packet::{Body, CloseCode, Hello, StreamId};
use tacit_packet::units::{BitRate, Bytes, Duration};
use tacit_tack_proto::{Config, Reader};

use crate::script::{Script, at_ms};
use crate::{ms, pipe};

const RATE: BitRate = BitRate::from_mbps(100);

#[test]
fn both_ends_connect_deliver_and_close() {
    let mut pipe = pipe(Config::default(), RATE, ms(20));
    pipe.client.write(100_000);
    pipe.client.close();
    pipe.server.write(50_000);
    pipe.server.close();
    pipe.run_for(Duration::from_secs(5));
    assert_eq!((pipe.server.delivered_bytes(), pipe.client.delivered_bytes()), (100_000, 50_000));
    for events in [&pipe.client_events, &pipe.server_events] {
        assert_eq!(events.first(), Some(&Event::Connected));
        assert_eq!(events.last(), Some(&Event::Closed));
        let mut between = events[1..events.len() - 1].to_vec();
        between.sort_by_key(|event| *event == Event::PeerClosed);
        assert_eq!(between, [Event::SendDone, Event::PeerClosed]);
    }
}

#[test]
fn one_direction_may_end_before_the_other() {
    let mut pipe = pipe(Config::default(), RATE, ms(20));
    pipe.client.write(1_000);
    pipe.client.close();
    pipe.run_for(ms(500));
    assert_eq!(pipe.server_events, [Event::Connected, Event::PeerClosed]);
    pipe.server.write(70_000);
    pipe.run_for(ms(500));
    assert_eq!(pipe.client.delivered_bytes(), 70_000);
    pipe.server.close();
    pipe.run_for(ms(500));
    assert_eq!(pipe.client_events.last(), Some(&Event::Closed));
}

#[test]
fn a_connection_with_nothing_to_say_is_established_at_both_ends() {
    let mut pipe = pipe(Config::default(), RATE, ms(20));
    pipe.run_for(ms(100));
    assert_eq!(
        (&pipe.client_events[..], &pipe.server_events[..]),
        (&[Event::Connected][..], &[Event::Connected][..])
    );
}

#[test]
fn a_hello_that_is_lost_is_said_again() {
    let mut pipe = pipe(Config::default(), RATE, ms(20));
    pipe.up.lose_one_in = 1;
    pipe.run_for(ms(2_500));
    pipe.up.lose_one_in = 0;
    pipe.run_for(ms(5_000));
    assert_eq!(pipe.client_events, [Event::Connected]);
    assert_eq!(pipe.server_events, [Event::Connected]);
}

#[test]
fn a_peer_that_never_answers_times_the_connection_out() {
    let config = Config { idle_timeout: Duration::from_secs(20), ..Config::default() };
    let mut pipe = pipe(config, RATE, ms(20));
    pipe.up.lose_one_in = 1;
    pipe.run_for(Duration::from_secs(30));
    assert_eq!(pipe.client_events, [Event::TimedOut]);
}

#[test]
fn probes_keep_an_idle_connection_alive_and_silence_ends_it() {
    let config = Config {
        idle_timeout: Duration::from_secs(30),
        keep_alive: Some(Duration::from_secs(10)),
        ..Config::default()
    };
    let mut pipe = pipe(config, RATE, ms(20));
    pipe.run_for(Duration::from_secs(300));
    assert_eq!(pipe.client_events, [Event::Connected]);
    pipe.down.lose_one_in = 1;
    pipe.run_for(Duration::from_secs(31));
    assert_eq!(pipe.client_events, [Event::Connected, Event::TimedOut]);
}

/// The wait between probes doubles up to a sixteenth of the idle time-out: half of the packets may be lost, each way.
#[test]
fn a_peer_that_falls_silent_is_asked_sixteen_times_and_more() {
    let config = Config { idle_timeout: Duration::from_secs(30), ..Config::default() };
    let mut pipe = pipe(config, RATE, ms(20));
    pipe.client.write(100_000_000);
    pipe.run_for(ms(500));
    pipe.down.lose_one_in = 1;
    pipe.run_for(Duration::from_secs(31));
    assert_eq!(pipe.client_events.last(), Some(&Event::TimedOut));
    let asked = pipe.client.timeouts();
    assert!((16..=24).contains(&asked), "{asked}");
}

#[test]
fn an_abort_resets_the_peer() {
    let mut pipe = pipe(Config::default(), RATE, ms(20));
    pipe.client.write(10_000_000);
    pipe.run_for(ms(200));
    pipe.client.abort();
    pipe.run_for(ms(200));
    assert_eq!(pipe.client_events.last(), Some(&Event::Closed));
    assert_eq!(pipe.server_events.last(), Some(&Event::Reset));
}

/// Idle time counts from the hello on, not from when the server began to listen.
#[test]
fn a_server_that_has_listened_for_long_takes_a_client() {
    let mut server = Script::listening(Config::default());
    let late = at_ms(10 * 3_600_000);
    let hello = Hello { version: Hello::VERSION, source: server.peer, max_payload: 1472, ..Hello::default() };
    server.give(late, Body::Open(hello));
    assert!(matches!(server.takes(late)[..], [Body::Answer(_)]));
    assert!(server.takes(late + ms(1)).is_empty());
    assert!(server.events().is_empty(), "it gave up a client that has just come");
}

#[test]
fn another_version_is_refused() {
    let mut server = Script::listening(Config::default());
    let hello =
        Hello { version: Hello::VERSION + 1, source: server.peer, max_payload: 1472, ..Hello::default() };
    server.give(at_ms(0), Body::Open(hello));
    assert_eq!(server.takes(at_ms(0)), [Body::Close(CloseCode::Refused)]);
}

/// The second end's "done" is lost: an end that sends data to one that is done hears it again.
#[test]
fn a_lost_close_is_said_again() {
    let mut pipe = pipe(Config::default(), RATE, ms(20));
    pipe.client.write(1_000);
    pipe.client.close();
    pipe.run_for(ms(200));
    pipe.server.close();
    // The server's end of data arrives, its acknowledgment and later packets do not.
    pipe.run_for(ms(15));
    pipe.up.lose_one_in = 1;
    pipe.run_for(ms(30));
    pipe.up.lose_one_in = 0;
    pipe.run_for(Duration::from_secs(5));
    assert_eq!(pipe.client_events.last(), Some(&Event::Closed));
    assert_eq!(pipe.server_events.last(), Some(&Event::Closed));
}

#[test]
fn streams_are_independent_of_each_other() {
    let mut pipe = pipe(Config::default(), RATE, ms(20));
    pipe.run_for(ms(100));
    let streams = [(); 3].map(|()| pipe.client.open_stream().expect("more are allowed"));
    assert_eq!(streams, [2, 4, 6].map(StreamId));
    let written = [(StreamId(0), 10_000), (streams[0], 0), (streams[1], 200_000), (streams[2], 1)];
    for (stream, bytes) in written.into_iter().filter(|(_, bytes)| *bytes > 0) {
        pipe.client.write_stream(stream, bytes);
        pipe.client.close_stream(stream);
    }
    pipe.up.lose_every = 9;
    pipe.run_for(Duration::from_secs(3));
    for (stream, bytes) in written {
        assert_eq!(pipe.server.delivered_of(stream), bytes);
        // The end of stream 0 waits for stream 2.
        assert_eq!(pipe.server.has_ended(stream), bytes > 0 && stream != StreamId(0));
    }
    pipe.client.close_stream(streams[0]);
    for stream in streams {
        pipe.server.close_stream(stream);
    }
    pipe.run_for(Duration::from_secs(3));
    assert!(pipe.server.has_ended(StreamId(0)));
}

#[test]
fn a_reader_that_stops_holds_the_sender_and_one_that_goes_on_frees_it() {
    let server = Config {
        reader: Reader::Explicit,
        receive_buffer: Bytes(50_000),
        max_receive_buffer: Bytes(50_000),
        ..Config::default()
    };
    let mut pipe = crate::between(
        Config::default(),
        server,
        crate::joined::Link::new(Some(RATE), ms(10)),
        crate::joined::Link::new(Some(RATE), ms(10)),
    );
    pipe.client.write(500_000);
    pipe.client.close();
    pipe.run_for(Duration::from_secs(2));
    assert_eq!(pipe.server.delivered_bytes(), 50_000);
    for turn in 0..20 {
        // The news of the window is lost each second time: a probe asks for it.
        pipe.down.lose_one_in = turn % 2;
        pipe.server.read(StreamId(0), u64::MAX);
        pipe.run_for(ms(20));
        pipe.down.lose_one_in = 0;
        pipe.run_for(Duration::from_secs(3));
    }
    assert_eq!(pipe.server.delivered_bytes(), 500_000);
    assert!(pipe.server.has_ended(StreamId(0)));
}

/// Slow start sends 10, 20 and 40 packets at once each: 100 kB arrive 3.5 round trips after the first packet of the handshake.
#[test]
fn a_short_transfer_takes_as_long_as_by_slow_start() {
    let mut pipe = pipe(Config::default(), RATE, ms(200));
    let took = crate::transfer_time(&mut pipe, 100_000);
    assert!(took <= ms(760), "{} ms", took.as_millis());
}

/// 650 Mb/s and 200 ms hold 16 MB, and the queue 6. Windows of 20 to 32 MiB hold a start-up, which sends at thrice the rate until
/// it ends, again and again.
#[test]
fn a_receivers_window_does_not_keep_the_start_up_from_ending() {
    for window in [20, 24, 32].map(|mib| Bytes(mib << 20)) {
        let config = Config { stream_buffer: window, max_receive_buffer: window, ..Config::default() };
        let link = || crate::joined::Link::new(Some(BitRate::from_mbps(650)), ms(100));
        let mut down = link();
        down.queue = ms(80);
        let mut pipe = crate::between(config, config, down, link());
        pipe.wire = false;
        pipe.client.write(u64::MAX >> 8);
        pipe.run_for(ms(5_000));
        let (before, sent_again) = (pipe.server.delivered_bytes(), pipe.client.stats().packets_retransmitted);
        pipe.run_for(ms(2_000));
        let mbps = (pipe.server.delivered_bytes() - before) / 250_000;
        let stats = pipe.client.stats();
        println!("{window:?}: {mbps} Mb/s, {sent_again} packets again");
        assert_eq!(stats.congestion_state, Some("probe bandwidth"));
        assert!(mbps > 540, "{window:?}: {mbps} Mb/s");
        assert!(stats.packets_retransmitted < sent_again + 1_000, "{window:?}: losses go on");
    }
}
