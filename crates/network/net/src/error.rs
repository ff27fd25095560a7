//! Errors of requests and downloads.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use tacit_between::fwp::repair::Failure;

use crate::head::HeadError;
use crate::partial::RangeError;

/// Why there is no answer, or only part of one.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// The URL does not name a file that can be fetched.
    #[error("{url:?} is no address of a file: {why}")]
    Url {
        /// The given URL.
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The URL is `https`, but repair is required.
    #[error(
        "{url} is encrypted: holes in TLS records cannot be filled, for each record is checked as a whole; fetch it \
         over a link that acknowledges"
    )]
    Encrypted {
        /// The given URL.
        url: String,
    },
    /// A redirect leads from `https` to `http`.
    #[error("{url}: a server that is reached by https redirects there, where any host could answer")]
    Downgrade {
        /// Where the redirect leads.
        url: String,
    },
    /// No TLS connection with the right server.
    #[error("no TLS with {host}: {why}")]
    Tls {
        /// The server's name.
        host: String,
        /// The reason.
        why: String,
    },
    /// An argument is unusable.
    #[error("{0}")]
    Argument(String),
    /// The name has no address.
    #[error("{host} has no address: {source}")]
    Resolve {
        /// The server's name.
        host: String,
        /// The resolver's error.
        source: io::Error,
    },
    /// The address may not be reached from here.
    #[error("{host} is at {address}, which is not a public address{hint}")]
    Private {
        /// The server's name.
        host: String,
        /// Its address.
        address: IpAddr,
        /// The option that would allow it.
        hint: &'static str,
    },
    /// The port may not be reached from here.
    #[error("port {0} is not allowed; --allow-port {0} would")]
    Port(u16),
    /// The connection cannot be opened.
    #[error("no connection to {host}: {source}")]
    Connect {
        /// The server's name.
        host: String,
        /// The system's error.
        source: io::Error,
    },
    /// Nothing was received, or nothing could be sent, within the time limit.
    #[error("{0} took too long")]
    Timeout(&'static str),
    /// The connection ended before the answer did, or the answer is not HTTP.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// The head of the answer is refused.
    #[error("the server's answer is refused: {0}")]
    Head(#[from] HeadError),
    /// A placeholder in a head, or in a body that cannot be repaired.
    #[error("a placeholder stands where none may")]
    Misplaced,
    /// A message of the shim is malformed.
    #[error("the hop's messages cannot be read: {0}")]
    Hop(String),
    /// The answer to a range request cannot be used.
    #[error("{0}")]
    Range(#[from] RangeError),
    /// A hole could not be filled.
    #[error("a hole could not be filled: {0}")]
    Unrepaired(#[from] Failure),
    /// The server answers with an error status.
    #[error("the server answers {status} to {url}")]
    Status {
        /// URL of the file.
        url: String,
        /// The status.
        status: hyper::StatusCode,
    },
    /// More redirects than this are not followed.
    #[error("more than {0} redirects")]
    Redirects(u32),
    /// Error of a local file.
    #[error("{}: {source}", path.display())]
    File {
        /// Its name.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another process is fetching the same file.
    #[error("{} is being fetched by another process", path.display())]
    Busy {
        /// Its name.
        path: PathBuf,
    },
    /// The file has another checksum than required.
    #[error("the file has the SHA-256 {found}, not {wanted}")]
    Checksum {
        /// The computed SHA-256.
        found: String,
        /// The required SHA-256.
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
