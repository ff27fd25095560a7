//! Two TCP connections joined by two links.

use tacit_packet::units::{Duration, Instant, SeqNumber};
use tacit_tcp::{Config, Connection, State};

use crate::joined::ends;
pub use crate::joined::{Link, Random};

pub type Pipe = crate::joined::Pipe<Connection>;

impl Pipe {
    /// A client that connects to a server over two links.
    pub fn new(client: Config, server: Config, up: Link, down: Link) -> Self {
        let [local, remote] = ends();
        // Near the end of the number space, so that every test crosses the wrap.
        let iss = SeqNumber(u32::MAX - 20_000);
        let client = Connection::connect(client, local, iss, Instant::ZERO);
        Self::between(client, Connection::listen(server, remote, SeqNumber(u32::MAX - 3)), up, down)
    }

    /// Runs until both ends are closed; returns false if that takes longer than `limit`.
    pub fn run_to_close(&mut self, limit: Duration) -> bool {
        let until = self.now + limit;
        let closed =
            |pipe: &Self| pipe.client.state() == State::Closed && pipe.server.state() == State::Closed;
        while !closed(self) && self.step(until) {}
        closed(self)
    }
}
