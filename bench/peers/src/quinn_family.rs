//! QUIC by quinn, and by noq, its fork: two crates that have the same names for what this program uses.

/// A stack of the family. Its module has the `Flavour`s, `transport`, which turns one into settings, and `acks`, which counts the
/// ACKs among frames.
macro_rules! stack {
    ($stack:ident) => {
        use std::net::SocketAddr;
        use std::sync::Arc;

        use anyhow::{Context as _, Result};
        use rustls::RootCertStore;
        use tacit_tack::happy_eyeballs::local_for;
        use $stack::{
            AckFrequencyConfig, ClientConfig, Connection, Endpoint, EndpointConfig, ServerConfig,
            TransportConfig, VarInt,
        };

        use crate::certificate::{Certificate, NAME};
        use crate::quinn_family::ACK_ELICITING_THRESHOLD;
        use crate::stack::{
            Congestion, Dial, Link, Listen, Packets, Pair, Settings, WINDOW, Windows, socket,
        };

        pub struct Server(Endpoint);

        pub struct Client {
            endpoint: Endpoint,
            config: ClientConfig,
            server: SocketAddr,
        }

        /// The settings of the job's windows.
        fn with_windows(settings: &Settings) -> TransportConfig {
            let mut transport = TransportConfig::default();
            if settings.windows == Windows::Large {
                let window = VarInt::from_u32(WINDOW);
                transport.stream_receive_window(window).receive_window(window).send_window(WINDOW.into());
            }
            transport
        }

        fn ask_for_fewer_acks(transport: &mut TransportConfig) {
            let mut wanted = AckFrequencyConfig::default();
            wanted.ack_eliciting_threshold(VarInt::from_u32(ACK_ELICITING_THRESHOLD));
            transport.ack_frequency_config(Some(wanted));
        }

        fn endpoint(
            address: SocketAddr,
            settings: &Settings,
            server: Option<ServerConfig>,
        ) -> Result<Endpoint> {
            let (socket, runtime) = (socket(address, settings.windows)?, Arc::new($stack::TokioRuntime));
            Ok(Endpoint::new(EndpointConfig::default(), server, socket, runtime)?)
        }

        pub fn listen(address: SocketAddr, settings: &Settings, flavour: Flavour) -> Result<Server> {
            let Certificate { der, key_der, .. } = Certificate::known()?;
            let key = rustls::pki_types::PrivatePkcs8KeyDer::from(key_der);
            let mut config = ServerConfig::with_single_cert(vec![der.into()], key.into())?;
            config.transport_config(Arc::new(transport(settings, flavour)));
            Ok(Server(endpoint(address, settings, Some(config))?))
        }

        pub fn dial(server: SocketAddr, settings: &Settings, flavour: Flavour) -> Result<Client> {
            let mut roots = RootCertStore::empty();
            roots.add(Certificate::known()?.der.into())?;
            let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
            config.transport_config(Arc::new(transport(settings, flavour)));
            Ok(Client { endpoint: endpoint(local_for(server), settings, None)?, config, server })
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
                Ok(self.endpoint.connect_with(self.config.clone(), self.server, NAME)?.await?)
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
                    acks_sent: Some(acks(&stats.frame_tx)),
                    acks_received: Some(acks(&stats.frame_rx)),
                }
            }

            fn close(&mut self) {
                Self::close(self, VarInt::from_u32(0), b"done");
            }
        }
    };
}

pub(crate) use stack;

/// The largest that asks for an ACK per eleven packets. The documentation of quinn recommends none; the draft's authors measured
/// with ten (draft-ietf-quic-ack-frequency section 5.1, Custura et al. 2020).
pub const ACK_ELICITING_THRESHOLD: u32 = 10;
