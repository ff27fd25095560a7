//! The trait that every controller implements.

use super::window::Window;
use super::{AckSample, Delivery};
use crate::units::{BitRate, Duration, Instant};

/// Why nothing was in flight when data is about to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    /// The sender has sent nothing yet, or keeps no [books](super::rate::RateSampler).
    Unknown,
    /// The application had nothing to send.
    Application,
    /// None: at less than a packet per round trip nothing is in flight between two packets.
    SlowRate,
}

/// A congestion controller. Its window is in bytes.
///
/// A controller that goes by a window alone implements [`on_ack`](Self::on_ack), [`on_loss`](Self::on_loss) and
/// [`on_timeout`](Self::on_timeout). One driven by delivery samples implements [`on_delivery`](Self::on_delivery) and
/// [`on_undo`](Self::on_undo), and returns true from [`wants_delivery`](Self::wants_delivery).
pub(super) trait CongestionControl {
    /// Its window.
    fn window(&self) -> &Window;

    /// The same, for the rules of a connection that bound it.
    fn window_mut(&mut self) -> &mut Window;

    /// It gets every ACK by [`on_delivery`](Self::on_delivery), is paced, and decides on its window in recovery and
    /// after idling too: the rules of RFC 5681 are not applied to it.
    fn wants_delivery(&self) -> bool {
        false
    }

    /// New data was acknowledged outside of fast recovery.
    fn on_ack(&mut self, _sample: &AckSample) {}

    /// An ACK was taken in, after all the other calls it led to. Called only if
    /// [`wants_delivery`](Self::wants_delivery).
    fn on_delivery(&mut self, _delivery: &Delivery) {}

    /// Fast recovery begins with `flight` bytes in flight, or an ECN echo is answered as a loss.
    fn on_loss(&mut self, _flight: u64) {}

    /// The retransmission timer expired with `flight` bytes in flight. A controller that goes by a window hears of the
    /// first timeout of a segment only.
    fn on_timeout(&mut self, now: Instant, flight: u64);

    /// The latest reduction was needless; the window was `cwnd_before` bytes then. Called only if
    /// [`wants_delivery`](Self::wants_delivery): of the others the connection restores a copy.
    fn on_undo(&mut self, _cwnd_before: u64) {}

    /// Data follows a pause of `idle`, and the window was bounded already (RFC 5681 section 4.1).
    fn on_restart(&mut self, _idle: Duration) {}

    /// Data is about to be sent when none was in flight.
    fn on_transmit_start(&mut self, _now: Instant, _pause: Pause) {}

    /// When it acts if no ACK comes.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// That time has come.
    fn handle_timeout(&mut self, _now: Instant) {}

    /// It sends less than it could to measure something else.
    fn holds_back(&self) -> bool {
        false
    }

    /// Bytes that leave while a receiver's reports are `late`, if it sends at the rate that they report.
    fn amount_reported_late(&self, _late: Duration) -> u64 {
        0
    }

    /// It has not found yet how much the path takes.
    fn in_start_up(&self) -> bool {
        self.window().in_slow_start()
    }

    /// The name of its state, for people.
    fn state(&self) -> Option<&'static str> {
        Some(if self.in_start_up() { "slow start" } else { "avoidance" })
    }

    /// The rate to pace at, `None` while there is none. Without one of its own: the window's, with the smoothed
    /// round-trip time and the bytes in flight.
    fn pacing_rate(&self, smoothed_rtt: Option<Duration>, in_flight: u64) -> Option<BitRate> {
        self.window().pacing_rate(smoothed_rtt?, in_flight)
    }
}
