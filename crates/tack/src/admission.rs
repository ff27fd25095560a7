//! Admission of clients at a server. A client that has not authenticated costs memory, and its source address may be spoofed.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use tacit_proto::units::Instant;
use zeroize::Zeroizing;

use crate::error::Busy;
use crate::handshake::Initiation;
use crate::identity::PublicKey;
use crate::token::{Token, TokenIssuer};

/// Half-open connections from which on a client has to show first that it is where it says it is. Ours.
pub(crate) const RETRY_FROM: usize = 32;

/// Half-open connections at most; further initiations go unanswered. Ours.
pub(crate) const MAX_HALF_OPEN: usize = 1024;

/// Identifies one attempt of a client: its address, its connection ID, and its ephemeral key, for any host may send a datagram
/// from that address with that ID.
pub(crate) type Attempt = (SocketAddr, u32, [u8; 32]);

/// Decides by its public key whether a client may connect to a server.
pub(crate) type Clients = Arc<dyn Fn(&PublicKey) -> bool + Send + Sync>;

/// Outcome of a client's first datagram.
pub(crate) enum Verdict {
    /// A handshake begins, if the datagram is one.
    Begins(Attempt),
    /// It came before, and this half-open connection was made.
    Again(u32),
    /// The client is to say it again with this token.
    Retry(Token),
    /// There is no room.
    Busy(Busy),
}

/// The door of a server; that of a client is shut.
pub(crate) struct Admission {
    clients: Option<Clients>,
    tokens: TokenIssuer,
    half_open: HashMap<Attempt, u32>,
}

impl Admission {
    /// Of a server that takes the clients that `clients` says; of a client where that is `None`.
    ///
    /// # Panics
    /// Where the system has no random numbers to give.
    pub fn new(clients: Option<Clients>) -> Self {
        let mut secret = Zeroizing::new([0; 32]);
        getrandom::fill(secret.as_mut_slice()).expect("the system has random numbers");
        Self { clients, tokens: TokenIssuer::new(&secret), half_open: HashMap::new() }
    }

    /// True for the door of a server.
    pub fn is_server(&self) -> bool {
        self.clients.is_some()
    }

    /// True where the client that has proved to have this key may connect.
    pub fn allows(&self, peer: &PublicKey) -> bool {
        self.clients.as_ref().is_some_and(|may| may(peer))
    }

    /// Decides on the `initiation` that came from `from`; `has_room` says that one more connection may be open.
    pub fn verdict(
        &self,
        now: Instant,
        from: SocketAddr,
        initiation: &Initiation<'_>,
        has_room: bool,
    ) -> Verdict {
        let client = initiation.client;
        let attempt = (from, client.0, initiation.ephemeral());
        if let Some(id) = self.half_open.get(&attempt) {
            return Verdict::Again(*id);
        }
        let shown = initiation.token.is_some_and(|token| self.tokens.is_valid(now, &token, from, client));
        if !shown && self.half_open.len() >= RETRY_FROM {
            Verdict::Retry(self.tokens.make(now, from, client))
        } else if self.half_open.len() >= MAX_HALF_OPEN {
            Verdict::Busy(Busy::Handshakes)
        } else if !has_room {
            Verdict::Busy(Busy::Connections)
        } else {
            Verdict::Begins(attempt)
        }
    }

    /// The connection `id` is half open.
    pub fn begin(&mut self, attempt: Attempt, id: u32) {
        self.half_open.insert(attempt, id);
    }

    /// It no longer is.
    pub fn end(&mut self, attempt: &Attempt) {
        self.half_open.remove(attempt);
    }

    /// Half-open connections.
    pub fn half_open(&self) -> usize {
        self.half_open.len()
    }
}
