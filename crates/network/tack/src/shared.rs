//! State shared by a socket's driver, its endpoint and the handles of its connections: the hub, and the wakers.

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
    /// Notifies the driver that there is work.
    pub work: Notify,
    /// A client has connected, or the endpoint was closed. Shared by all shards.
    pub accept: Arc<Notify>,
    /// A connection has ended, or the driver has. Shared by all shards.
    pub connection_ended: Arc<Notify>,
    pub max_gso: usize,
    /// Sizes of the system's buffers for sending and receiving, in bytes.
    pub buffers: [usize; 2],
}

impl Shared {
    /// Combines `hub` with the rest of its `socket`'s state.
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

    /// Locks the hub, which then has processed all marks of users. No task holds this lock across an await.
    pub fn hub(&self) -> MutexGuard<'_, Hub> {
        // A poisoned lock can be used: every call leaves a session in a consistent state.
        let mut hub = self.hub.lock().unwrap_or_else(PoisonError::into_inner);
        hub.take_marks(&self.marks);
        hub
    }

    /// Notifies the driver of a user's call on the session in `slot`.
    pub fn mark(&self, slot: &Slot) {
        if self.marks.mark(slot) {
            self.work.notify_one();
        }
    }
}
