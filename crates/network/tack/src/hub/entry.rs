//! A hub's record of one connection.

use std::net::SocketAddr;
use std::sync::Arc;

use tacit_packet::units::Instant;

use crate::admission::Attempt;
use crate::backlog::Backlog;
use crate::identity::PublicKey;
use crate::memory::Share;
use crate::session::Session;
use crate::slot::Slot;

/// A connection of a hub.
pub(super) struct Entry {
    pub slot: Arc<Slot>,
    /// It is in the queue of connections that may have something to send.
    pub queued: bool,
    pub deadline: Option<Instant>,
    /// Events that arrived while its user had the session locked.
    pub backlog: Backlog,
    /// The attempt that it belongs to, while it is half open.
    pub half_open: Option<Attempt>,
    /// For a client: the server that may reset it, and the server's number for the connection.
    pub reset_source: Option<(SocketAddr, u32)>,
    /// It was passed to the task that accepts connections, or it is a client's.
    pub announced: bool,
    /// Its use of memory, and the peer that is charged for it. These and the following fields are copies from the
    /// session, as of its last use.
    pub share: Share,
    pub peer: Option<PublicKey>,
    pub has_ended: bool,
}

impl Entry {
    /// For a session that no task has accepted yet.
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
