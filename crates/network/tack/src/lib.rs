//! TACK over UDP for tokio: encrypted connections with streams and datagrams, and few acknowledgments.
//!
//! TACK (Li et al., SIGCOMM 2020) acknowledges a few times per round trip instead of every second packet. On half-duplex links
//! such as Wi-Fi, ACKs compete with the data for the channel; TACK's hardly do.
//!
//! Applications begin with an [`Endpoint`], which opens and accepts [`Connection`]s. A connection carries bidirectional streams,
//! a [`SendStream`] and a [`RecvStream`] each, and unreliable datagrams. Each end has an [`Identity`], a key pair: a client
//! names the [`PublicKey`] of its server, and a server decides which clients' keys it accepts. Certificates are not involved.
//!
//! ```
//! use tacit_tack::{Config, Endpoint, Identity};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let (alice, bob) = (Identity::generate(), Identity::generate());
//! let (alice_key, bob_key) = (alice.public_key(), bob.public_key());
//! let server = Endpoint::server("127.0.0.1:0".parse()?, bob, Config::default(), move |key| *key == alice_key)?;
//! let client = Endpoint::client("0.0.0.0:0".parse()?, alice, Config::default())?;
//!
//! let echo = async {
//!     let connection = server.accept().await.ok_or("the endpoint failed")?;
//!     let (mut send, mut recv) = connection.accept_bi().await?;
//!     let message = recv.read_to_end(1024).await?;
//!     send.write_all(&message).await?;
//!     send.finish()?;
//!     // The client closes once it has everything.
//!     connection.closed().await;
//!     Ok::<_, Box<dyn std::error::Error>>(())
//! };
//! let request = async {
//!     let connection = client.connect(server.local_addr(), bob_key).await?;
//!     let (mut send, mut recv) = connection.open_bi().await?;
//!     send.write_all(b"hello").await?;
//!     send.finish()?;
//!     assert_eq!(recv.read_to_end(1024).await?, b"hello");
//!     connection.close(0, "done");
//!     client.wait_idle().await;
//!     Ok::<_, Box<dyn std::error::Error>>(())
//! };
//! let (echoed, requested) = tokio::join!(echo, request);
//! echoed?;
//! requested
//! # }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! #     tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(example())
//! # }
//! ```
//!
//! The directory `examples` has an echo server, a file transfer and a TCP proxy.
//!
//! # Features
//!
//! `qlog`: a qlog file per connection ([`Config::qlog`]).

#![warn(missing_debug_implementations)]

mod admission;
mod backlog;
mod buffers;
mod clock;
mod config;
mod datagram;
mod driver;
mod endpoint;
mod error;
#[cfg(fuzzing)]
pub mod fuzzing;
mod handle;
mod handshake;
pub mod happy_eyeballs;
mod hub;
mod icmp;
mod identity;
mod memory;
pub mod metrics;
mod observer;
mod outbox;
mod path;
#[cfg(feature = "qlog")]
mod qlog;
mod radio;
mod reset;
mod seal;
mod session;
mod shard;
mod shared;
mod slot;
mod socket;
mod stats;
mod stream;
mod suite;
mod token;
pub mod udp;

pub use config::{Config, CongestionControl};
pub use endpoint::{Connection, Endpoint, Reached};
pub use error::{Busy, ConnectionError, ReadExactError, ReadToEndError, SendDatagramError, StreamError};
pub use identity::{Identity, IdentityError, ParsePublicKeyError, PublicKey};
#[cfg(feature = "qlog")]
pub use qlog::Qlog;
pub use stats::ConnectionStats;
pub use stream::{RecvStream, SendStream};

/// Tests the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
