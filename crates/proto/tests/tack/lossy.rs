//! Paths that lose much, whatever is sent.

use tacit_proto::tack::Config;
use tacit_proto::units::{BitRate, Duration};

use crate::joined::Link;
use crate::ms;

const BYTES: u64 = 20_000_000;

/// How long a transfer takes over 100 Mb/s and 20 ms, of which one packet in `lose_one_in` is lost each way by chance, and each
/// `lose_every`th with data as well.
fn duration(lose_one_in: u64, lose_every: u64) -> Duration {
    let mut link = Link::new(Some(BitRate::from_mbps(100)), ms(10));
    (link.lose_one_in, link.lose_every, link.queue) = (lose_one_in, lose_every, ms(40));
    let mut pipe = crate::between(Config::default(), Config::default(), link.clone(), link);
    pipe.wire = false;
    // The handshake, of which the loss of a packet costs a second, is another matter.
    while pipe.client.rtt_min().is_none() {
        pipe.run_for(ms(100));
    }
    let began = pipe.now;
    pipe.client.write(BYTES);
    for _ in 0..10_000 {
        pipe.run_for(ms(20));
        if pipe.server.delivered_bytes() == BYTES {
            return pipe.now.saturating_since(began);
        }
    }
    panic!("{} bytes in 200 s where one in {lose_one_in} is lost", pipe.server.delivered_bytes());
}

/// A lost packet costs its own time again, and half of all that beside at most.
#[test]
fn losses_up_to_30_percent_cost_their_share_and_half_as_much_again() {
    let whole = duration(0, 0).as_micros();
    for (one_in, every, percent) in [(10, 0, 10), (5, 0, 20), (4, 0, 25), (4, 15, 30)] {
        let took = duration(one_in, every).as_micros();
        println!("{percent} % lost: {took} us, {whole} without");
        assert!(
            took <= whole * 100 / (100 - percent) * 3 / 2,
            "{percent} % lost: {took} us, {whole} without"
        );
    }
}

/// More is slow, but steady.
#[test]
fn a_path_that_loses_half_carries_all_of_it() {
    println!("half lost: {} us", duration(2, 0).as_micros());
}
