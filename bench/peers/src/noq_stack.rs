//! QUIC by noq, a fork of quinn.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use noq::congestion::{Bbr3Config, CubicConfig};
use noq::{AckFrequencyConfig, ClientConfig, Connection, Endpoint, EndpointConfig, ServerConfig, VarInt};
use rustls::RootCertStore;
use tacit_tack::happy_eyeballs::local_for;

use crate::certificate::{Certificate, NAME};
use crate::quinn_stack::ACK_ELICITING_THRESHOLD;
use crate::stack::{Congestion, Dial, Link, Listen, Packets, Pair, Settings, WINDOW, Windows, socket};

pub struct Server(Endpoint);

pub struct Client {
    endpoint: Endpoint,
    server: SocketAddr,
}

/// How noq is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// Unchanged.
    Plain,
    /// It asks for fewer ACKs.
    AckFrequency,
}

fn transport(settings: &Settings, flavour: Flavour) -> Arc<noq::TransportConfig> {
    let mut transport = noq::TransportConfig::default();
    if settings.windows == Windows::Large {
        let window = VarInt::from_u32(WINDOW);
        transport.stream_receive_window(window).receive_window(window).send_window(WINDOW.into());
    }
    match settings.congestion {
        Congestion::Bbr => {
            transport.congestion_controller_factory(Arc::new(Bbr3Config::default()));
        }
        Congestion::Cubic => {
            transport.congestion_controller_factory(Arc::new(CubicConfig::default()));
        }
        Congestion::Default => {}
    }
    if flavour == Flavour::AckFrequency {
        let mut wanted = AckFrequencyConfig::default();
        wanted.ack_eliciting_threshold(VarInt::from_u32(ACK_ELICITING_THRESHOLD));
        transport.ack_frequency_config(Some(wanted));
    }
    Arc::new(transport)
}

fn endpoint(address: SocketAddr, settings: &Settings, server: Option<ServerConfig>) -> Result<Endpoint> {
    let runtime = Arc::new(noq::TokioRuntime);
    Ok(Endpoint::new(EndpointConfig::default(), server, socket(address, settings.windows)?, runtime)?)
}

pub fn listen(address: SocketAddr, settings: &Settings, flavour: Flavour) -> Result<Server> {
    let Certificate { der, key_der, .. } = Certificate::known()?;
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(key_der);
    let mut config = ServerConfig::with_single_cert(vec![der.into()], key.into())?;
    config.transport_config(transport(settings, flavour));
    Ok(Server(endpoint(address, settings, Some(config))?))
}

pub fn dial(server: SocketAddr, settings: &Settings, flavour: Flavour) -> Result<Client> {
    let mut roots = RootCertStore::empty();
    roots.add(Certificate::known()?.der.into())?;
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    config.transport_config(transport(settings, flavour));
    let endpoint = endpoint(local_for(server), settings, None)?;
    endpoint.set_default_client_config(config);
    Ok(Client { endpoint, server })
}

impl Listen for Server {
    type Link = Connection;

    async fn accept(&mut self) -> Result<Connection> {
        Ok(self.0.accept().await.context("the endpoint failed")?.await?)
    }
}

impl Dial for Client {
    type Link = Connection;

    async fn connect(&mut self) -> Result<Connection> {
        Ok(self.endpoint.connect(self.server, NAME)?.await?)
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
        let acks = |frames: &noq::FrameStats| Some(frames.acks + frames.path_acks);
        Packets {
            sent: Some(stats.udp_tx.datagrams),
            received: Some(stats.udp_rx.datagrams),
            acks_sent: acks(&stats.frame_tx),
            acks_received: acks(&stats.frame_rx),
        }
    }

    fn close(&mut self) {
        Self::close(self, VarInt::from_u32(0), b"done");
    }
}
