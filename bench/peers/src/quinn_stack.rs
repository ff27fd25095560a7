//! QUIC by quinn.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use quinn::congestion::{BbrConfig, CubicConfig};
use quinn::{AckFrequencyConfig, ClientConfig, Connection, Endpoint, EndpointConfig, ServerConfig, VarInt};
use rustls::RootCertStore;
use tacit_tack::happy_eyeballs::local_for;

use crate::certificate::{Certificate, NAME};
use crate::stack::{Congestion, Dial, Link, Listen, Packets, Pair, Settings, WINDOW, Windows, socket};

/// The largest that asks for an ACK per eleven packets. Its documentation recommends none; the draft's authors measured with
/// ten (draft-ietf-quic-ack-frequency section 5.1, Custura et al. 2020).
pub const ACK_ELICITING_THRESHOLD: u32 = 10;

/// The path that `tacit-quinn` knows in advance: 20 ms at 300 Mb/s, the middle of the scenarios' hops.
const KNOWN_PATH: tacit_quinn::Path = tacit_quinn::Path {
    rtt: std::time::Duration::from_millis(20),
    window_bytes: 750_000,
    packet_bytes: 1_452,
};

pub struct Server(Endpoint);

pub struct Client {
    endpoint: Endpoint,
    server: SocketAddr,
}

/// How quinn is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// Unchanged.
    Plain,
    /// It asks for fewer ACKs.
    AckFrequency,
    /// With the controller of `tacit-quinn`, which asks for nothing.
    Tacit,
    /// With that controller, and the ACK law of a path that is known.
    TacitKnownPath,
}

fn transport(settings: &Settings, flavour: Flavour) -> Arc<quinn::TransportConfig> {
    let mut transport = quinn::TransportConfig::default();
    transport.keep_alive_interval(Some(std::time::Duration::from_secs(10)));
    if settings.windows == Windows::Large {
        let window = VarInt::from_u32(WINDOW);
        transport.stream_receive_window(window).receive_window(window).send_window(WINDOW.into());
    }
    match settings.congestion {
        Congestion::Bbr => transport.congestion_controller_factory(Arc::new(BbrConfig::default())),
        Congestion::Cubic | Congestion::Default => {
            transport.congestion_controller_factory(Arc::new(CubicConfig::default()))
        }
    };
    match flavour {
        Flavour::Plain => {}
        Flavour::AckFrequency => {
            let mut wanted = AckFrequencyConfig::default();
            wanted.ack_eliciting_threshold(VarInt::from_u32(ACK_ELICITING_THRESHOLD));
            transport.ack_frequency_config(Some(wanted));
        }
        Flavour::Tacit => tacit_quinn::configure(&mut transport),
        // Another controller may be asked for, beside the same ACKs.
        Flavour::TacitKnownPath if settings.congestion == Congestion::Default => {
            tacit_quinn::configure_for(&mut transport, &KNOWN_PATH);
        }
        Flavour::TacitKnownPath => {
            transport.ack_frequency_config(tacit_quinn::ack_frequency(&KNOWN_PATH));
        }
    }
    Arc::new(transport)
}

fn endpoint(address: SocketAddr, settings: &Settings, server: Option<ServerConfig>) -> Result<Endpoint> {
    let runtime = Arc::new(quinn::TokioRuntime);
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
    let mut endpoint = endpoint(local_for(server), settings, None)?;
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
        Packets {
            sent: Some(stats.udp_tx.datagrams),
            received: Some(stats.udp_rx.datagrams),
            acks_sent: Some(stats.frame_tx.acks),
            acks_received: Some(stats.frame_rx.acks),
        }
    }

    fn close(&mut self) {
        Self::close(self, VarInt::from_u32(0), b"done");
    }
}
