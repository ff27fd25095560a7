//! Congestion control: how many octets may be in the network.
//!
//! A controller is told what happened and answers with a window; it never decides what is lost or
//! what to send. Windows are in octets and arithmetic is in integers, so a run is the same on every
//! machine.

mod cubic;
mod hystart;
mod reno;

use super::config::{Config, Congestion, SlowStart};
use super::position::Position;
use crate::units::{Duration, Instant};

pub(crate) use cubic::Cubic;
pub(crate) use reno::Reno;

/// What an acknowledgment of new data means to a controller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckSample {
    /// When it arrived.
    pub now: Instant,
    /// Octets newly acknowledged.
    pub acked: u64,
    /// SND.UNA after it.
    pub snd_una: Position,
    /// SND.NXT.
    pub snd_nxt: Position,
    /// Round-trip time of the newest segment it covers, when that is unambiguous.
    pub rtt: Option<Duration>,
    /// Smoothed round-trip time.
    pub smoothed_rtt: Option<Duration>,
    /// The window was what held the sender back while this data was in flight. When the application
    /// or the receiver was, the window proves nothing and must not grow (RFC 5681 section 3.1,
    /// RFC 7661).
    pub window_limited: bool,
    /// The sender is repairing after a retransmission timeout.
    pub after_timeout: bool,
}

/// State every controller has.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// Congestion window in octets.
    pub cwnd: u64,
    /// Slow start threshold in octets.
    pub ssthresh: u64,
    /// Sender maximum segment size: payload of a full segment.
    pub mss: u64,
    /// Most segments the window grows by per ACK in slow start (RFC 3465's `L`).
    byte_counting_limit: u64,
}

impl Window {
    fn new(config: &Config, mss: u32) -> Self {
        let mss = u64::from(mss);
        Self {
            cwnd: u64::from(config.initial_window.max(1)) * mss,
            // "The initial value of ssthresh SHOULD be set arbitrarily high" (RFC 5681 section 3.1).
            ssthresh: u64::MAX,
            mss,
            byte_counting_limit: u64::from(config.byte_counting_limit.max(1)),
        }
    }

    fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Slow start with appropriate byte counting: by what was acknowledged, at most `L` segments
    /// (RFC 3465 section 2.2), and at most one after a timeout, where one ACK may cover a whole
    /// window that left the network long ago (section 2.3). Returns the octets ssthresh left over.
    fn slow_start(&mut self, sample: &AckSample) -> u64 {
        let limit = if sample.after_timeout { 1 } else { self.byte_counting_limit };
        let growth = sample.acked.min(limit * self.mss);
        let room = self.ssthresh - self.cwnd;
        self.cwnd += growth.min(room);
        growth.saturating_sub(room)
    }

    /// "cwnd MUST be set to no more than the loss window, LW, which equals 1 full-sized segment"
    /// (RFC 5681 section 3.1).
    fn collapse(&mut self) {
        self.cwnd = self.mss;
    }
}

/// The controller of a connection.
#[derive(Clone, Debug)]
pub(crate) enum Controller {
    Reno(Reno),
    Cubic(Cubic),
}

impl Controller {
    pub fn new(config: &Config, mss: u32) -> Self {
        let window = Window::new(config, mss);
        match config.congestion {
            Congestion::NewReno => Self::Reno(Reno::new(window)),
            Congestion::Cubic => Self::Cubic(Cubic::new(window, config.slow_start == SlowStart::HyStart)),
        }
    }

    #[inline]
    fn window(&self) -> &Window {
        match self {
            Self::Reno(reno) => &reno.window,
            Self::Cubic(cubic) => &cubic.window,
        }
    }

    fn window_mut(&mut self) -> &mut Window {
        match self {
            Self::Reno(reno) => &mut reno.window,
            Self::Cubic(cubic) => &mut cubic.window,
        }
    }

    /// Octets that may be in the network.
    #[inline]
    pub fn cwnd(&self) -> u64 {
        self.window().cwnd
    }

    /// Slow start threshold in octets; `u64::MAX` until the first congestion event.
    pub fn ssthresh(&self) -> u64 {
        self.window().ssthresh
    }

    /// New data was acknowledged outside of fast recovery.
    pub fn on_ack(&mut self, sample: &AckSample) {
        match self {
            Self::Reno(reno) => reno.on_ack(sample),
            Self::Cubic(cubic) => cubic.on_ack(sample),
        }
    }

    /// Fast recovery begins. `flight` is what was in flight, without limited transmit.
    pub fn on_loss(&mut self, flight: u64) {
        match self {
            Self::Reno(reno) => reno.on_loss(flight),
            Self::Cubic(cubic) => cubic.on_loss(flight),
        }
    }

    /// The retransmission timer expired; `again` when it already had for the same segment, in which
    /// case ssthresh stays (RFC 5681 section 3.1).
    pub fn on_timeout(&mut self, flight: u64, again: bool) {
        match self {
            _ if again => self.window_mut().collapse(),
            Self::Reno(reno) => reno.on_timeout(flight),
            Self::Cubic(cubic) => cubic.on_timeout(flight),
        }
    }

    /// The window may not exceed `octets`: the burst limit at the end of fast recovery, the initial
    /// window after a lost SYN.
    pub fn limit(&mut self, octets: u64) {
        let window = self.window_mut();
        window.cwnd = window.cwnd.min(octets.max(window.mss));
    }

    /// Data is about to be sent after at least one RTO without any: "RW = min(IW, cwnd)"
    /// (RFC 5681 section 4.1). `idle` is how long.
    pub fn on_restart(&mut self, initial_window: u64, idle: Duration) {
        self.limit(initial_window);
        if let Self::Cubic(cubic) = self {
            cubic.on_restart(idle);
        }
    }
}
