//! Pacing and rate-based congestion control.

use tacit_congestion::{Algorithm, Pacing};
use tacit_packet::units::{BitRate, Bytes, Duration};
use tacit_tcp::{Config, Counters};

use crate::pipe::{Link, Pipe};
use crate::script::{Script, plain};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn paced() -> tacit_congestion::Config {
    tacit_congestion::Config { pacing: Pacing::On, ..tacit_congestion::Config::default() }
}

/// Twice the window per round trip in slow start: ten segments of 1000 bytes at 200 bytes per millisecond, two at a
/// time. Half of the first burst is credited, because nothing was sent before it.
#[test]
fn a_paced_window_leaves_two_by_two() {
    Script::connected(Config { congestion: paced(), ..plain() }).run(
        "+0  write 20000
         +0  > . 1:1001(1000) ack 1
         +0  > . 1001:2001(1000) ack 1
         +5  > . 2001:3001(1000) ack 1
         +0  > . 3001:4001(1000) ack 1
         +10 > . 4001:5001(1000) ack 1
         +0  > . 5001:6001(1000) ack 1
         +10 > . 6001:7001(1000) ack 1
         +0  > . 7001:8001(1000) ack 1
         +10 > . 8001:9001(1000) ack 1
         +0  > . 9001:10001(1000) ack 1
         # The window is full: the pacer does not wait.
         +60 silence
         +5  < . 1:1(0) ack 2001
         +0  > . 10001:11001(1000) ack 1
         +0  > . 11001:12001(1000) ack 1
         # Two more fit into the window, which has grown to 12: 240 bytes a millisecond, and again half
         # of the burst is forgiven after the pause.
         +4.166667 > . 12001:13001(1000) ack 1
         +0  > . 13001:14001(1000) ack 1",
    );
}

#[test]
fn acknowledgments_and_handshakes_are_not_paced() {
    Script::connected(Config { congestion: paced(), ..plain() }).run(
        "+0 write 4000
         +0 > . 1:1001(1000) ack 1
         +0 > . 1001:2001(1000) ack 1
         # Data waits until 5 ms; an ACK does not.
         +1 < . 1:1001(1000) ack 1
         +0 > . 2001:2001(0) ack 1001
         +4 > . 2001:3001(1000) ack 1001
         +0 > P. 3001:4001(1000) ack 1001",
    );
}

/// BBR starts at 2/ln 2 times the initial window per handshake round trip, minus one percent: 10 000 bytes in 100 ms
/// become 2 284 375 b/s, 3.502 ms per segment. Each ACK gives the delivery rate, and the window grows by it.
#[test]
fn bbr_starts_at_nearly_three_windows_a_round_trip() {
    let mut script = Script::connected(Config { congestion: Algorithm::BBR.into(), ..plain() });
    script.run(
        "+0 write 100000
         +0 > . 1:1001(1000) ack 1
         +0 > . 1001:2001(1000) ack 1
         +3.502052 > . 2001:3001(1000) ack 1
         +0 > . 3001:4001(1000) ack 1
         +7.004104 > . 4001:5001(1000) ack 1
         +0 > . 5001:6001(1000) ack 1
         +7.004104 > . 6001:7001(1000) ack 1
         +0 > . 7001:8001(1000) ack 1
         +7.004104 > . 8001:9001(1000) ack 1
         +0 > . 9001:10001(1000) ack 1
         +75.485636 < . 1:1(0) ack 2001
         # Two segments for those that left, two because the window grew by as much.
         +0 > . 10001:11001(1000) ack 1
         +0 > . 11001:12001(1000) ack 1
         +3.502052 > . 12001:13001(1000) ack 1
         +0 > . 13001:14001(1000) ack 1",
    );
    assert_eq!(script.counters().cwnd, 12_000);
}

