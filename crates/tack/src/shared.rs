//! State common to a socket's driver, its endpoint and the handles of its connections: the hub, and the wakers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::clock::Clock;
use crate::hub::Hub;
use crate::shard::Shard;
use crate::slot::{Marks, Slot};
use crate::socket::Socket;

/// State shared by a socket of an endpoint, its connections and their streams.
pub(crate) struct Shared {
    hub: Mutex<Hub>,
    marks: Marks,
    pub shard: Shard,
    pub clock: Clock,
    /// The driver has something to do.
    pub work: Notify,
    /// A client connected, or the endpoint closed. All shards have this one.
    pub accept: Arc<Notify>,
    /// A connection went, or the driver ended. All shards have this one.
    pub connection_ended: Arc<Notify>,
    pub max_gso: usize,
    /// Bytes that the system holds, out and in.
    pub buffers: [usize; 2],
}

impl Shared {
    /// Joins `hub` with the rest of its `socket`'s state.
    pub fn new(
        hub: Hub,
        shard: Shard,
        clock: Clock,
        accept: Arc<Notify>,
        connection_ended: Arc<Notify>,
        socket: &Socket,
    ) -> Self {
        Self {
            hub: Mutex::new(hub),
            marks: Marks::default(),
            shard,
            clock,
            work: Notify::new(),
            accept,
            connection_ended,
            max_gso: socket.max_gso(),
            buffers: socket.buffers(),
        }
    }

    /// The hub, whose lock no task holds while waiting. It knows of all that users did before.
    pub fn hub(&self) -> MutexGuard<'_, Hub> {
        // A panic of another thread leaves every session as whole as each of its calls leaves it.
        let mut hub = self.hub.lock().unwrap_or_else(PoisonError::into_inner);
        hub.take_marks(&self.marks);
        hub
    }

    /// Tells the driver of a user's call on the session in `slot`.
    pub fn mark(&self, slot: &Slot) {
        if self.marks.mark(slot) {
            self.work.notify_one();
        }
    }
}
