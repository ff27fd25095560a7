//! Beside plain quinn.

mod two_ends;

use std::sync::Arc;
use std::time::Duration;

use quinn_proto::TransportConfig;
use two_ends::{Link, Trust, Way, transfer};

#[test]
fn grid() {
    let trust = Trust::new().unwrap();
    let plain = Arc::new(TransportConfig::default());
    let mut both = TransportConfig::default();
    tacit_quinn::configure(&mut both);
    let both = Arc::new(both);
    let mut acks = TransportConfig::default();
    acks.ack_frequency_config(Some(tacit_quinn::ack_frequency()));
    let acks = Arc::new(acks);
    let arm = |threshold: u32, order: u32, delay: Option<u64>, law: bool| {
        let mut transport = TransportConfig::default();
        let mut config = quinn_proto::AckFrequencyConfig::default();
        config.ack_eliciting_threshold(quinn_proto::VarInt::from_u32(threshold));
        config.reordering_threshold(quinn_proto::VarInt::from_u32(order));
        config.max_ack_delay(delay.map(Duration::from_millis));
        transport.ack_frequency_config(Some(config));
        if law { transport.congestion_controller_factory(Arc::new(tacit_quinn::Tack::default())); }
        Arc::new(transport)
    };
    let mut tack = TransportConfig::default();
    tack.congestion_controller_factory(Arc::new(tacit_quinn::Tack::default()));
    let tack = Arc::new(tack);
    let most: usize = std::env::var("MOST").map_or(10_000_000, |most| most.parse().unwrap());
    for (micros, mbps) in [(100, 1_000), (2_000, 1_000), (20_000, 100), (80_000, 100), (200_000, 100)] {
        let arms = [tack.clone()];
        for (queue, lost_per_mille) in [(1_500_000, 0), (1_500_000, 10), (200_000, 0), (60_000, 0), (60_000, 10)] {
            for bytes in [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000] {
                if bytes > most { continue }
                let rtt = Duration::from_micros(micros);
                let link = Link { rtt, bits_per_s: mbps * 1_000_000, up_bits_per_s: None, queue_bytes: queue, lost_per_mille, gathered: Duration::ZERO };
                let base = transfer(&trust, link, (&plain, &plain), Way::Down, bytes).unwrap();
                let mut line = format!("{rtt:>6.1?} {queue:>8} {lost_per_mille:>3} {bytes:>9} {:>10.3?} {:>6}", base.time, base.acks);
                for arm in &arms {
                    let took = transfer(&trust, link, (arm, arm), Way::Down, bytes).unwrap();
                    line += &format!(" | {:>6.3} {:>6}", took.time.as_secs_f64() / base.time.as_secs_f64(), took.acks); line += &format!(" {} {}", base.packets, took.packets);
                }
                eprintln!("{line}");
            }
        }
    }
}
