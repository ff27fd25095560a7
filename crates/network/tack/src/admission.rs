//! Admission of clients at a server. A client that has not authenticated costs memory, and its source address may be
//! spoofed.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use tacit_packet::units::Instant;
use zeroize::Zeroizing;

use crate::error::Busy;
use crate::handshake::Initiation;
use crate::identity::PublicKey;
use crate::token::{Token, TokenIssuer};

/// Number of half-open connections from which on a client must first prove its source address (Retry). Ours.
pub(crate) const RETRY_FROM: usize = 32;

/// Most half-open connections; further initiations are answered with [`Busy::Handshakes`]. Ours.
pub(crate) const MAX_HALF_OPEN: usize = 1024;

/// Identifies one attempt of a client: its address, its connection ID and the
/// [transcript](Initiation::transcript) so far. The latter is needed because any host may send a datagram with that
/// address and ID.
pub(crate) type Attempt = (SocketAddr, u32, Vec<u8>);

/// Decides by the public key whether a client may connect to a server.
pub(crate) type Clients = Arc<dyn Fn(&PublicKey) -> bool + Send + Sync>;

/// Outcome of a client's first datagram.
pub(crate) enum Verdict {
    /// A handshake begins, if the datagram is valid.
    Begins(Attempt),
    /// A repeated datagram, for which this half-open connection already exists.
    Again(u32),
    /// The client must repeat its datagram with this token.
    Retry(Token),
    /// There is no room.
    Busy(Busy),
}

/// Admission state of an endpoint; a client admits no connections.
pub(crate) struct Admission {
    clients: Option<Clients>,
    tokens: TokenIssuer,
    half_open: HashMap<Attempt, u32>,
}

impl Admission {
    /// For a server that admits the clients that `clients` accepts, or for a client (`None`).
    ///
    /// # Panics
    /// If the system has no random numbers.
    pub fn new(clients: Option<Clients>) -> Self {
        let mut secret = Zeroizing::new([0; 32]);
        getrandom::fill(secret.as_mut_slice()).expect("the system has random numbers");
        Self { clients, tokens: TokenIssuer::new(&secret), half_open: HashMap::new() }
    }

    /// True for a server.
    pub fn is_server(&self) -> bool {
        self.clients.is_some()
    }

    /// True if a client that has proved to have this key may connect.
    pub fn allows(&self, peer: &PublicKey) -> bool {
        self.clients.as_ref().is_some_and(|may| may(peer))
    }

    /// Decides on the `initiation` received from `from`. `has_room` is true if another connection may be opened.
    pub fn verdict(
        &self,
        now: Instant,
        from: SocketAddr,
        initiation: &Initiation<'_>,
        has_room: bool,
    ) -> Verdict {
        let client = initiation.client;
        let attempt = (from, client.0, initiation.transcript());
        if let Some(id) = self.half_open.get(&attempt) {
            return Verdict::Again(*id);
        }
        let shown = initiation.token.is_some_and(|token| self.tokens.is_valid(now, &token, from, client));
        if !shown && (initiation.is_short || self.half_open.len() >= RETRY_FROM) {
            Verdict::Retry(self.tokens.make(now, from, client))
        } else if self.half_open.len() >= MAX_HALF_OPEN {
            Verdict::Busy(Busy::Handshakes)
        } else if !has_room {
            Verdict::Busy(Busy::Connections)
        } else {
            Verdict::Begins(attempt)
        }
    }

    /// Records the half-open connection `id`.
    pub fn begin(&mut self, attempt: Attempt, id: u32) {
        self.half_open.insert(attempt, id);
    }

    /// Records that the connection of `attempt` is no longer half open.
    pub fn end(&mut self, attempt: &Attempt) {
        self.half_open.remove(attempt);
    }

    /// Number of half-open connections.
    pub fn half_open(&self) -> usize {
        self.half_open.len()
    }
}