/// BBRv3 starts with a gain of 2.77 (draft-ietf-ccwg-bbr-06 section 2.4), in 256ths and minus one percent: 10 000 bytes in
/// 100 ms become 2 190 625 b/s, 3.652 ms per segment.
#[test]
fn bbr3_starts_at_2_77_windows_a_round_trip() {
    let mut script = Script::connected(Config { congestion: Algorithm::Bbr3.into(), ..plain() });
    script.run(
        "+0 write 100000
         +0 > . 1:1001(1000) ack 1
         +0 > . 1001:2001(1000) ack 1
         +3.651926 > . 2001:3001(1000) ack 1
         +0 > . 3001:4001(1000) ack 1
         +7.303852 > . 4001:5001(1000) ack 1
         +0 > . 5001:6001(1000) ack 1
         +7.303852 > . 6001:7001(1000) ack 1
         +0 > . 7001:8001(1000) ack 1
         +7.303852 > . 8001:9001(1000) ack 1
         +0 > . 9001:10001(1000) ack 1
         +74.436519 < . 1:1(0) ack 2001
         # Two segments for those that left, two because the window grew by as much.
         +0 > . 10001:11001(1000) ack 1
         +0 > . 11001:12001(1000) ack 1
         +3.651926 > . 12001:13001(1000) ack 1
         +0 > . 13001:14001(1000) ack 1",
    );
    assert_eq!(script.counters().cwnd, 12_000);
}

/// A download of `span` over `mbps` and 40 ms, with a queue of 40 ms.
fn download(algorithm: Algorithm, mbps: u64) -> Pipe {
    let config = Config { congestion: algorithm.into(), ..Config::default() };
    let mut up = Link::new(Some(BitRate::from_mbps(mbps)), ms(20));
    up.queue = ms(40);
    let mut pipe = Pipe::new(config, config, up, Link::new(None, ms(20)));
    pipe.client.write(u64::MAX);
    pipe
}

/// Share of `mbps` that is delivered during `span`, and the sender's counters after it.
fn share(pipe: &mut Pipe, mbps: u64, span: Duration) -> (f64, Counters) {
    let before = pipe.server.delivered_bytes();
    pipe.run_for(span);
    let possible = (BitRate::from_mbps(mbps) * span).0 as f64 * 1448.0 / 1500.0;
    ((pipe.server.delivered_bytes() - before) as f64 / possible, pipe.client.counters())
}

#[test]
fn bbr_follows_a_link_that_halves_and_doubles() {
    let mut pipe = download(Algorithm::BBR, 40);
    pipe.run_for(ms(10_000));
    pipe.up.rate = Some(BitRate::from_mbps(20));
    // Ten rounds, each of up to 80 ms while the queue is full, until the old maximum is forgotten. Half of the data
    // sent meanwhile is lost.
    pipe.run_for(ms(2_000));
    let (after, _) = share(&mut pipe, 20, ms(5_000));
    assert!(after > 0.9, "{after}");
    // The queue from that time remains, because the sending rate equals its departure rate, until the round-trip time
    // is probed.
    let (later, counters) = share(&mut pipe, 20, ms(10_000));
    assert!(later > 0.9, "{later}");
    assert!(counters.srtt < Some(ms(60)), "the queue is gone: {:?}", counters.srtt);
    pipe.up.rate = Some(BitRate::from_mbps(40));
    // 25 % more per cycle of eight rounds: doubled after four cycles, about 1.3 s.
    pipe.run_for(ms(2_000));
    let (doubled, _) = share(&mut pipe, 40, ms(5_000));
    assert!(doubled > 0.9, "{doubled}");
}

