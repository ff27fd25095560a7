//! Known answers: the packets of a connection with stream 0 alone, and their times. They move whenever its behaviour does; a change that
//! was not meant to change behaviour and moves them is wrong.

use tacit_congestion::Algorithm;
use tacit_packet::units::{BitRate, Bytes, Duration};
use tacit_tack_proto::{AckClock, Config, Lists, LossReports};

use crate::{long_pipe, ms};

/// Lengths, numbers and times of all packets of a transfer both ways over a path that loses and reorders.
fn digest(config: Config, lose_one_in: u64) -> u64 {
    let mut pipe = long_pipe(config, BitRate::from_mbps(40), ms(30));
    for link in [&mut pipe.up, &mut pipe.down] {
        link.lose_one_in = lose_one_in;
        link.delay_one_in = 50;
        link.jitter = ms(10);
        link.queue = ms(60);
    }
    pipe.client.write(8_000_000);
    pipe.server.write(300_000);
    pipe.run_for(Duration::from_secs(1));
    pipe.client.close();
    pipe.server.close();
    pipe.run_for(Duration::from_secs(9));
    pipe.digest
}

#[test]
fn stream_0_alone_sends_what_it_always_sent() {
    let usual = Config::default();
    let mut cubic = Config { lists: Lists::Poor, loss_reports: LossReports::WithTack, ..usual };
    cubic.congestion.algorithm = Algorithm::CUBIC;
    cubic.ack_clock = AckClock::Delayed { every: 2, delay: ms(40) };
    let long = Config {
        mtu: Bytes(1280),
        max_mtu: Bytes(4000),
        receive_buffer: Bytes(30_000),
        max_receive_buffer: Bytes(60_000),
        ..usual
    };
    let digests = [(usual, 0), (usual, 50), (cubic, 0), (cubic, 50), (long, 0), (long, 50)]
        .map(|(config, lose_one_in)| format!("{:016x}", digest(config, lose_one_in)));
    insta::assert_snapshot!(digests.join("\n"), @r"
    b01fb4b680dbb7f7
    a88e16a2381816a6
    4889f2a5f4f5603c
    35bc0cde45caee5e
    b76dab628306284e
    d8af5404531aa6f7
    ");
}
