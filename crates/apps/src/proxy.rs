//! TCP connections over streams: one stream each. The client's end takes them by SOCKS5 or for one target; the server's
//! end connects, to the targets of its list.
//!
//! A stream begins with the target (a length, u16 big endian, and `host:port`). One byte answers, a reply code of
//! SOCKS5. Bytes follow both ways, each way until its end.

pub mod allow;
pub mod dial;
pub mod relay;
pub mod socks;
pub mod target;

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use target::{TARGET_BYTES_MAX, Target};

/// Why a connection is not made.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// A stream or connection broke.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The other end breaks the protocol.
    #[error("{0}")]
    Protocol(String),
    /// The server's end does not connect.
    #[error("{0}")]
    ReplyCode(ReplyCode),
    /// Nothing came or went for too long.
    #[error("idle for too long")]
    Idle,
}

/// Answer of the server's end for a target: the reply codes of RFC 1928, §6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[repr(u8)]
pub enum ReplyCode {
    /// Connected.
    #[error("connected")]
    Connected = 0,
    /// Anything else.
    #[error("the server failed")]
    Failed = 1,
    /// The list of the server's end has it not.
    #[error("the server does not allow this target")]
    NotAllowed = 2,
    /// No address, or no way to it.
    #[error("the target is unreachable")]
    Unreachable = 4,
    /// No program listens.
    #[error("the target refuses the connection")]
    Refused = 5,
    /// As many connections are carried as may be. RFC 1928 has no code for that, and leaves those above 8 free.
    #[error("the limit --connections is reached")]
    Busy = 9,
}

impl ReplyCode {
    fn of_byte(byte: u8) -> Self {
        [Self::Connected, Self::NotAllowed, Self::Unreachable, Self::Refused, Self::Busy]
            .into_iter()
            .find(|answer| *answer as u8 == byte)
            .unwrap_or(Self::Failed)
    }
}

/// Asks the server's end for `target`, on a fresh stream.
///
/// # Errors
/// Where it does not connect, or the stream breaks.
pub async fn ask<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
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
    match ReplyCode::of_byte(reader.read_u8().await?) {
        ReplyCode::Connected => Ok(()),
        answer => Err(ProxyError::ReplyCode(answer)),
    }
}

/// Reads the target that [`ask`] writes.
///
/// # Errors
/// Where it is no target, or the stream breaks.
pub async fn asked<R: AsyncRead + Unpin>(reader: &mut R) -> Result<Target, ProxyError> {
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
