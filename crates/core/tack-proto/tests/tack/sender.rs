//! Packet scripts of the sending half: its reports, its probes, its answer to marks.

use std::sync::Arc;

use tacit_congestion::Algorithm;
use tacit_packet::Endpoint;
use tacit_packet::tack::packet::{Body, Control, Data, Stamp, Sync, Tack};
use tacit_packet::units::{BitRate, Duration, SeqNumber};
use tacit_tack_proto::Config;

use crate::script::{FULL, Script, at_ms};
use crate::{long_pipe, ms};

fn data(bodies: &[(u32, Body)]) -> Vec<Data> {
    let data = |(_, body): &(u32, Body)| match body {
        Body::Data(data) => Some(*data),
        _ => None,
    };
    bodies.iter().filter_map(data).collect()
}

/// A TACK for everything below `cumulative`, `bytes` of data: of a packet that left `rtt_ms` before `now`.
fn tack(end: &Script, now: u64, rtt_ms: u64, cumulative: u32, bytes: u32) -> Body {
    let own_now = end.stamp_at(at_ms(now));
    Body::Tack(Arc::new(Tack {
        departed: Stamp(own_now.0.wrapping_sub(rtt_ms as u32 * 1000)),
        cumulative: SeqNumber(cumulative),
        received: SeqNumber(bytes),
        window: SeqNumber(1 << 30),
        ..Tack::default()
    }))
}

/// Section 4.4: the receiver hears of the round-trip time on data, again until that is known to have arrived, and then when it
/// has changed.
#[test]
fn the_receiver_is_told_of_the_path_until_it_knows() {
    let mut script = Script::established(Config::default());
    script.end.write(200 * u64::from(FULL));
    let first = script.numbered(at_ms(10));
    let announced: Vec<Sync> = data(&first).iter().filter_map(|data| data.sync).collect();
    let [hello] = announced[..] else { panic!("{announced:?}") };
    assert_eq!((hello.rtt_min_us, hello.startup), (0, true));
    let largest = first[first.len() - 1].0;
    let bytes = first.len() as u32 * u32::from(FULL);
    script.give(at_ms(90), tack(&script, 90, 80, largest + 1, bytes));
    let mut later = Vec::new();
    for now in 90..110 {
        script.end.handle_timeout(at_ms(now));
        later.extend(data(&script.numbered(at_ms(now))).into_iter().filter_map(|data| data.sync));
    }
    assert!(!later.is_empty() && later.len() <= 2, "{later:?}");
    assert_eq!((later[0].rtt_min_us, later[0].floor), (80_000, SeqNumber(largest + 1)));
}

/// No acknowledgment: one packet that asks for one, after the round trip, its variance and the receiver's longest wait;
/// then two each time, at twice the distance.
#[test]
fn silence_is_probed_with_data_that_asks() {
    let mut script = Script::established(Config::default());
    script.end.write(3 * u64::from(FULL));
    let first = script.numbered(at_ms(10));
    script.give(at_ms(30), tack(&script, 30, 20, first[0].0 + 1, u32::from(FULL)));
    // The rest of the three is paced, and out by then.
    for now in 30..35 {
        script.takes(at_ms(now));
    }
    let mut probes = Vec::new();
    for now in 35..2_000 {
        script.end.handle_timeout(at_ms(now));
        probes.extend(script.numbered(at_ms(now)).into_iter().map(|(_, body)| (now, body)));
    }
    let mut times: Vec<u64> = probes.iter().map(|(at, _)| *at).collect();
    assert_eq!(
        times[1..].chunks(2).find(|pair| pair[0] != pair[1] || pair[0] == times[0]),
        None,
        "{times:?}"
    );
    times.dedup();
    assert!((50..=150).contains(&times[0]), "{times:?}");
    let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.windows(2).all(|pair| pair[1].abs_diff(2 * pair[0]) <= 3), "{gaps:?}");
    for (_, probe) in &probes {
        let Body::Data(probe) = probe else { panic!("{probe:?} is no data") };
        assert!(probe.immediate_ack && probe.offset.0 == u32::from(FULL), "{probe:?}");
    }
}

/// The milliseconds, until `until`, at which a sender probes that had one acknowledgment of its two packets. The peer sends a packet
/// at those where `talks`, and its acknowledgments are lost.
fn probe_times(until: u64, talks: impl Fn(u64) -> bool) -> Vec<u64> {
    let mut script = Script::established(Config::default());
    script.end.write(2 * u64::from(FULL));
    let first = script.numbered(at_ms(10));
    script.give(at_ms(30), tack(&script, 30, 20, first[0].0 + 1, u32::from(FULL)));
    let is_probe = |body: &Body| matches!(body, Body::Data(data) if data.immediate_ack);
    let mut times = Vec::new();
    for now in 31..until {
        if talks(now) {
            script.give(at_ms(now), Body::Probe { padding: 0 });
        }
        if script.takes(at_ms(now)).iter().any(is_probe) {
            times.push(now);
        }
    }
    times
}

/// A packet of any kind shows that the path is there: the next probe follows after the plain wait, which doubles again from then on.
#[test]
fn a_packet_of_the_peer_ends_the_backoff_of_probes() {
    let times = probe_times(4_000, |now| now == 2_000);
    let (before, after) = times.split_at(times.partition_point(|at| *at < 2_000));
    assert!(before.len() >= 4 && before[3] - before[2] > 3 * (before[1] - before[0]), "{times:?}");
    assert!(after[0] <= 2_001 && after[1] - after[0] <= 2 * (before[1] - before[0]), "{times:?}");
}

