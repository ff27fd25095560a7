//! Congestion control: how many bytes may be in flight, and how fast they are sent.
//!
//! A [`Controller`] receives events and returns a window, and a pacing rate if it has one. It neither detects losses nor
//! selects data to send. Windows are in bytes and arithmetic is in integers, so that a run is equal on every machine.
//!
//! Window-based controllers receive newly acknowledged data ([`AckSample`], outside fast recovery), losses and timeouts.
//! A controller that asks for it ([`Controller::wants_delivery`]) receives every ACK in every phase, with the delivered
//! bytes, the delivery rate and the clocks that the ACK carries ([`Delivery`]).
//!
//! A controller that acts without ACKs has a deadline ([`Controller::poll_timeout`]).
//!
//! Each controller implements the trait `CongestionControl`, including a user's own ([`external`]). [`Controller`] chooses
//! among them, and applies the rules they share.
//!
//! The crate also has the parts that every transport needs: pacing, rate samples, round-trip time estimates. It refers to no transport.

#[cfg(feature = "alarm")]
mod alarm;
pub mod bbr;
pub mod chance;
mod config;
mod control;
mod copa;
pub mod cubic;
pub mod external;
mod hystart;
pub mod pacing;
mod pcc;
mod prague;
pub mod rate;
mod reno;
pub mod rre;
pub mod rtt;
mod signals;
mod vegas;
mod window;

use control::{CongestionControl, Pause};
use pacing::{Bursts, Pacer};
use rate::RateSampler;
use tacit_packet::units::{BitRate, Duration, Instant};
use window::Window;

pub use config::{Algorithm, Config};
pub use pacing::Pacing;
pub use signals::{AckSample, Delivery, ReceiverReport, Repair, Stamps, Start};

/// The controller of a connection.
#[derive(Clone, Debug)]
pub struct Controller(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Reno(reno::Reno),
    Cubic(cubic::Cubic),
    Bbr(Box<bbr::Bbr>),
    Bbr3(Box<bbr::Bbr3>),
    TackBbr(Box<bbr::TackBbr>),
    Vegas(vegas::Vegas),
    Copa(Box<copa::Copa>),
    Pcc(Box<pcc::Pcc>),
    Prague(prague::Prague),
    Rre(Box<rre::Rre>),
    External(Box<external::ExternalController>),
    #[cfg(feature = "alarm")]
    Alarm(alarm::Alarm),
}

impl Controller {
    /// The controller that `config` asks for, of a connection whose full segments have `mss` bytes of payload.
    pub fn new(config: &Config, mss: u32, start: Start) -> Self {
        let window = config.window(mss);
        Self(match config.algorithm {
            Algorithm::NewReno => Kind::Reno(reno::Reno::new(window)),
            Algorithm::Cubic(config) => Kind::Cubic(cubic::Cubic::new(window, config)),
            Algorithm::Vegas => Kind::Vegas(vegas::Vegas::new(window)),
            Algorithm::Copa => Kind::Copa(Box::new(copa::Copa::new(window))),
            Algorithm::Allegro => Kind::Pcc(Box::new(pcc::Pcc::new(window, pcc::Law::Allegro, start))),
            Algorithm::Vivace => Kind::Pcc(Box::new(pcc::Pcc::new(window, pcc::Law::Vivace, start))),
            Algorithm::Prague => Kind::Prague(prague::Prague::new(window)),
            Algorithm::Rre(config) => Kind::Rre(Box::new(rre::Rre::new(window, config, start))),
            Algorithm::Bbr(config) => Kind::Bbr(Box::new(bbr::Bbr::new(window, config, start))),
            Algorithm::Bbr3 => Kind::Bbr3(Box::new(bbr::Bbr3::new(window, start))),
            Algorithm::TackBbr(config) => Kind::TackBbr(Box::new(bbr::TackBbr::new(window, config, start))),
            Algorithm::External(factory) => {
                Kind::External(Box::new(external::ExternalController::new(window, factory)))
            }
        })
    }

    /// A controller that halves its window whenever 50 ms pass without an ACK, for tests of connections.
    #[cfg(feature = "alarm")]
    pub fn alarm(config: &Config, mss: u32) -> Self {
        Self(Kind::Alarm(alarm::Alarm::new(config.window(mss))))
    }

