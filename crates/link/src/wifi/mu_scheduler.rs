//! A scheduler of one's own for PPDUs of several users: for experiments, and for other languages.
//!
//! 802.11ax leaves open which users share a PPDU and which clients a trigger asks. Without a scheduler from outside,
//! [`OfdmaConfig`](super::OfdmaConfig) decides. One from outside may be slow: it is called through a lock and a table of functions. Its
//! answers are kept within the standard's limits.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tacit_proto::factory::{FactoryRef, Named};
use tacit_proto::units::{BitRate, Bytes, Duration, Instant};

use super::air::StationId;

/// A scheduler of an access point. It has no clock and no random numbers of its own.
pub trait MuScheduler: Send {
    /// Chooses among `ready` for the access point's next PPDU of data at `now`: pushes the positions of its users to `users`, which is
    /// empty. `most` is as many as there are resource units; units are of one size, the largest of which there are enough. One user has
    /// the whole channel. Without any, `ready[0]` has. `ready` is in the order of turns and has one entry at least.
    fn downlink(&mut self, now: Instant, ready: &[ReadyUser], most: usize, users: &mut Vec<usize>);

    /// Chooses among `clients` for a Basic Trigger at `now`: pushes the positions of those that it asks to `asked`, which is empty.
    /// Without any, the access point sends no trigger. It is called after each exchange, and again when the access point has won the
    /// medium: its choice then counts.
    fn uplink(&mut self, now: Instant, clients: &[UplinkClient], most: usize, asked: &mut Vec<usize>) {
        let _ = (now, clients, most, asked);
    }
}

/// Makes a scheduler for each access category of an access point.
pub trait MuSchedulerFactory: Named + Sync {
    /// A scheduler that knows nothing yet.
    fn scheduler(&self) -> Box<dyn MuScheduler>;
}

/// A [`MuSchedulerFactory`] as a configuration holds it.
pub type ExternalMuScheduler = FactoryRef<dyn MuSchedulerFactory>;

/// A client that the access point has data for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyUser {
    /// Which one.
    pub client: StationId,
    /// Packets that wait for it, those to be sent again included.
    pub packets: u32,
    /// Bytes of these packets.
    pub bytes: Bytes,
    /// How long the oldest has waited.
    pub oldest: Duration,
    /// The PHY's rate to it over the whole channel.
    pub rate: BitRate,
}

/// A client as its access point knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UplinkClient {
    /// Which one.
    pub client: StationId,
    /// Bytes that it last said it has (Queue Size, in units of 256 bytes).
    pub reported: Bytes,
    /// MPDUs of data that it was sent since: their ACKs are to come.
    pub sent_mpdus: u32,
    /// Time since it said so.
    pub silent: Duration,
    /// MPDUs that it sent in the busier of this second and the one before.
    pub mpdus_per_s: u32,
    /// The PHY's rate from it over the whole channel.
    pub rate: BitRate,
}

/// One at work. Copies of an access point share it.
#[derive(Clone)]
pub(crate) struct SchedulerHandle(Arc<Mutex<Box<dyn MuScheduler>>>);

impl SchedulerHandle {
    pub fn new(factory: ExternalMuScheduler) -> Self {
        Self(Arc::new(Mutex::new(factory.0.scheduler())))
    }

    /// See [`MuScheduler::downlink`].
    pub fn downlink(&self, now: Instant, ready: &[ReadyUser], most: usize) -> Vec<usize> {
        self.choose(ready.len(), most, |scheduler, users| scheduler.downlink(now, ready, most, users))
    }

    /// See [`MuScheduler::uplink`].
    pub fn uplink(&self, now: Instant, clients: &[UplinkClient], most: usize) -> Vec<usize> {
        self.choose(clients.len(), most, |scheduler, asked| scheduler.uplink(now, clients, most, asked))
    }

    /// The first `most` different positions below `count` that it chose.
    fn choose(
        &self,
        count: usize,
        most: usize,
        ask: impl FnOnce(&mut dyn MuScheduler, &mut Vec<usize>),
    ) -> Vec<usize> {
        let mut chosen = Vec::new();
        // One that panicked elsewhere is asked again: it does no harm but to its own access point.
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
