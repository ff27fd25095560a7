//! Streams of a connection: their buffers, and how long their ends may take.

use std::time::Duration;

use tacit_apps::copy::CopyError;
use tacit_tack::{Connection, RecvStream, SendStream, StreamError};

/// Bytes that wait to be written at once. A piece of contents is longer, and goes by itself.
pub const WRITE_BYTES: usize = 64 * 1024;
/// Bytes that are read at once: some pieces of contents, for each read is a turn of the endpoint's lock. Ours.
pub const READ_BYTES: usize = 256 * 1024;

/// For the last message of a copy to arrive. Ours.
pub const LAST_TIMEOUT: Duration = Duration::from_secs(10);

/// A stream of `connection`.
pub async fn streams(connection: &Connection) -> Result<(RecvStream, SendStream), CopyError> {
    let (writer, reader) =
        connection.open_bi().await.map_err(|error| std::io::Error::from(StreamError::from(error)))?;
    Ok((reader, writer))
}
