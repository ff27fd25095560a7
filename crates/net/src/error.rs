//! Why there is no file.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use tacit_proto::fwp::repair::Failure;

use crate::head::HeadError;
use crate::partial::RangeError;

/// Why there is no answer, or not all of it.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// Not an address that can be fetched.
    #[error("{url:?} is no address of a file: {why}")]
    Url {
        /// The given URL.
        url: String,
        /// Its defect.
        why: &'static str,
    },
    /// `https`, where repair is needed.
    #[error(
        "{url} is encrypted: holes in TLS records cannot be filled, for each record is checked as a whole; fetch it \
         over a link that acknowledges"
    )]
    Encrypted {
        /// The given URL.
        url: String,
    },
    /// From `https` a redirect leads to `http`.
    #[error("{url}: a server that is reached by https redirects there, where any host could answer")]
    Downgrade {
        /// Where the redirect leads.
        url: String,
    },
    /// No TLS with the right server.
    #[error("no TLS with {host}: {why}")]
    Tls {
        /// The name.
        host: String,
        /// The error.
        why: String,
    },
    /// An argument that cannot be used.
    #[error("{0}")]
    Argument(String),
    /// The name has no address.
    #[error("{host} has no address: {source}")]
    Resolve {
        /// The name.
        host: String,
        /// The resolver's error.
        source: io::Error,
    },
    /// An address that must not be reached from here.
    #[error("{host} is at {address}, which is not a public address{hint}")]
    Private {
        /// The name.
        host: String,
        /// Its address.
        address: IpAddr,
        /// The option that would allow it.
        hint: &'static str,
    },
    /// A port that must not be reached from here.
    #[error("port {0} is not allowed; --allow-port {0} would")]
    Port(u16),
    /// No connection.
    #[error("no connection to {host}: {source}")]
    Connect {
        /// The name.
        host: String,
        /// The system's error.
        source: io::Error,
    },
    /// Nothing came, or nothing could be sent.
    #[error("{0} took too long")]
    Timeout(&'static str),
    /// The connection ended before the answer did, or the answer is no HTTP.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// The head is refused.
    #[error("the server's answer is refused: {0}")]
    Head(#[from] HeadError),
    /// A placeholder where none may stand: in a head, or in a body that cannot be repaired.
    #[error("a placeholder stands where none may")]
    Misplaced,
    /// The hop's messages cannot be read.
    #[error("the hop's messages cannot be read: {0}")]
    Hop(String),
    /// The answer to a range request is of no use.
    #[error("{0}")]
    Range(#[from] RangeError),
    /// A hole could not be filled.
    #[error("a hole could not be filled: {0}")]
    Unrepaired(#[from] Failure),
    /// The server has no such file, or does not give it.
    #[error("the server answers {status} to {url}")]
    Status {
        /// Of the file.
        url: String,
        /// Its answer.
        status: hyper::StatusCode,
    },
    /// More redirects than are followed.
    #[error("more than {0} redirects")]
    Redirects(u32),
    /// A file of this machine.
    #[error("{}: {source}", path.display())]
    File {
        /// Its name.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another process fetches the same file.
    #[error("{} is being fetched by another process", path.display())]
    Busy {
        /// Its name.
        path: PathBuf,
    },
    /// The file is not the one that was wanted.
    #[error("the file has the SHA-256 {found}, not {wanted}")]
    Checksum {
        /// Computed.
        found: String,
        /// Given.
        wanted: String,
    },
}

impl NetError {
    /// hyper wraps the errors of its socket.
    pub(crate) fn of_hyper(error: &hyper::Error) -> Self {
        let mut source = std::error::Error::source(error);
        while let Some(inner) = source {
            if let Some(io) = inner.downcast_ref::<io::Error>() {
                return match io.get_ref().and_then(|inner| inner.downcast_ref::<Self>()) {
                    Some(Self::Misplaced) => Self::Misplaced,
                    Some(Self::Head(head)) => Self::Head(*head),
                    Some(Self::Hop(text)) => Self::Hop(text.clone()),
                    Some(other) => Self::Broken(other.to_string()),
                    None => Self::Broken(io.to_string()),
                };
            }
            source = inner.source();
        }
        Self::Broken(error.to_string())
    }
}
