//! A copy from its first message on, for the end that asks and the end that serves.

use std::path::Path;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};

use super::receiver::receive;
use super::sender::{Source, send};
use super::tree::{Relative, Tree};
use super::wire::{self, Direction, Message, VERSION};
use super::{CopyError, Options, Outcome, Progress};

/// What one end serves.
#[derive(Debug)]
pub struct Served {
    tree: Tree,
    /// The one file below `tree` that is served; `None`: all of it.
    file: Option<Relative>,
    is_writable: bool,
}

impl Served {
    /// Serves the file or directory `path`, for reading or also for writing.
    ///
    /// # Errors
    /// Where it is not there, or is a file that would be written to.
    pub fn new(path: &Path, is_writable: bool) -> Result<Self, CopyError> {
        let failed = |error| CopyError::Argument(format!("{}: {error}", path.display()));
        let path = path.canonicalize().map_err(failed)?;
        if path.is_dir() {
            return Ok(Self { tree: Tree::open(&path).map_err(failed)?, file: None, is_writable });
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str()))
        else {
            return Err(CopyError::Argument(format!("{}: no name to serve", path.display())));
        };
        if is_writable {
            return Err(CopyError::Argument(format!("{}: only directories take uploads", path.display())));
        }
        let file = Relative::parse(name).map_err(CopyError::Argument)?;
        Ok(Self { tree: Tree::open(parent).map_err(failed)?, file: Some(file), is_writable })
    }

    /// Does what a client asks for on one stream.
    ///
    /// # Errors
    /// Where the request is refused, or the stream or the protocol breaks.
    pub async fn serve<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
        &self,
        reader: &mut R,
        writer: &mut W,
    ) -> Result<Outcome, CopyError> {
        let Message::Hello { version, direction, path, options } = wire::read(reader).await? else {
            return Err(CopyError::Protocol("the first message is no hello".into()));
        };
        let progress = Progress::default();
        let refusal = match (version, direction) {
            (VERSION, Direction::Pull) => match self.source(&path) {
                Ok(source) => {
                    accept(writer).await?;
                    return send(&source, options, &progress, reader, writer).await;
                }
                Err(reason) => reason,
            },
            (VERSION, Direction::Push) => match self.destination(&path) {
                Ok(tree) => {
                    accept(writer).await?;
                    return receive(&tree, options, &progress, reader, writer).await;
                }
                Err(reason) => reason,
            },
            _ => format!("version {version} of the protocol is asked for, this is {VERSION}"),
        };
        let reason = wire::bounded(refusal);
        wire::write(writer, &Message::Refused { reason: reason.clone() }).await?;
        writer.flush().await?;
        Err(CopyError::Refused(reason))
    }

    fn source(&self, path: &str) -> Result<Source, String> {
        let path = Relative::parse(path)?;
        let path = match &self.file {
            Some(file) if path.is_empty() || path == *file => file,
            Some(_) => return Err("it is not served".into()),
            None => &path,
        };
        Source::below(&self.tree, path).map_err(|error| error.to_string())
    }

    fn destination(&self, path: &str) -> Result<Tree, String> {
        if !self.is_writable {
            return Err("this is served for reading only".into());
        }
        let path = Relative::parse(path)?;
        self.tree.subtree(&path).map_err(|error| format!("{}: {error}", path.as_str()))
    }
}

async fn accept(writer: &mut (impl AsyncWrite + Unpin)) -> Result<(), CopyError> {
    wire::write(writer, &Message::Ready).await?;
    Ok(writer.flush().await?)
}

async fn ask<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    hello: &Message,
    reader: &mut R,
    writer: &mut W,
) -> Result<(), CopyError> {
    wire::write(writer, hello).await?;
    writer.flush().await?;
    match wire::read(reader).await? {
        Message::Ready => Ok(()),
        Message::Refused { reason } => Err(CopyError::Refused(reason)),
        other => Err(wire::unexpected(&other)),
    }
}

/// Sends `source` into the directory `path` of a server.
///
/// # Errors
/// Where the server refuses, or the stream or the protocol breaks.
pub async fn push<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    source: &Source,
    path: &str,
    options: Options,
    progress: &Progress,
    reader: &mut R,
    writer: &mut W,
) -> Result<Outcome, CopyError> {
    let path = path.to_owned();
    ask(&Message::Hello { version: VERSION, direction: Direction::Push, path, options }, reader, writer)
        .await?;
    send(source, options, progress, reader, writer).await
}

/// Fetches `path` of a server into the directory `destination`.
///
/// # Errors
/// Where `destination` is no directory, the server refuses, or the stream or the protocol breaks.
pub async fn pull<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    path: &str,
    destination: &Path,
    options: Options,
    progress: &Progress,
    reader: &mut R,
    writer: &mut W,
) -> Result<Outcome, CopyError> {
    let failed = |error| CopyError::Argument(format!("{}: {error}", destination.display()));
    let tree = Tree::open(destination).map_err(failed)?;
    let path = path.to_owned();
    ask(&Message::Hello { version: VERSION, direction: Direction::Pull, path, options }, reader, writer)
        .await?;
    receive(&tree, options, progress, reader, writer).await
}
