//! The trait that every controller implements.

use super::window::Window;
use super::{AckSample, Delivery};
use tacit_packet::units::{BitRate, Duration, Instant};

/// Why no data is in flight when data is about to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    /// The sender has not sent anything yet, or has no [rate sampler](super::rate::RateSampler).
    Unknown,
    /// The application had nothing to send.
    Application,
    /// There was no pause: at less than a packet per round trip nothing is in flight between two packets.
    SlowRate,
}

/// The methods of a [`CongestionControl`] that has its window in a field of that name.
macro_rules! own_window {
    () => {
        fn window(&self) -> &Window {
            &self.window
        }

        fn window_mut(&mut self) -> &mut Window {
            &mut self.window
        }
    };
}

pub(super) use own_window;

/// A congestion controller. Its window is in bytes.
///
/// A window-based controller implements [`on_ack`](Self::on_ack), [`on_loss`](Self::on_loss) and
/// [`on_timeout`](Self::on_timeout). A controller driven by delivery samples implements
/// [`on_delivery`](Self::on_delivery) and [`on_undo`](Self::on_undo), and returns true from
/// [`wants_delivery`](Self::wants_delivery).
pub(super) trait CongestionControl {
    /// Its window.
    fn window(&self) -> &Window;

    /// Mutable access for the rules with which a connection limits the window.
    fn window_mut(&mut self) -> &mut Window;

    /// True if it gets every ACK by [`on_delivery`](Self::on_delivery), must be paced, and also sets its window in
    /// recovery and after idle times; the rules of RFC 5681 are not applied to it.
    fn wants_delivery(&self) -> bool {
        false
    }

    /// New data was acknowledged outside of fast recovery.
    fn on_ack(&mut self, _sample: &AckSample) {}

    /// Reports an ACK, after all other calls that the ACK caused. Called only if
    /// [`wants_delivery`](Self::wants_delivery).
    fn on_delivery(&mut self, _delivery: &Delivery) {}

    /// True if it answers the share of congestion marks.
    fn is_scalable(&self) -> bool {
        false
    }

    /// New data was acknowledged, in any phase. Called only if [`is_scalable`](Self::is_scalable).
    fn on_marks(&mut self, _sample: &AckSample, _is_marked: bool) {}

    /// Fast recovery begins with `flight` bytes in flight, or an ECN echo is treated as a loss.
    fn on_loss(&mut self, _flight: u64) {}

    /// The retransmission timer expired with `flight` bytes in flight. For a window-based controller this is called
    /// only for the first timeout of a segment.
    fn on_timeout(&mut self, now: Instant, flight: u64);

    /// The latest reduction was unnecessary; before it the window was `cwnd_before` bytes. Called only if
    /// [`wants_delivery`](Self::wants_delivery); for other controllers the connection restores a copy.
    fn on_undo(&mut self, _cwnd_before: u64) {}

    /// Data is sent after a pause of `idle`; the window was already limited (RFC 5681 section 4.1).
    fn on_restart(&mut self, _idle: Duration) {}

    /// Data is about to be sent when none was in flight.
    fn on_transmit_start(&mut self, _now: Instant, _pause: Pause) {}

    /// The deadline at which it acts if no ACK arrives.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// The deadline has passed.
    fn handle_timeout(&mut self, _now: Instant) {}

    /// True while it deliberately sends less to measure something else.
    fn holds_back(&self) -> bool {
        false
    }

    /// Bytes to send while a receiver's reports are `late`, if it sends at the reported rate.
    fn amount_reported_late(&self, _late: Duration) -> u64 {
        0
    }

    /// True until it has first found the path's bandwidth.
    fn in_start_up(&self) -> bool {
        self.window().in_slow_start()
    }

    /// Name of its state, for people.
    fn state(&self) -> Option<&'static str> {
        Some(if self.in_start_up() { "slow start" } else { "avoidance" })
    }

    /// The pacing rate; `None` while there is none. By default derived from the window, the smoothed round-trip time
    /// and the bytes in flight.
    fn pacing_rate(&self, smoothed_rtt: Option<Duration>, in_flight: u64) -> Option<BitRate> {
        self.window().pacing_rate(smoothed_rtt?, in_flight)
    }
}