/// A peer that talks and never acknowledges would have as many probes as it likes: from some timeouts on they back off all the same.
#[test]
fn a_peer_that_only_talks_is_probed_ever_less() {
    let times = probe_times(60_000, |now| now % 10 == 0);
    // Six in a row at one distance, five that double to 3.75 s, a sixteenth of the idle time-out, and one each then.
    let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps[4] <= 2 * gaps[0] && times.len() <= 6 + 6 + 60_000 / 3_750, "{times:?}");
}

/// Before the peer has acknowledged anything the wait is that of a hello at most, which doubles after a second.
#[test]
fn a_peer_that_has_not_answered_yet_is_asked_no_later_than_by_a_hello() {
    let second = Duration::from_secs(1);
    let mut script = Script::established(Config {
        hello_timeout: second / 4,
        max_hello_timeout: second,
        ..Config::default()
    });
    script.end.write(3 * u64::from(FULL));
    script.numbered(at_ms(10));
    let mut times = Vec::new();
    for now in 11..4_000 {
        script.end.handle_timeout(at_ms(now));
        times.extend(script.numbered(at_ms(now)).first().map(|_| now));
    }
    let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // The answer came 10 ms after the hello: thrice that, and 25 ms that an acknowledgment may wait.
    assert_eq!((times[0], &gaps[..6]), (65, &[110, 220, 250, 500, 1000, 1000][..]), "{times:?}");
}

/// The peer hears that its limit holds a stream, and each time again after twice the wait. Once a limit has moved, the first wait is short again.
#[test]
fn a_limit_that_holds_again_is_asked_for_as_soon_as_the_first_time() {
    let window = 4 * u32::from(FULL);
    let mut script = Script::with_stream_window(Config::default(), window);
    let stream = script.end.open_stream().expect("the peer allows some");
    script.end.write_stream(stream, 1 << 20);
    let (mut sent, mut limit, mut asked) = (0, window, Vec::new());
    for now in 10..6_000 {
        script.end.handle_timeout(at_ms(now));
        for (number, body) in script.numbered(at_ms(now)) {
            match body {
                Body::Data(data) => sent = data.offset.0 + u32::from(data.payload_len),
                Body::Control(Control::Held { .. }) => asked.push(now),
                _ => {}
            }
            // What left is acknowledged at once, and the limit once it was asked for five times.
            limit += if asked.len() == 5 && limit == window { window } else { 0 };
            let Body::Tack(mut tack) = tack(&script, now, 1, number + 1, sent) else { unreachable!() };
            Arc::make_mut(&mut tack).streams = vec![(stream, SeqNumber(limit))];
            script.give(at_ms(now), Body::Tack(tack));
        }
    }
    assert_eq!(sent, 2 * window);
    let waits: Vec<u64> = asked.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(waits[3] > 7 * waits[0] && waits[4] < 2 * waits[0], "{asked:?}");
}

/// Section 5.1, equations 6 to 8: the more is lost on both ways, the more is to be repeated; with none lost on the way
/// back nothing is.
#[test]
fn blocks_asked_for_follow_the_losses_on_both_ways() {
    let asked = |data_loss: u64, ack_loss: u64| {
        let mut config = Config::default();
        config.congestion.algorithm = Algorithm::TACK_BBR;
        let mut pipe = long_pipe(config, BitRate::from_mbps(100), ms(200));
        (pipe.up.lose_one_in, pipe.down.lose_one_in) = (data_loss, ack_loss);
        pipe.up.queue = ms(400);
        pipe.client.write(u64::MAX);
        // The most, for how many are lost in a round trip follows from the rate of the moment.
        let mut most = 0;
        for _ in 0..30 {
            pipe.run_for(ms(500));
            most = most.max(pipe.client.requested_blocks());
        }
        most
    };
    assert_eq!(asked(0, 0), 4);
    assert_eq!(asked(100, 0), 4);
    assert!(asked(20, 5) > 16, "{}", asked(20, 5));
}

/// A mark is answered as a loss, once per round trip, by a controller that knows only a window; nothing is sent again.
#[test]
fn marks_slow_a_window_down_without_a_loss() {
    let run = |ecn| {
        let mut config = Config { ecn, ..Config::default() };
        config.congestion.algorithm = Algorithm::CUBIC;
        let mut pipe = long_pipe(config, BitRate::from_mbps(50), ms(20));
        pipe.up.queue = ms(200);
        pipe.up.mark_above = Some(ms(10));
        pipe.client.write(u64::MAX);
        pipe.run_for(ms(10_000));
        (pipe.client.stats(), pipe.server.delivered_bytes())
    };
    let ((marked, delivered), (unmarked, _)) = (run(true), run(false));
    assert_eq!((marked.packets_retransmitted, marked.timeouts), (0, Some(0)));
    assert!(marked.fast_recoveries > Some(2), "{marked:?}");
    assert!(marked.srtt < unmarked.srtt, "{:?} {:?}", marked.srtt, unmarked.srtt);
    assert!(delivered > 50_000_000, "{delivered}");
}
