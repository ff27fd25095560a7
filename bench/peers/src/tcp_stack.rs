//! The kernel's TCP.

use std::net::SocketAddr;

use anyhow::Result;
use tokio::net::{TcpListener, TcpStream};

use crate::stack::{Dial, Link, Listen, Packets, Pair};

pub struct Server(TcpListener);

pub struct Client(SocketAddr);

/// A connection, until its only stream is taken.
pub struct Connection(Option<TcpStream>);

pub async fn listen(address: SocketAddr) -> Result<Server> {
    Ok(Server(TcpListener::bind(address).await?))
}

pub fn dial(server: SocketAddr) -> Client {
    Client(server)
}

impl Connection {
    fn new(stream: TcpStream) -> Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self(Some(stream)))
    }

    fn stream(&mut self) -> Option<Pair> {
        let (read, write) = self.0.take()?.into_split();
        Some((Box::new(write), Box::new(read)))
    }
}

impl Listen for Server {
    type Link = Connection;

    async fn accept(&mut self) -> Result<Connection> {
        Connection::new(self.0.accept().await?.0)
    }
}

impl Dial for Client {
    type Link = Connection;

    async fn connect(&mut self) -> Result<Connection> {
        Connection::new(TcpStream::connect(self.0).await?)
    }

    async fn drain(&mut self) {}
}

impl Link for Connection {
    const MULTIPLEXED: bool = false;

    async fn open(&mut self) -> Result<Pair> {
        self.stream().ok_or_else(|| anyhow::anyhow!("TCP has one stream"))
    }

    async fn accept(&mut self) -> Option<Pair> {
        self.stream()
    }

    /// The kernel's, which a hop counts.
    fn packets(&self) -> Packets {
        Packets::default()
    }

    fn close(&mut self) {}
}
