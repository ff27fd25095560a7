//! QUIC by s2n-quic.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use s2n_quic::client::Connect;
use s2n_quic::provider::congestion_controller::{Bbr, Cubic};
use s2n_quic::provider::{io, limits, tls};
use s2n_quic::{Client as S2nClient, Connection, Server as S2nServer};
use tacit_tack::happy_eyeballs::local_for;

use crate::certificate::{Certificate, NAME};
use crate::stack::{Congestion, Dial, Link, Listen, Packets, Pair, SOCKET_BUFFER, Settings, WINDOW, Windows};

pub struct Server(S2nServer);

pub struct Client {
    client: S2nClient,
    server: SocketAddr,
}

fn limits(settings: &Settings) -> Result<limits::Limits> {
    let window = u64::from(WINDOW);
    let limits = limits::Limits::new();
    if settings.windows != Windows::Large {
        return Ok(limits);
    }
    Ok(limits
        .with_data_window(window)?
        .with_bidirectional_local_data_window(window)?
        .with_bidirectional_remote_data_window(window)?
        .with_max_send_buffer_size(WINDOW)?
        .with_max_keep_alive_period(Duration::from_secs(10))?)
}

fn io(address: SocketAddr, settings: &Settings) -> Result<io::Default> {
    let builder = io::Default::builder().with_receive_address(address)?;
    if settings.windows == Windows::Own {
        return Ok(builder.build()?);
    }
    Ok(builder.with_recv_buffer_size(SOCKET_BUFFER)?.with_send_buffer_size(SOCKET_BUFFER)?.build()?)
}

pub fn listen(address: SocketAddr, settings: &Settings) -> Result<Server> {
    let Certificate { pem, key_pem, .. } = Certificate::known()?;
    let tls = tls::default::Server::builder().with_certificate(pem.as_str(), key_pem.as_str());
    let tls = tls.and_then(|tls| tls.build()).map_err(|error| anyhow!("{error}"))?;
    let builder = S2nServer::builder()
        .with_tls(tls)?
        .with_io(io(address, settings)?)?
        .with_limits(limits(settings)?)?;
    let server = match settings.congestion {
        Congestion::Bbr => builder.with_congestion_controller(Bbr::default())?.start()?,
        Congestion::Cubic | Congestion::Default => {
            builder.with_congestion_controller(Cubic::default())?.start()?
        }
    };
    Ok(Server(server))
}

pub fn dial(server: SocketAddr, settings: &Settings) -> Result<Client> {
    let tls = tls::default::Client::builder().with_certificate(Certificate::known()?.pem.as_str());
    let tls = tls.and_then(|tls| tls.build()).map_err(|error| anyhow!("{error}"))?;
    let client = S2nClient::builder()
        .with_tls(tls)?
        .with_io(io(local_for(server), settings)?)?
        .with_limits(limits(settings)?)?
        .start()?;
    Ok(Client { client, server })
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
        Ok(self.client.connect(Connect::new(self.server).with_server_name(NAME)).await?)
    }

    async fn drain(&mut self) {
        let _ = self.client.wait_idle().await;
    }
}

impl Link for Connection {
    async fn open(&mut self) -> Result<Pair> {
        let (read, write) = self.open_bidirectional_stream().await?.split();
        Ok((Box::new(write), Box::new(read)))
    }

    async fn accept(&mut self) -> Option<Pair> {
        let (read, write) = self.accept_bidirectional_stream().await.ok()??.split();
        Some((Box::new(write), Box::new(read)))
    }

    /// It tells its subscribers only, packet by packet, which costs time.
    fn packets(&self) -> Packets {
        Packets::default()
    }

    fn close(&mut self) {
        Self::close(self, 0_u32.into());
    }
}