    /// Shares what is known of the client from now on, if the controller has a use for it.
    pub fn recall(&mut self, client: &rre::SharedClient, now: Instant) {
        if let Kind::Rre(rre) = &mut self.0 {
            rre.recall(client.clone(), now);
        }
    }

    fn inner(&self) -> &dyn CongestionControl {
        match &self.0 {
            Kind::Reno(reno) => reno,
            Kind::Cubic(cubic) => cubic,
            Kind::Bbr(bbr) => bbr.as_ref(),
            Kind::Bbr3(bbr) => bbr.as_ref(),
            Kind::TackBbr(bbr) => bbr.as_ref(),
            Kind::Vegas(vegas) => vegas,
            Kind::Copa(copa) => copa.as_ref(),
            Kind::Pcc(pcc) => pcc.as_ref(),
            Kind::Prague(prague) => prague,
            Kind::Rre(rre) => rre.as_ref(),
            Kind::External(external) => external.as_ref(),
            #[cfg(feature = "alarm")]
            Kind::Alarm(alarm) => alarm,
        }
    }

    fn inner_mut(&mut self) -> &mut dyn CongestionControl {
        match &mut self.0 {
            Kind::Reno(reno) => reno,
            Kind::Cubic(cubic) => cubic,
            Kind::Bbr(bbr) => bbr.as_mut(),
            Kind::Bbr3(bbr) => bbr.as_mut(),
            Kind::TackBbr(bbr) => bbr.as_mut(),
            Kind::Vegas(vegas) => vegas,
            Kind::Copa(copa) => copa.as_mut(),
            Kind::Pcc(pcc) => pcc.as_mut(),
            Kind::Prague(prague) => prague,
            Kind::Rre(rre) => rre.as_mut(),
            Kind::External(external) => external.as_mut(),
            #[cfg(feature = "alarm")]
            Kind::Alarm(alarm) => alarm,
        }
    }

    /// CUBIC is tested first: this runs for every ACK and every segment, and a comparison costs less than a jump table.
    fn window(&self) -> &Window {
        if let Kind::Cubic(cubic) = &self.0 { cubic.window() } else { self.window_of_any() }
    }

    #[inline(never)]
    fn window_of_any(&self) -> &Window {
        self.inner().window()
    }

    /// Most bytes that may be in flight.
    #[inline]
    pub fn cwnd(&self) -> u64 {
        self.window().cwnd
    }

    /// Slow start threshold in bytes; `u64::MAX` until the first congestion event.
    pub fn ssthresh(&self) -> u64 {
        self.window().ssthresh
    }

    /// New data was acknowledged outside of fast recovery.
    pub fn on_ack(&mut self, sample: &AckSample) {
        self.inner_mut().on_ack(sample);
    }

    /// True for a controller that answers the share of congestion marks: it needs [`Self::on_marks`], and receivers
    /// that tell which data was marked.
    pub fn is_scalable(&self) -> bool {
        self.inner().is_scalable()
    }

    /// New data was acknowledged, in any phase; `is_marked` if it was marked. Called only if [`Self::is_scalable`].
    pub fn on_marks(&mut self, sample: &AckSample, is_marked: bool) {
        self.inner_mut().on_marks(sample, is_marked);
    }

    /// Fast recovery begins, or an ECN echo is treated as a loss (RFC 3168 section 6.1.2); BBR ignores the latter.
    /// `flight` is the number of bytes in flight, not counting limited transmit.
    pub fn on_loss(&mut self, flight: u64) {
        self.inner_mut().on_loss(flight);
    }

    /// The retransmission timer expired. `again` is true if it had already expired for the same segment; ssthresh then
    /// remains unchanged (RFC 5681 section 3.1).
    pub fn on_timeout(&mut self, now: Instant, flight: u64, again: bool) {
        let inner = self.inner_mut();
        if again && !inner.wants_delivery() {
            inner.window_mut().collapse();
        } else {
            inner.on_timeout(now, flight);
        }
    }

    /// Limits the window to `bytes`: the burst limit at the end of fast recovery, or the initial window after a lost
    /// SYN.
    pub fn limit(&mut self, bytes: u64) {
        let window = self.inner_mut().window_mut();
        window.cwnd = window.cwnd.min(bytes.max(window.mss));
    }

