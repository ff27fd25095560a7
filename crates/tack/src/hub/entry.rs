//! A hub's record of one of its connections.

use std::net::SocketAddr;
use std::sync::Arc;

use tacit_proto::units::Instant;

use crate::admission::Attempt;
use crate::backlog::Backlog;
use crate::identity::PublicKey;
use crate::memory::Share;
use crate::session::Session;
use crate::slot::Slot;

/// A connection of a hub.
pub(super) struct Entry {
    pub slot: Arc<Slot>,
    /// In the queue of those that may have something to send.
    pub queued: bool,
    pub deadline: Option<Instant>,
    /// Arrivals while its user had the session locked.
    pub backlog: Backlog,
    /// It counts as half open; where it came from.
    pub half_open: Option<Attempt>,
    /// A client's: the server that may reset it, and the server's number of the connection.
    pub reset_source: Option<(SocketAddr, u32)>,
    /// It was handed to the task that accepts, or is a client's.
    pub announced: bool,
    /// Its share of the memory, and the peer that is charged for it. These and the next are the session's when it was looked at last.
    pub share: Share,
    pub peer: Option<PublicKey>,
    pub has_ended: bool,
}

impl Entry {
    /// Of a session that no task has seen yet.
    pub fn new(id: u32, session: Session, half_open: Option<Attempt>) -> Self {
        Self {
            slot: Slot::new(id, session),
            queued: false,
            deadline: None,
            backlog: Backlog::default(),
            announced: half_open.is_none(),
            half_open,
            reset_source: None,
            share: Share::default(),
            peer: None,
            has_ended: false,
        }
    }
}
