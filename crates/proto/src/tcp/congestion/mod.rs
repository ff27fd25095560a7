//! Congestion control: how many octets may be in the network.
//!
//! A controller is told what happened and answers with a window, and with a pacing rate if it has
//! one; it never decides what is lost or what to send. Windows are in octets and arithmetic is in
//! integers, so a run is the same on every machine.
//!
//! There are two ways to be told. A window-based controller hears of new data acknowledged
//! ([`AckSample`], outside fast recovery), of losses and of timeouts. One that asks for it
//! ([`Controller::wants_delivery`]) hears of every ACK, whatever it reports and in any phase, with what
//! it delivered, how fast, and the timestamps on it ([`Delivery`]).

mod bbr;
mod copa;
mod cubic;
mod hystart;
mod reno;
mod vegas;

use super::config::{Config, Congestion, SlowStart};
use super::position::Position;
use super::rate::{RateSample, RateSampler};
use super::segment::Timestamps;
use crate::units::{BitRate, Bytes, Duration, Instant};

pub(crate) use bbr::Bbr;
pub(crate) use copa::Copa;
pub(crate) use cubic::Cubic;
pub(crate) use reno::Reno;
pub(crate) use vegas::Vegas;

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

/// What the sender is repairing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Repair {
    /// Nothing.
    #[default]
    None,
    /// Fast recovery.
    Fast,
    /// What was outstanding at a retransmission timeout.
    Timeout,
}

/// All that one ACK told, for controllers that ask.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    /// When it arrived.
    pub now: Instant,
    /// What it delivered, and how fast.
    pub sample: RateSample,
    /// Octets newly held lost.
    pub lost: u64,
    /// Octets thought to be in the network before it.
    pub prior_in_flight: u64,
    /// And after it.
    pub in_flight: u64,
    /// The phase it led to.
    pub repair: Repair,
    /// Smoothed round-trip time.
    pub smoothed_rtt: Option<Duration>,
    /// Its timestamps, where those are in use: the receiver's clock when the ACK was made, and ours,
    /// with its offset, when what it answers was sent (TCP-RRE lives on these).
    #[expect(dead_code, reason = "no controller reads them yet")]
    pub stamps: Option<Timestamps>,
}

/// What is known when data starts to flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Start {
    /// What chance derives from: the same in each run, different in each connection.
    pub seed: u32,
    /// Round-trip time of the handshake, where it could be measured.
    pub rtt: Option<Duration>,
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

    /// "ssthresh = max (FlightSize / 2, 2*SMSS)" (RFC 5681 equation 4).
    fn halve_ssthresh(&mut self, flight: u64) {
        self.ssthresh = (flight / 2).max(2 * self.mss);
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
    Bbr(Box<Bbr>),
    Vegas(Vegas),
    Copa(Box<Copa>),
}

impl Controller {
    pub fn new(config: &Config, mss: u32, start: Start) -> Self {
        let window = Window::new(config, mss);
        match config.congestion {
            Congestion::NewReno => Self::Reno(Reno::new(window)),
            Congestion::Cubic => Self::Cubic(Cubic::new(window, config.slow_start == SlowStart::HyStart)),
            Congestion::Vegas => Self::Vegas(Vegas::new(window)),
            Congestion::Copa => Self::Copa(Box::new(Copa::new(window))),
            Congestion::Bbr => Self::Bbr(Box::new(Bbr::new(window, start, config.bbr_policer))),
        }
    }

    /// CUBIC first: every ACK and every segment ask, and a comparison costs less than a jump table.
    #[inline]
    fn window(&self) -> &Window {
        if let Self::Cubic(cubic) = self { &cubic.window } else { self.window_of_any() }
    }

    #[inline(never)]
    fn window_of_any(&self) -> &Window {
        match self {
            Self::Reno(reno) => &reno.window,
            Self::Cubic(cubic) => &cubic.window,
            Self::Bbr(bbr) => &bbr.window,
            Self::Vegas(vegas) => &vegas.window,
            Self::Copa(copa) => &copa.window,
        }
    }

    fn window_mut(&mut self) -> &mut Window {
        match self {
            Self::Reno(reno) => &mut reno.window,
            Self::Cubic(cubic) => &mut cubic.window,
            Self::Bbr(bbr) => &mut bbr.window,
            Self::Vegas(vegas) => &mut vegas.window,
            Self::Copa(copa) => &mut copa.window,
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
            Self::Vegas(vegas) => vegas.on_ack(sample),
            Self::Bbr(_) | Self::Copa(_) => {}
        }
    }