    /// Data is about to be sent after an idle time of at least one RTO: "RW = min(IW, cwnd)" (RFC 5681 section 4.1).
    /// `idle` is the length of that time.
    pub fn on_restart(&mut self, initial_window: u64, idle: Duration) {
        self.limit(initial_window);
        self.inner_mut().on_restart(idle);
    }

    /// The latest reduction was unnecessary; `before` is the controller's state before it. A controller that has
    /// measured since then keeps its estimates and gets only the old window.
    pub fn undo(&mut self, before: Self) {
        if self.wants_delivery() {
            self.inner_mut().on_undo(before.cwnd());
        } else {
            *self = before;
        }
    }

    /// True for a controller that also sets its window in recovery and after idle times; Reno's rules must not be
    /// applied to it.
    pub fn sets_window_itself(&self) -> bool {
        self.wants_delivery()
    }

    /// True for a controller driven by delivery samples: it needs [`Self::on_delivery`], works only with pacing, and
    /// sets its own window.
    pub fn wants_delivery(&self) -> bool {
        self.inner().wants_delivery()
    }

    /// The pacer for a sender with `bursts`, if `pacing` requires one.
    pub fn pacer(&self, pacing: Pacing, bursts: Bursts) -> Option<Pacer> {
        let paced = match pacing {
            // Bursts would be marked (draft-briscoe-iccrg-prague-congestion-control section 2.4.5).
            Pacing::Auto => self.wants_delivery() || self.is_scalable(),
            Pacing::On => true,
            Pacing::Off => false,
        };
        paced.then(|| Pacer::new(bursts))
    }

    /// Reports an ACK, after all other calls that the ACK caused. Called only if [`Self::wants_delivery`].
    pub fn on_delivery(&mut self, delivery: &Delivery) {
        self.inner_mut().on_delivery(delivery);
    }

    /// True while the controller deliberately sends less to measure something else. Delivery rates then say no more
    /// about the network than when the application limits the sender.
    pub fn holds_back(&self) -> bool {
        self.inner().holds_back()
    }

    /// Bytes to send while reports are `late`, of a controller that sends at the rate reported by the receiver.
    pub fn amount_reported_late(&self, late: Duration) -> u64 {
        self.inner().amount_reported_late(late)
    }

    /// True until the controller has first found the path's bandwidth.
    pub fn in_start_up(&self) -> bool {
        self.inner().in_start_up()
    }

    /// Name of its current state, for plots and people; must not be used for decisions.
    pub fn state(&self) -> Option<&'static str> {
        self.inner().state()
    }

    /// When [`Self::handle_timeout`] is due if no ACK arrives. The owner asks after each call. It obeys the deadline
    /// only while data is in flight or waiting, because otherwise no ACK is due.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        // CUBIC first, as for its window: it acts only on ACKs, losses and the sender's own timers.
        if let Kind::Cubic(_) = &self.0 { None } else { self.inner().poll_timeout() }
    }

    /// Performs the actions due at `now`. Calling it early has no effect.
    #[inline]
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.poll_timeout().is_some_and(|at| now >= at) {
            self.inner_mut().handle_timeout(now);
        }
    }

    /// Data is about to be sent while none is in flight; `rate` is the rate sampler, if the sender has sent before.
    pub fn on_transmit_start(&mut self, now: Instant, rate: Option<&RateSampler>) {
        let pause = match rate.map(RateSampler::limited_by_application) {
            None => Pause::Unknown,
            Some(true) => Pause::Application,
            Some(false) => Pause::SlowRate,
        };
        self.inner_mut().on_transmit_start(now, pause);
    }

    /// The pacing rate; `None` while there is none. A controller that has only a window is paced at 200 % of the window
    /// per smoothed round-trip time while far below ssthresh, then at 120 % (Linux `tcp_pacing_ss_ratio`,
    /// `tcp_pacing_ca_ratio`).
    pub fn pacing_rate(&self, smoothed_rtt: Option<Duration>, in_flight: u64) -> Option<BitRate> {
        self.inner().pacing_rate(smoothed_rtt, in_flight)
    }
}

/// Tests the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
