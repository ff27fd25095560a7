//! QUIC by noq, a fork of quinn.

use noq::congestion::{Bbr3Config, CubicConfig};

crate::quinn_family::stack!(noq);

/// How noq is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// Unchanged.
    Plain,
    /// It asks for fewer ACKs.
    AckFrequency,
}

fn transport(settings: &Settings, flavour: Flavour) -> TransportConfig {
    let mut transport = with_windows(settings);
    match settings.congestion {
        Congestion::Bbr => {
            transport.congestion_controller_factory(Arc::new(Bbr3Config::default()));
        }
        Congestion::Cubic => {
            transport.congestion_controller_factory(Arc::new(CubicConfig::default()));
        }
        Congestion::Default => {}
    }
    if flavour == Flavour::AckFrequency {
        ask_for_fewer_acks(&mut transport);
    }
    transport
}

/// Those of paths are counted apart.
const fn acks(frames: &noq::FrameStats) -> u64 {
    frames.acks + frames.path_acks
}
