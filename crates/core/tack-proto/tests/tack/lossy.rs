//! Paths that lose much, under any traffic.

use tacit_packet::units::{BitRate, Bytes, Duration};
use tacit_tack_proto::{Config, Connection};

use crate::joined::{Link, Pipe, Random};
use crate::{ms, transfer_time};

const BYTES: u64 = 20_000_000;

/// Two ends that have shaken hands. The loss of a packet of the handshake, which costs a second, is another matter.
fn connected(config: Config, up: Link, down: Link) -> Pipe<Connection> {
    let mut pipe = crate::between(config, config, up, down);
    pipe.wire = false;
    while pipe.client.rtt_min().is_none() {
        pipe.run_for(ms(100));
    }
    pipe
}

/// How long a transfer takes over 100 Mb/s and 20 ms that lose one packet in `lose_one_in` each way by chance, and each
/// `lose_every`th with data as well.
fn duration(lose_one_in: u64, lose_every: u64) -> Duration {
    let mut link = Link::new(Some(BitRate::from_mbps(100)), ms(10));
    (link.lose_one_in, link.lose_every, link.queue) = (lose_one_in, lose_every, ms(40));
    let mut pipe = connected(Config::default(), link.clone(), link);
    transfer_time(&mut pipe, BYTES)
}

/// A lost packet costs its own time again, and a tenth of all that beside at most.
#[test]
fn losses_up_to_30_percent_cost_their_share_and_a_tenth() {
    let whole = duration(0, 0).as_micros();
    for (one_in, every, percent) in [(10, 0, 10), (5, 0, 20), (4, 0, 25), (4, 15, 30)] {
        let took = duration(one_in, every).as_micros();
        println!("{percent} % lost: {took} us, {whole} without");
        assert!(
            took <= whole * 100 / (100 - percent) * 11 / 10,
            "{percent} % lost: {took} us, {whole} without"
        );
    }
}

/// More is slower, and steady: 20 MB are 160 Mb, and half a link of 100 Mb/s carries 50 Mb in a second.
#[test]
fn a_path_that_loses_half_carries_all_of_it_in_four_times_what_it_must_take() {
    let took = duration(2, 0);
    println!("half lost: {} us", took.as_micros());
    assert!(took <= ms(4 * 3200), "{} us", took.as_micros());
}

/// One packet in twenty is lost, and one acknowledgment in five, over 200 ms: the next TACK repeats what a lost one said before
/// the window is used up. A packet that is lost again and again is the exception: it held a second in a hundred, on one of ten
/// paths, with data packets of 33 bytes and with those of 29.
#[test]
fn where_acknowledgments_are_lost_too_hardly_a_second_is_idle() {
    let paths = (0..40).map(|step| Duration::from_micros(100_000 + 97 * step));
    let (mut seconds, mut idle) = (0, Vec::new());
    for delay in paths {
        let mut down = Link::new(Some(BitRate::from_mbps(100)), delay);
        (down.lose_one_in, down.queue) = (20, ms(200));
        let mut up = down.clone();
        up.lose_one_in = 5;
        let window = Bytes(64 << 20);
        let config = Config { max_receive_buffer: window, stream_buffer: window, ..Config::default() };
        let mut pipe = connected(config, down, up);
        pipe.client.write(1 << 30);
        pipe.run_for(ms(4000));
        let mut before = pipe.server.delivered_bytes();
        let mbps = (0..16).map(|_| {
            pipe.run_for(ms(1000));
            let now = pipe.server.delivered_bytes();
            (now - core::mem::replace(&mut before, now)) / 125_000
        });
        let mbps = mbps.collect::<Vec<_>>();
        assert!(mbps.iter().sum::<u64>() >= 16 * 80, "{} us: {mbps:?}", delay.as_micros());
        seconds += mbps.len();
        idle.extend(mbps.into_iter().filter(|mbps| *mbps < 40));
    }
    assert!(idle.len() * 50 <= seconds, "{} of {seconds}: {idle:?}", idle.len());
}

/// 40 MB over 200 Mb/s and 20 ms that lose these shares, in percent, there and back.
fn of_40_megabytes(there: u64, back: u64, seed: u64) -> Duration {
    let mut link = Link::new(Some(BitRate::from_mbps(200)), ms(10));
    link.queue = ms(40);
    let mut pipe = connected(Config::default(), link.clone(), link);
    (pipe.up.lose_percent, pipe.down.lose_percent) = (there, back);
    (pipe.up.random, pipe.down.random) = (Random(seed), Random(seed + 1000));
    transfer_time(&mut pipe, 40_000_000)
}

/// Packets and acknowledgments are lost: without losses it takes 1.78 s. A flight's last packet, and one that is lost again and again,
/// are asked about at once. The slowest of 20 is not looked at: it meets several such packets.
#[test]
fn losses_there_and_back_cost_their_share_and_a_half() {
    for (percent, most) in [(20, ms(3000)), (30, ms(3400))] {
        let took = of_20_transfers(percent, percent);
        assert!(took[18] <= most, "{percent} % lost: {} us", took[18].as_micros());
    }
}

/// Acknowledgments alone are lost: timeouts do not double, nor pass for congestion. Most transfers take half as long again, or three
/// times as long; a few are slower, where losses at the start are not known as such.
#[test]
fn lost_acknowledgments_stop_few_senders() {
    for (percent, most) in [(50, ms(2700)), (70, ms(5400))] {
        let took = of_20_transfers(0, percent);
        assert!(took[10] <= most, "{percent} % lost: {} us", took[10].as_micros());
    }
}

/// Times of 20 transfers, in their order.
fn of_20_transfers(there: u64, back: u64) -> Vec<Duration> {
    let mut took: Vec<_> = (1..=20).map(|seed| of_40_megabytes(there, back, seed)).collect();
    took.sort_unstable();
    println!(
        "{there} % and {back} % lost: {:?} us",
        took.iter().map(|took| took.as_micros()).collect::<Vec<_>>()
    );
    took
}
