//! Forwards TCP connections, each over its own stream. The client end accepts them by SOCKS5 or for one fixed target;
//! the server end connects to the targets that its list allows.
//!
//! A stream begins with the target (a length, u16 big endian, and `host:port`). The answer is one byte, a reply code of
//! SOCKS5. Then bytes are forwarded in both directions, each until its end.

pub mod allow;
pub mod dial;
pub mod relay;
pub mod socks;
pub mod target;

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use target::{TARGET_BYTES_MAX, Target};

/// Why a connection failed.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// A stream or connection broke.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The other end violates the protocol.
    #[error("{0}")]
    Protocol(String),
    /// The server end did not connect; the code gives the reason.
    #[error("{0}")]
    ReplyCode(ReplyCode),
    /// No bytes moved for too long.
    #[error("idle for too long")]
    Idle,
}

/// Answer of the server end for a target: the reply codes of RFC 1928, §6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[repr(u8)]
pub enum ReplyCode {
    /// Connected.
    #[error("connected")]
    Connected = 0,
    /// Another failure.
    #[error("the server failed")]
    Failed = 1,
    /// The server end's list does not contain the target.
    #[error("the server does not allow this target")]
    NotAllowed = 2,
    /// The target has no address, or there is no route to it.
    #[error("the target is unreachable")]
    Unreachable = 4,
    /// No program listens at the target.
    #[error("the target refuses the connection")]
    Refused = 5,
    /// The server end has no file descriptors left. As [`Self::Busy`], not in RFC 1928.
    #[error("the server has too many open files")]
    NoDescriptors = 10,
    /// The limit of connections is reached. RFC 1928 has no code for this; codes above 8 are unassigned.
    #[error("the limit --connections is reached")]
    Busy = 9,
}

impl ReplyCode {
    fn from_byte(byte: u8) -> Self {
        let all = [Self::Connected, Self::NotAllowed, Self::Unreachable, Self::Refused];
        all.into_iter()
            .chain([Self::Busy, Self::NoDescriptors])
            .find(|answer| *answer as u8 == byte)
            .unwrap_or(Self::Failed)
    }
}

/// Requests `target` from the server end, on a new stream.
///
/// # Errors
/// If the server end does not connect, or the stream breaks.
pub async fn request_target<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    target: &Target,
    reader: &mut R,
    writer: &mut W,
) -> Result<(), ProxyError> {
    let text = target.to_string();
    let length =
        u16::try_from(text.len()).map_err(|_| ProxyError::Protocol("the target is too long".into()))?;
    writer.write_all(&length.to_be_bytes()).await?;
    writer.write_all(text.as_bytes()).await?;
    writer.flush().await?;
    match ReplyCode::from_byte(reader.read_u8().await?) {
        ReplyCode::Connected => Ok(()),
        answer => Err(ProxyError::ReplyCode(answer)),
    }
}

/// Reads the target that [`request_target`] writes.
///
/// # Errors
/// If it is not a target, or the stream breaks.
pub async fn read_target<R: AsyncRead + Unpin>(reader: &mut R) -> Result<Target, ProxyError> {
    let length = usize::from(reader.read_u16().await?);
    if length > TARGET_BYTES_MAX {
        return Err(ProxyError::Protocol("the target is too long".into()));
    }
    let mut bytes = vec![0; length];
    reader.read_exact(&mut bytes).await?;
    let text =
        std::str::from_utf8(&bytes).map_err(|_| ProxyError::Protocol("the target is no text".into()))?;
    text.parse().map_err(ProxyError::Protocol)
}