    /// Fast recovery begins, or an ECN echo is answered as a loss (RFC 3168 section 6.1.2); BBR takes no notice of
    /// the latter. `flight` is what was in flight, without limited transmit.
    pub fn on_loss(&mut self, flight: u64) {
        match self {
            Self::Reno(reno) => reno.on_loss(flight),
            Self::Cubic(cubic) => cubic.on_loss(flight),
            Self::Vegas(vegas) => vegas.on_loss(flight),
            Self::Bbr(bbr) => bbr.on_loss(),
            Self::Copa(copa) => copa.on_loss(),
        }
    }

    /// The retransmission timer expired; `again` when it already had for the same segment, in which
    /// case ssthresh stays (RFC 5681 section 3.1).
    pub fn on_timeout(&mut self, flight: u64, again: bool) {
        match self {
            Self::Bbr(bbr) => bbr.on_timeout(),
            Self::Copa(copa) => copa.on_timeout(),
            _ if again => self.window_mut().collapse(),
            Self::Reno(reno) => reno.on_timeout(flight),
            Self::Cubic(cubic) => cubic.on_timeout(flight),
            Self::Vegas(vegas) => vegas.on_timeout(flight),
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

    /// The latest reduction was needless; `before` is the controller before it. One that has gone on
    /// measuring since keeps what it knows.
    pub fn undo(&mut self, before: Self) {
        match self {
            Self::Bbr(bbr) => bbr.on_undo(),
            Self::Copa(copa) => copa.window.cwnd = copa.window.cwnd.max(before.cwnd()),
            Self::Reno(_) | Self::Cubic(_) | Self::Vegas(_) => *self = before,
        }
    }

    /// True for a controller that decides on its window in recovery and after idling too, and wants
    /// no rule of Reno's applied to it.
    pub fn sets_window_itself(&self) -> bool {
        matches!(self, Self::Bbr(_) | Self::Copa(_))
    }

    /// True for a controller that wants [`Self::on_delivery`].
    pub fn wants_delivery(&self) -> bool {
        matches!(self, Self::Bbr(_) | Self::Copa(_))
    }

    /// True for a controller that is itself only when its segments are paced.
    pub fn wants_pacing(&self) -> bool {
        matches!(self, Self::Bbr(_) | Self::Copa(_))
    }

    /// An ACK was taken in, after all the other calls it led to. Only where
    /// [`Self::wants_delivery`] says so.
    pub fn on_delivery(&mut self, delivery: &Delivery) {
        match self {
            Self::Bbr(bbr) => bbr.on_delivery(delivery),
            Self::Copa(copa) => copa.on_delivery(delivery),
            Self::Reno(_) | Self::Cubic(_) | Self::Vegas(_) => {}
        }
    }

    /// True while the controller sends less than it could to measure something else: what is delivered
    /// then says as little about the network as when the application holds back.
    pub fn holds_back(&self) -> bool {
        matches!(self, Self::Bbr(bbr) if bbr.holds_back())
    }

    /// Data is about to be sent when none was in flight.
    pub fn on_transmit_start(&mut self, now: Instant, rate: Option<&RateSampler>) {
        if let (Self::Bbr(bbr), Some(rate)) = (self, rate) {
            bbr.on_transmit_start(now, rate.limited_by_application());
        }
    }

    /// The rate to pace at, `None` while there is none. For a controller that knows only a window: 200 %
    /// of it per smoothed round-trip time while far from ssthresh, then 120 % (Linux
    /// `tcp_pacing_ss_ratio`, `tcp_pacing_ca_ratio`).
    pub fn pacing_rate(&self, smoothed_rtt: Option<Duration>, in_flight: u64) -> Option<BitRate> {
        match self {
            Self::Bbr(bbr) => Some(bbr.pacing_rate()),
            Self::Copa(copa) => copa.pacing_rate(),
            Self::Reno(_) | Self::Cubic(_) | Self::Vegas(_) => {
                let window = self.window();
                let percent = if window.cwnd < window.ssthresh / 2 { 200 } else { 120 };
                BitRate::from_amount(Bytes(window.cwnd.max(in_flight) * percent / 100), smoothed_rtt?)
            }
        }
    }
}
