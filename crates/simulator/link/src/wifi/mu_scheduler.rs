//! Custom schedulers for multi-user PPDUs, for experiments and for other languages.
//!
//! 802.11ax leaves open which users share a PPDU and which clients a trigger addresses. Without a custom scheduler,
//! [`OfdmaConfig`](super::OfdmaConfig) decides. A custom scheduler is slower, because each call takes a lock and is
//! dispatched dynamically. Its choices are limited to what the standard allows.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tacit_packet::factory::{FactoryRef, Named};
use tacit_packet::units::{BitRate, Bytes, Duration, Instant};

use super::air::StationId;

/// A scheduler of an access point. It has no clock and no random numbers.
pub trait MuScheduler: Send {
    /// Chooses among `ready` for the access point's next data PPDU at `now`, by pushing the indices of its users to
    /// `users`, which is empty. `most` is the number of resource units available. All units have the largest size that
    /// gives each user one; a single user gets the whole channel. If no user is pushed, `ready[0]` gets the whole
    /// channel. `ready` is in the order of turns and has at least one entry.
    fn downlink(&mut self, now: Instant, ready: &[ReadyUser], most: usize, users: &mut Vec<usize>);

    /// Chooses among `clients` for a Basic Trigger at `now`, by pushing the indices of the clients to trigger to
    /// `asked`, which is empty. If none is pushed, the access point sends no trigger. This is called after each
    /// exchange, and again when the access point has won the medium; the second choice is used.
    fn uplink(&mut self, now: Instant, clients: &[UplinkClient], most: usize, asked: &mut Vec<usize>) {
        let _ = (now, clients, most, asked);
    }
}

/// Creates a scheduler for each access category of an access point.
pub trait MuSchedulerFactory: Named + Sync {
    /// Creates a scheduler without any history.
    fn scheduler(&self) -> Box<dyn MuScheduler>;
}

/// A [`MuSchedulerFactory`] in a configuration.
pub type ExternalMuScheduler = FactoryRef<dyn MuSchedulerFactory>;

/// A client with data waiting at the access point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyUser {
    /// The client.
    pub client: StationId,
    /// Packets waiting for it, including those to be sent again.
    pub packets: u32,
    /// Bytes of these packets.
    pub bytes: Bytes,
    /// How long the oldest packet has waited.
    pub oldest: Duration,
    /// Its PHY rate over the whole channel, downlink.
    pub rate: BitRate,
}

/// A client, as the access point knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UplinkClient {
    /// The client.
    pub client: StationId,
    /// Bytes in its last report (Queue Size, in units of 256 bytes).
    pub reported: Bytes,
    /// Data MPDUs sent to it since that report; their ACKs are still due.
    pub sent_mpdus: u32,
    /// Time since that report.
    pub silent: Duration,
    /// MPDUs that it sent in the current second or the one before; the larger number.
    pub mpdus_per_s: u32,
    /// Its PHY rate over the whole channel, uplink.
    pub rate: BitRate,
}

/// A running scheduler. Copies of an access point share it.
#[derive(Clone)]
pub(crate) struct SchedulerHandle(Arc<Mutex<Box<dyn MuScheduler>>>);

impl SchedulerHandle {
    pub fn new(factory: ExternalMuScheduler) -> Self {
        Self(Arc::new(Mutex::new(factory.0.scheduler())))
    }

    /// Calls [`MuScheduler::downlink`].
    pub fn downlink(&self, now: Instant, ready: &[ReadyUser], most: usize) -> Vec<usize> {
        self.choose(ready.len(), most, |scheduler, users| scheduler.downlink(now, ready, most, users))
    }

    /// Calls [`MuScheduler::uplink`].
    pub fn uplink(&self, now: Instant, clients: &[UplinkClient], most: usize) -> Vec<usize> {
        self.choose(clients.len(), most, |scheduler, asked| scheduler.uplink(now, clients, most, asked))
    }

    /// The first `most` distinct indices below `count` that the scheduler chose.
    fn choose(
        &self,
        count: usize,
        most: usize,
        ask: impl FnOnce(&mut dyn MuScheduler, &mut Vec<usize>),
    ) -> Vec<usize> {
        let mut chosen = Vec::new();
        // A scheduler that panicked elsewhere is still asked, because it affects only its own access point.
        ask(self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut(), &mut chosen);
        let mut is_free = vec![true; count];
        chosen.retain(|position| is_free.get_mut(*position).is_some_and(std::mem::take));
        chosen.truncate(most);
        chosen
    }
}

impl fmt::Debug for SchedulerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SchedulerHandle").finish_non_exhaustive()
    }
}
