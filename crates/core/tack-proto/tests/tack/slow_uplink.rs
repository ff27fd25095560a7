//! A way back that carries few ACKs: the case of TCP-RRE's slides, for TACK.

use tacit_packet::units::{BitRate, Duration};
use tacit_tack_proto::Config;

use crate::joined::Link;
use crate::{ms, transfer_time};

/// How long a megabyte takes over 8 Mb/s and 25 ms, whose ACKs cross `uplink`, with queues of seconds both ways.
fn duration(uplink: BitRate) -> Duration {
    let link = |rate| {
        let mut link = Link::new(Some(rate), ms(25));
        link.queue = ms(10_000);
        link
    };
    let mut pipe =
        crate::between(Config::default(), Config::default(), link(BitRate::from_mbps(8)), link(uplink));
    pipe.wire = false;
    transfer_time(&mut pipe, 1_000_000)
}

/// The data takes a second at 8 Mb/s. The handshake and the start-up need ACKs, and 8 kb/s carry eleven a second.
#[test]
fn a_slow_uplink_does_not_slow_the_download() {
    for (kbps, most) in [(8, 2_800), (20, 1_900), (50, 1_500), (200, 1_300)] {
        let took = duration(BitRate::from_kbps(kbps));
        println!("{kbps} kb/s: {} ms", took.as_millis());
        assert!(took <= ms(most), "{kbps} kb/s: {} ms", took.as_millis());
    }
}
