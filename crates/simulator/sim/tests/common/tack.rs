//! TACK in worlds that were generated for TCP. It has its own random streams, so the rest of the world does not change.

use tacit_congestion::Algorithm;
use tacit_link::random::Stream;
use tacit_packet::units::{Bytes, Duration};
use tacit_sim::setup::{Setup, Traffic};
use tacit_sim::transport;
use tacit_tack_proto::{AckClock, Config, Lists, LossReports, RateFrom, StartUp, Timing};

fn pick<T: Clone>(draw: &mut Stream, from: &[T]) -> T {
    from[draw.up_to(from.len() as u32 - 1) as usize].clone()
}

/// Every feature of TACK, on or off; half of the time the default.
pub fn random_config(draw: &mut Stream) -> Config {
    let mut config = Config::default();
    if draw.up_to(1) == 0 {
        config.ack_clock = pick(
            draw,
            &[
                AckClock::Paper { beta: 2, every: 2 },
                AckClock::Tack { beta: 64, every: 1, min_interval: Duration::from_millis(1) },
                AckClock::Tack { beta: 4, every: 255, min_interval: Duration::from_millis(60) },
                AckClock::Delayed { every: 2, delay: Duration::from_millis(25) },
                AckClock::Delayed { every: 100, delay: Duration::from_millis(200) },
            ],
        );
        config.start_up = pick(draw, &[StartUp::Often, StartUp::PerPacket, StartUp::AsAlways]);
        config.lists = pick(draw, &[Lists::Rich, Lists::Poor]);
        config.loss_reports = pick(draw, &[LossReports::Instant, LossReports::WithTack]);
        config.timing = pick(draw, &[Timing::LeastDelay, Timing::Newest]);
        config.rate_from = pick(draw, &[RateFrom::Receiver, RateFrom::Sender]);
    }
    config.congestion.algorithm = pick(
        draw,
        &[
            Algorithm::TACK_BBR,
            Algorithm::TACK_BBR,
            Algorithm::BBR,
            Algorithm::CUBIC,
            Algorithm::NewReno,
            Algorithm::Vegas,
            Algorithm::Copa,
        ],
    );
    config.ecn = draw.up_to(2) == 0;
    let (first, most) = pick(draw, &[(256 << 10, 64 << 20), (20_000, 20_000), (4 << 20, 4 << 20)]);
    (config.receive_buffer, config.max_receive_buffer, config.stream_buffer) =
        (Bytes(first), Bytes(most), Bytes(most));
    config.mtu = Bytes(pick(draw, &[576, 1280, 1500]));
    config.max_mtu = config.mtu;
    config
}

/// Changes two of three connections of `setup` to TACK.
pub fn carry_over(setup: &mut Setup, seed: u64) {
    let draw = &mut Stream::new(seed, "swarm tack");
    for flow in &mut setup.flows {
        if let Traffic::Connection { config, .. } = &mut flow.traffic
            && draw.up_to(2) > 0
        {
            *config = transport::Config::Tack(random_config(draw));
        }
    }
}

/// Number of TACK connections in `setup`.
pub fn carried(setup: &Setup) -> usize {
    let over_tack =
        |traffic: &Traffic| matches!(traffic, Traffic::Connection { config: transport::Config::Tack(_), .. });
    setup.flows.iter().filter(|flow| over_tack(&flow.traffic)).count()
}
