//! Streams of a connection: buffer sizes and timeouts.

use std::time::Duration;

use tacit_apps::copy::CopyError;
use tacit_tack::{Connection, RecvStream, SendStream, StreamError};

/// Size of the write buffer in bytes. A block of file contents is larger and bypasses it.
pub const WRITE_BYTES: usize = 64 * 1024;
/// Size of the read buffer in bytes (our choice). It holds several blocks of file contents, because each read takes the
/// lock of the endpoint.
pub const READ_BYTES: usize = 256 * 1024;

/// Time for the last message of a copy to arrive (our choice).
pub const LAST_TIMEOUT: Duration = Duration::from_secs(10);

/// Opens a stream of `connection`.
pub async fn streams(connection: &Connection) -> Result<(RecvStream, SendStream), CopyError> {
    let (writer, reader) =
        connection.open_bi().await.map_err(|error| std::io::Error::from(StreamError::from(error)))?;
    Ok((reader, writer))
}
