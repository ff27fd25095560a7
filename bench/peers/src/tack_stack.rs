//! TACK.

use std::net::SocketAddr;

use anyhow::{Context as _, Result, bail};
use tacit_tack::happy_eyeballs::local_for;
use tacit_tack::{Config, Connection, Endpoint, Identity, PublicKey, Reached};

use crate::stack::{Dial, Link, Listen, Packets, Pair, Settings};

pub struct Server(Endpoint);

pub struct Client {
    endpoint: Endpoint,
    server: SocketAddr,
    key: PublicKey,
}

/// Connections that a server takes at least: the endpoint's default.
const MIN_CONNECTIONS: usize = 4096;

/// The endpoint's own, with room for as many connections as are asked for.
fn config(settings: &Settings) -> Config {
    let mut config = Config::default();
    config.max_connections(MIN_CONNECTIONS.max(settings.connections + 1));
    config
}

pub fn listen(address: SocketAddr, settings: &Settings) -> Result<Server> {
    let endpoint = Endpoint::server(address, Identity::generate(), config(settings), |_| true)?;
    Ok(Server(endpoint))
}

pub async fn dial(server: SocketAddr, settings: &Settings) -> Result<Client> {
    let endpoint = Endpoint::client(local_for(server), Identity::generate(), config(settings))?;
    let Reached::Key(key) = endpoint.reach(server).await? else {
        bail!("the server has the client's own key")
    };
    Ok(Client { endpoint, server, key })
}

impl Listen for Server {
    type Link = Connection;

    async fn accept(&mut self) -> Result<Connection> {
        self.0.accept().await.context("the endpoint failed")
    }
}

impl Dial for Client {
    type Link = Connection;

    async fn connect(&mut self) -> Result<Connection> {
        Ok(self.endpoint.connect(self.server, self.key).await?)
    }

    async fn drain(&mut self) {
        self.endpoint.wait_idle().await;
    }
}

impl Link for Connection {
    async fn open(&mut self) -> Result<Pair> {
        let (write, read) = self.open_bi().await?;
        Ok((Box::new(write), Box::new(read)))
    }

    async fn accept(&mut self) -> Option<Pair> {
        let (write, read) = self.accept_bi().await.ok()?;
        Some((Box::new(write), Box::new(read)))
    }

    fn packets(&self) -> Packets {
        let stats = self.stats();
        Packets {
            sent: Some(stats.packets_sent),
            received: Some(stats.packets_received),
            acks_sent: Some(stats.acks_sent),
            acks_received: Some(stats.acks_received),
        }
    }

    fn close(&mut self) {
        Self::close(self, 0, "done");
    }
}
