//! TACK over UDP, for tokio: connections with few acknowledgments, encrypted, with streams that read and write as others do.

mod clock;
mod config;
mod driver;
mod endpoint;
mod error;
mod handshake;
mod hub;
mod identity;
mod path;
mod pipe;
mod seal;
mod session;
mod stream;
mod token;

pub use config::Config;
pub use endpoint::{Connection, Endpoint};
pub use error::{ConnectionError, DatagramError, StreamError};
pub use hub::{Clients, Counters};
pub use identity::{Identity, IdentityError, NoKey, PublicKey};
pub use stream::{RecvStream, SendStream};
pub use tacit_proto::transport::Stats;
