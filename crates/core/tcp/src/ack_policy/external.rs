//! A user's own ACK policy, for experiments and for other languages.
//!
//! It is called for every segment with new data, and decides when to acknowledge. It is called through a lock and a
//! table of functions, so calls are slower.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::rtt::ReceiverRtt;
use super::{AckDecision, Disorder};
use tacit_packet::factory::{FactoryRef, Named};
use tacit_packet::units::{Bytes, Duration, Instant};

/// A policy of one receiver.
pub trait Acknowledge: Send {
    /// A segment with new data arrived.
    fn on_data(&mut self, arrival: &Arrival) -> AckDecision;

    /// The time requested with [`AckDecision::At`] has come.
    fn on_timer(&mut self, now: Instant) -> AckDecision;

    /// An acknowledgment of everything received was sent, by this policy or with data.
    fn on_ack_sent(&mut self);
}

/// Creates a policy for each receiver.
pub trait Factory: Named + Sync {
    /// Creates the policy of one receiver.
    fn acknowledge(&self) -> Box<dyn Acknowledge>;
}

/// A segment with new data, as a policy sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Time of arrival.
    pub now: Instant,
    /// Bytes of it that are new.
    pub new: Bytes,
    /// It is neither above a gap nor fills one.
    pub in_order: bool,
    /// Bytes behind gaps, after it.
    pub waiting: Bytes,
    /// The receiver's minimum round-trip time.
    pub rtt_min: Option<Duration>,
    /// The receiver's smoothed round-trip time.
    pub smoothed_rtt: Option<Duration>,
}

/// A [`Factory`] as a configuration holds it.
pub type External = FactoryRef<dyn Factory>;

/// A policy in use. Its code is kept out of line, so that the built-in policies are short enough to be inlined.
#[derive(Clone)]
pub(super) struct ExternalPolicy {
    pub rtt: ReceiverRtt,
    /// Shared by copies of a connection; only one of them is in use.
    policy: Arc<Mutex<Box<dyn Acknowledge>>>,
}

impl fmt::Debug for ExternalPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seat").field("rtt", &self.rtt).finish_non_exhaustive()
    }
}

impl ExternalPolicy {
    pub fn new(factory: External) -> Self {
        Self { rtt: ReceiverRtt::default(), policy: Arc::new(Mutex::new(factory.0.acknowledge())) }
    }

    fn call<T>(&self, question: impl FnOnce(&mut dyn Acknowledge) -> T) -> T {
        question(self.policy.lock().unwrap_or_else(PoisonError::into_inner).as_mut())
    }

    /// The decision of a policy; times in the past become `Now`.
    fn decided(
        &self,
        now: Instant,
        question: impl FnOnce(&mut dyn Acknowledge) -> AckDecision,
    ) -> AckDecision {
        match self.call(question) {
            AckDecision::At(at) if at <= now => AckDecision::Now,
            decision => decision,
        }
    }

    fn on_data(&self, now: Instant, new: u64, in_order: bool, waiting: u64) -> AckDecision {
        let arrival = Arrival {
            now,
            new: Bytes(new),
            in_order,
            waiting: Bytes(waiting),
            rtt_min: self.rtt.least(),
            smoothed_rtt: self.rtt.smoothed(),
        };
        self.decided(now, |policy| policy.on_data(&arrival))
    }

    #[cold]
    #[inline(never)]
    pub fn on_in_order(&self, bytes: u64, now: Instant) -> AckDecision {
        self.on_data(now, bytes, true, 0)
    }

    #[cold]
    #[inline(never)]
    pub fn on_out_of_order(&self, disorder: &Disorder<'_>) -> AckDecision {
        self.on_data(disorder.now, disorder.range.len(), false, disorder.queue.bytes())
    }

    #[cold]
    #[inline(never)]
    pub fn on_timer(&self, now: Instant) -> AckDecision {
        self.decided(now, |policy| policy.on_timer(now))
    }

    #[cold]
    #[inline(never)]
    pub fn on_ack_sent(&self) {
        self.call(|policy| policy.on_ack_sent());
    }
}