/// Every ten seconds only four segments are in flight for 200 ms. On a path of 4 ms that is more rounds than the filter
/// remembers, but deliberately withheld data is no sample.
#[test]
fn bbr_remembers_the_rate_while_it_probes_the_round_trip() {
    let config = Config { congestion: Algorithm::BBR.into(), ..Config::default() };
    let mut up = Link::new(Some(BitRate::from_mbps(40)), ms(2));
    up.queue = ms(20);
    let mut pipe = Pipe::new(config, config, up, Link::new(None, ms(2)));
    pipe.client.write(u64::MAX);
    pipe.run_for(ms(8_000));
    let (before, _) = share(&mut pipe, 40, ms(2_000));
    let mut shares = Vec::new();
    for _ in 0..15 {
        shares.push(share(&mut pipe, 40, ms(100)).0);
    }
    let fewest = shares.iter().copied().fold(f64::MAX, f64::min);
    let after = shares.iter().rposition(|share| *share < 0.5).map_or(0, |last| shares.len() - 1 - last);
    assert!(before > 0.95, "{before}");
    assert!(fewest < 0.5, "the probing was missed: {shares:?}");
    assert!(shares[shares.len() - after + 1..].iter().all(|share| *share > 0.9), "{shares:?}");
}

/// Application-limited samples do not reduce the bandwidth estimate.
#[test]
fn bbr_does_not_take_a_slow_application_for_a_slow_path() {
    let mut pipe = download(Algorithm::BBR, 40);
    let config = *pipe.client.config();
    pipe = Pipe::new(config, config, pipe.up, pipe.down);
    pipe.client.write(8_000_000);
    pipe.run_for(ms(2_500));
    assert_eq!(pipe.client.unsent(), 0, "the path was measured");
    // 2 % of the path's rate for longer than ten rounds.
    for _ in 0..300 {
        pipe.client.write(1000);
        pipe.run_for(ms(10));
    }
    pipe.client.write(u64::MAX);
    let (share, _) = share(&mut pipe, 40, ms(1_000));
    assert!(share > 0.85, "{share}");
}

/// After a pause there is neither a burst of the whole window nor slow start, but the measured rate.
#[test]
fn bbr_goes_on_at_its_rate_after_a_pause() {
    let mut pipe = download(Algorithm::BBR, 40);
    let config = *pipe.client.config();
    pipe = Pipe::new(config, config, pipe.up, pipe.down);
    pipe.client.write(8_000_000);
    pipe.run_for(ms(5_000));
    assert_eq!(pipe.client.counters().bytes_in_flight, 0, "the pause began seconds ago");
    let (window, dropped) = (pipe.client.counters().cwnd, pipe.up.dropped);
    pipe.client.write(2_000_000);
    pipe.run_for(ms(40));
    // 40 ms at 40 Mb/s is 200 000 bytes.
    let sent = pipe.client.counters().bytes_in_flight;
    assert!((150_000..230_000).contains(&sent), "{sent} of {window}");
    pipe.run_for(ms(1_000));
    assert_eq!((pipe.client.unsent(), pipe.up.dropped), (0, dropped));
}

#[test]
fn pacing_leaves_cubic_its_share() {
    for pacing in [Pacing::Auto, Pacing::On] {
        let congestion = tacit_congestion::Config { pacing, ..tacit_congestion::Config::default() };
        let config = Config { congestion, ..Config::default() };
        let mut pipe = download(Algorithm::CUBIC, 40);
        pipe = Pipe::new(config, config, pipe.up, pipe.down);
        pipe.client.write(u64::MAX);
        pipe.run_for(ms(5_000));
        let (share, _) = share(&mut pipe, 40, ms(5_000));
        assert!(share > 0.97, "{pacing:?}: {share}");
    }
}

/// On any path: no panic, no stall, and no data lost for good.
#[test]
fn bbr_survives_losses_in_both_directions() {
    for (data, acks) in [(20, 0), (0, 5), (50, 10), (7, 3)] {
        let mut pipe = download(Algorithm::BBR, 40);
        let config = Config { receive_buffer: Bytes(1 << 20), ..*pipe.client.config() };
        pipe = Pipe::new(config, config, pipe.up, pipe.down);
        pipe.up.lose_one_in = data;
        pipe.down.lose_one_in = acks;
        pipe.client.write(3_000_000);
        pipe.client.close();
        pipe.server.close();
        assert!(pipe.run_to_close(Duration::from_secs(300)));
        assert_eq!(pipe.server.delivered_bytes(), 3_000_000);
    }
}
