//! QUIC by quinn.

use std::time::Duration;

use quinn::congestion::{BbrConfig, CubicConfig};

crate::quinn_family::stack!(quinn);

/// The path that `tacit-quinn` knows in advance: 20 ms at 300 Mb/s, the middle of the scenarios' hops.
const KNOWN_PATH: tacit_quinn::Path =
    tacit_quinn::Path { rtt: Duration::from_millis(20), window_bytes: 750_000, packet_bytes: 1_452 };

/// How quinn is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// Unchanged.
    Plain,
    /// It asks for fewer ACKs.
    AckFrequency,
    /// With the controller of `tacit-quinn`, which asks for nothing.
    Tacit,
    /// With that controller, and the ACK law of a path that is known.
    TacitKnownPath,
}

fn transport(settings: &Settings, flavour: Flavour) -> TransportConfig {
    let mut transport = with_windows(settings);
    transport.keep_alive_interval(Some(Duration::from_secs(10)));
    match settings.congestion {
        Congestion::Bbr => transport.congestion_controller_factory(Arc::new(BbrConfig::default())),
        Congestion::Cubic | Congestion::Default => {
            transport.congestion_controller_factory(Arc::new(CubicConfig::default()))
        }
    };
    match flavour {
        Flavour::Plain => {}
        Flavour::AckFrequency => ask_for_fewer_acks(&mut transport),
        Flavour::Tacit => tacit_quinn::configure(&mut transport),
        // Another controller may be asked for, beside the same ACKs.
        Flavour::TacitKnownPath if settings.congestion == Congestion::Default => {
            tacit_quinn::configure_for(&mut transport, &KNOWN_PATH);
        }
        Flavour::TacitKnownPath => {
            transport.ack_frequency_config(tacit_quinn::ack_frequency(&KNOWN_PATH));
        }
    }
    transport
}

const fn acks(frames: &quinn::FrameStats) -> u64 {
    frames.acks
}
