//! The larger of two windows: the law's, and that of quinn's own CUBIC; on short paths CUBIC's alone.
//!
//! From ACKs alone a sender cannot tell a queue of data from a queue of ACKs on a slow way back: both make round trips longer,
//! and both limit the rate at which ACKs arrive. Draining a queue of ACKs stops data that nothing else would stop. So a
//! queue stays as long as CUBIC keeps it, and the law decides where losses have made CUBIC's window the smaller one.
//!
//! On a short path the law's room and its standing queue are many times what the path holds. Where nothing but the buffer of
//! a socket takes them, as over loopback, half of the packets are lost.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn::congestion::{Controller, ControllerMetrics, Cubic, CubicConfig};
use quinn_proto::RttEstimator;

use crate::controller::TackController;

/// Paths with a smaller round-trip time are short: quinn advertises this time as the least that an ACK may wait
/// (`min_ack_delay`), and no Wi-Fi or mobile link with a queue is on such a path.
pub(crate) const SHORT: Duration = Duration::from_millis(1);

/// Both controllers. Each hears of everything.
#[derive(Clone, Debug)]
pub(crate) struct Larger {
    cubic: Cubic,
    tack: TackController,
    is_short: bool,
}

impl Larger {
    pub(crate) fn new(now: Instant, mtu: u16) -> Self {
        let cubic = Cubic::new(Arc::new(CubicConfig::default()), now, mtu);
        Self { cubic, tack: TackController::new(mtu), is_short: false }
    }

    fn active(&self) -> &dyn Controller {
        if self.is_short || self.cubic.window() > self.tack.window() { &self.cubic } else { &self.tack }
    }
}

impl Controller for Larger {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.cubic.on_sent(now, bytes, last_packet_number);
        self.tack.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        // quinn forgets no minimum while the path lasts, so that a path does not become long again.
        self.is_short = rtt.min() < SHORT;
        self.cubic.on_ack(now, sent, bytes, app_limited, rtt);
        self.tack.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        self.cubic.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
        self.tack.compete(self.cubic.window());
        self.tack.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        self.cubic.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
        self.tack.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.cubic.on_mtu_update(new_mtu);
        self.tack.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.active().window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.active().metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.cubic.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
