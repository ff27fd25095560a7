//! One of two windows: that of quinn's own CUBIC while it keeps the path full, and the law's where losses have left the path
//! short of data; on short paths CUBIC's alone.
//!
//! From ACKs alone a sender cannot tell a queue of data from a queue of ACKs on a slow way back: both make round trips longer,
//! and both limit the rate at which ACKs arrive. Draining a queue of ACKs stops data that nothing else would stop. So a
//! queue stays as long as CUBIC keeps it.
//!
//! CUBIC also keeps what follows when a queue overflows. The law's room for the interval of ACKs may be more than the queue
//! of an access point holds: with the larger window behind an overflow, every round trip overflows again, each loss halves
//! CUBIC's window once more, and it never leads again.
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
    /// The law's window counts, where the path is not short.
    law_leads: bool,
}

impl Larger {
    pub(crate) fn new(now: Instant, mtu: u16) -> Self {
        let cubic = Cubic::new(Arc::new(CubicConfig::default()), now, mtu);
        Self { cubic, tack: TackController::new(mtu), is_short: false, law_leads: false }
    }

    /// The law takes over where its window is the larger one and either both still start, which a loss at random ends for
    /// CUBIC alone, or the path runs short of data. CUBIC takes over when its window is the larger one.
    fn choose(&mut self) {
        self.law_leads = self.tack.window() > self.cubic.window()
            && (self.law_leads || self.tack.is_starting() || self.tack.has_slowed());
    }

    fn active(&self) -> &dyn Controller {
        if self.law_leads && !self.is_short { &self.tack } else { &self.cubic }
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
        self.tack.lead(self.law_leads);
        self.tack.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
        self.choose();
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
        self.choose();
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
