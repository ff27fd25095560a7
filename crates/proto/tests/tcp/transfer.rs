//! Whole transfers between two ends.

use proptest::prelude::*;
use tacit_proto::tcp::{AckPolicy, Config, Congestion, Event, ReadPolicy, SlowStart, State};
use tacit_proto::units::{BitRate, Bytes, Duration};

use crate::pipe::{Link, Pipe, Random};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn pipe(config: Config, rate: BitRate, delay: Duration) -> Pipe {
    Pipe::new(config, config, Link::new(Some(rate), delay), Link::new(Some(rate), delay))
}

#[test]
fn a_transfer_completes_and_both_ends_close() {
    let mut pipe = pipe(Config::default(), BitRate::from_mbps(100), ms(10));
    pipe.client.write(1_000_000);
    pipe.client.close();
    pipe.run_for(ms(2_000));
    assert_eq!(pipe.server.state(), State::CloseWait);
    pipe.server.close();
    assert!(pipe.run_to_close(Duration::from_secs(120)));
    assert_eq!(pipe.server.counters().delivered_bytes, 1_000_000);
    assert_eq!(pipe.client.counters().segments_retransmitted, 0);
    assert_eq!(pipe.client_events, [Event::Connected, Event::SendDone, Event::PeerClosed, Event::Closed]);
    assert_eq!(pipe.server_events, [Event::Connected, Event::PeerClosed, Event::Closed]);
}
