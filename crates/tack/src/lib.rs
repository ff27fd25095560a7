//! TACK over UDP for tokio: encrypted connections with streams, datagrams, and few acknowledgments.
//!
//! TACK (Li et al., SIGCOMM 2020) acknowledges a few times per round trip instead of every second packet, so that on
//! half-duplex links such as Wi-Fi its ACKs hardly compete with its data. Each end has an [`Identity`]. A client names the
//! server's [`PublicKey`]; a server decides which clients' keys it accepts. A [`Connection`] carries datagrams and streams,
//! which implement [`AsyncRead`](tokio::io::AsyncRead) and [`AsyncWrite`](tokio::io::AsyncWrite).
//!
//! ```
//! use std::sync::Arc;
//!
//! use tacit_tack::{Config, Endpoint, Identity};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let (alice, bob) = (Identity::generate(), Identity::generate());
//! let (alices, bobs) = (alice.public(), bob.public());
//! let server =
//!     Endpoint::server(([127, 0, 0, 1], 0).into(), bob, Config::default(), Arc::new(move |key| *key == alices))?;
//! let client = Endpoint::client(server.local_addr(), alice, Config::default())?;
//!
//! let echo = async {
//!     let connection = server.accept().await.ok_or("the endpoint failed")?;
//!     let (mut send, mut receive) = connection.accept().await?;
//!     tokio::io::copy(&mut receive, &mut send).await?;
//!     send.shutdown().await?;
//!     // The client closes once it has everything.
//!     connection.closed().await;
//!     Ok::<_, Box<dyn std::error::Error>>(())
//! };
//! let asking = async {
//!     let connection = client.connect(server.local_addr(), bobs).await?;
//!     let (mut send, mut receive) = connection.open().await?;
//!     send.write_all(b"hello").await?;
//!     send.shutdown().await?;
//!     let mut answer = String::new();
//!     receive.read_to_string(&mut answer).await?;
//!     connection.close(0, "done");
//!     assert_eq!(answer, "hello");
//!     Ok::<_, Box<dyn std::error::Error>>(())
//! };
//! let (echoed, asked) = tokio::join!(echo, asking);
//! echoed?;
//! asked
//! # }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! #     tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(example())
//! # }
//! ```

mod clock;
mod config;
mod driver;
mod endpoint;
mod error;
mod eyeballs;
#[cfg(fuzzing)]
pub mod fuzzing;
mod handshake;
mod hub;
mod identity;
mod machine;
mod memory;
mod metrics;
mod observer;
mod path;
mod pipe;
#[cfg(feature = "qlog")]
mod qlog;
mod refusals;
mod reset;
mod seal;
mod session;
mod shard;
mod stream;
mod token;

pub use config::Config;
pub use endpoint::{Connection, Endpoint};
pub use error::{Busy, ConnectionError, DatagramError, NO_MEMORY, StreamError};
pub use eyeballs::race;
pub use hub::Clients;
pub use identity::{Identity, IdentityError, NoKey, PublicKey};
pub use machine::{Machine, machine};
pub use metrics::{Counters, Histogram, Metrics, Totals};
#[cfg(feature = "qlog")]
pub use qlog::Qlog;
pub use stream::{RecvStream, SendStream};
pub use tacit_proto::transport::Stats;
