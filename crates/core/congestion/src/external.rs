//! A user's own controller, for experiments and for other languages.
//!
//! It receives every ACK, loss and timeout, and sets window and rate itself, as BBR does. It is called through a lock
//! and a table of functions, so calls are slower. Its decisions are limited to what a sender can do.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::control::{CongestionControl, own_window};
use super::signals::{Delivery, Repair};
use super::window::Window;
use tacit_packet::factory::{FactoryRef, Named};
use tacit_packet::units::{BitRate, Bytes, Duration, Instant};

/// Largest window in bytes: larger than any path needs, and small enough that sums stay far below 2^63.
const MAX_WINDOW: u64 = 1 << 40;

/// A controller of a connection.
pub trait Control: Send {
    /// An ACK arrived, whether or not it acknowledges anything.
    fn on_ack(&mut self, ack: &Acknowledged) -> Steering;

    /// Fast recovery begins, or an ECN echo arrived; `in_flight` is the number of bytes in flight.
    fn on_loss(&mut self, in_flight: Bytes) -> Steering;

    /// The retransmission timer expired.
    fn on_timeout(&mut self, now: Instant, in_flight: Bytes) -> Steering;
}

/// Creates a controller for each connection.
pub trait Factory: Named + Sync {
    /// A controller for a connection whose full segments have `mss` bytes of payload, and its initial decision.
    fn control(&self, mss: Bytes, initial_window: Bytes) -> (Box<dyn Control>, Steering);
}

/// Report of one ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// Time of arrival.
    pub now: Instant,
    /// Bytes that it newly acknowledges, cumulatively or selectively.
    pub delivered: Bytes,
    /// Bytes delivered since the connection began.
    pub delivered_total: Bytes,
    /// Bytes newly declared lost.
    pub lost: Bytes,
    /// Estimated bytes in flight before it.
    pub prior_in_flight: Bytes,
    /// Estimated bytes in flight after it.
    pub in_flight: Bytes,
    /// Round-trip time of the newest segment it acknowledges, if unambiguous.
    pub rtt: Option<Duration>,
    /// Smoothed round-trip time.
    pub smoothed_rtt: Option<Duration>,
    /// Delivery rate measured by the sender, if it could be measured.
    pub delivery_rate: Option<BitRate>,
    /// Arrival rate reported by the receiver (TACK).
    pub receiver_rate: Option<BitRate>,
    /// The application limited the rate, so rates say little about the path.
    pub application_limited: bool,
    /// Losses are being repaired.
    pub in_recovery: bool,
}

/// Decision of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steering {
    /// Most bytes that may be in flight; at least one segment is allowed.
    pub window: Bytes,
    /// The rate to send payload at; `None` paces by the window and the smoothed round-trip time.
    pub pacing: Option<BitRate>,
}

/// A [`Factory`] as a configuration holds it.
pub type External = FactoryRef<dyn Factory>;

/// A controller of a connection in use.
#[derive(Clone)]
pub(crate) struct ExternalController {
    window: Window,
    pacing: Option<BitRate>,
    /// Shared by the copies that undo reductions: each connection has only one controller.
    control: Arc<Mutex<Box<dyn Control>>>,
}

impl fmt::Debug for ExternalController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalController")
            .field("window", &self.window)
            .field("pacing", &self.pacing)
            .finish()
    }
}

impl ExternalController {
    pub fn new(window: Window, factory: External) -> Self {
        let (control, steering) = factory.0.control(Bytes(window.mss), Bytes(window.cwnd));
        let mut controller = Self { window, pacing: None, control: Arc::new(Mutex::new(control)) };
        controller.follow(steering);
        controller
    }

    fn call(&mut self, question: impl FnOnce(&mut dyn Control) -> Steering) {
        // A controller that panicked is called again: it can harm only its own connection.
        let steering = question(self.control.lock().unwrap_or_else(PoisonError::into_inner).as_mut());
        self.follow(steering);
    }

    fn follow(&mut self, steering: Steering) {
        self.window.cwnd = steering.window.0.clamp(self.window.mss, MAX_WINDOW);
        self.pacing = steering.pacing.filter(|rate| rate.as_bps() > 0);
    }
}

impl CongestionControl for ExternalController {
    own_window!();

    fn wants_delivery(&self) -> bool {
        true
    }

    fn on_delivery(&mut self, delivery: &Delivery) {
        let sample = &delivery.sample;
        let ack = Acknowledged {
            now: delivery.now,
            delivered: Bytes(sample.newly_delivered),
            delivered_total: Bytes(sample.delivered),
            lost: Bytes(delivery.lost),
            prior_in_flight: Bytes(delivery.prior_in_flight),
            in_flight: Bytes(delivery.in_flight),
            rtt: sample.rtt,
            smoothed_rtt: delivery.smoothed_rtt,
            delivery_rate: sample.rate(),
            receiver_rate: delivery.receiver.and_then(|report| report.rate),
            application_limited: sample.app_limited,
            in_recovery: delivery.repair != Repair::None,
        };
        self.call(|control| control.on_ack(&ack));
    }

    fn on_loss(&mut self, flight: u64) {
        self.call(|control| control.on_loss(Bytes(flight)));
    }

    fn on_timeout(&mut self, now: Instant, flight: u64) {
        self.call(|control| control.on_timeout(now, Bytes(flight)));
    }

    fn in_start_up(&self) -> bool {
        false
    }

    fn state(&self) -> Option<&'static str> {
        None
    }

    fn pacing_rate(&self, smoothed_rtt: Option<Duration>, in_flight: u64) -> Option<BitRate> {
        self.pacing.or_else(|| self.window.pacing_rate(smoothed_rtt?, in_flight))
    }
}
