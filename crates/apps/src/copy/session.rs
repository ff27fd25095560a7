//! A copy from its first message on, for the end that asks and the end that serves.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};

use super::receiver::receive;
use super::sender::{Source, send};
use super::tree::{Relative, Tree};
use super::wire::{self, Direction, Message, VERSION};
use super::writers::Writers;
use super::{CopyError, Options, Outcome, Progress};

/// For a client to say what it wants on a stream that it opened. Ours.
const HELLO_TIMEOUT: Duration = Duration::from_secs(30);

/// What one end serves.
#[derive(Debug)]
pub struct Served {
    tree: Tree,
    /// The one file below `tree` that is served; `None`: all of it.
    file: Option<Relative>,
    is_writable: bool,
    writers: Writers,
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
            return Ok(Self {
                tree: Tree::open(&path).map_err(failed)?,
                file: None,
                is_writable,
                writers: Writers::default(),
            });
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str()))
        else {
            return Err(CopyError::Argument(format!("{}: no name to serve", path.display())));
        };
        if is_writable {
            return Err(CopyError::Argument(format!("{}: only directories take uploads", path.display())));
        }
        let file = Relative::parse(name).map_err(CopyError::Argument)?;
        Ok(Self {
            tree: Tree::open(parent).map_err(failed)?,
            file: Some(file),
            is_writable,
            writers: Writers::default(),
        })
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
        let request = Request::read(reader).await?;
        self.answer(request, reader, writer).await
    }

    /// Does what `request` asks for.
    ///
    /// # Errors
    /// Where it is refused, or the stream or the protocol breaks.
    pub async fn answer<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
        &self,
        request: Request,
        reader: &mut R,
        writer: &mut W,
    ) -> Result<Outcome, CopyError> {
        let progress = Progress::default();
        let Request { version, direction, path, name, options, owner } = request;
        let writers = owner.as_deref().map(|owner| (&self.writers, owner));
        let refusal = match (version, direction) {
            (VERSION, Direction::Pull) => match self.source(&path, name.as_deref()) {
                Ok(source) => {
                    accept(None, writer).await?;
                    return send(&source, options, &progress, reader, writer).await;
                }
                Err(reason) => reason,
            },
            (VERSION, Direction::Push) => match self.destination(&path) {
                Ok((tree, name)) => {
                    accept(name, writer).await?;
                    return receive(&tree, options, writers, &progress, reader, writer).await;
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

    fn source(&self, path: &str, name: Option<&str>) -> Result<Source, String> {
        Relative::parse(path.strip_suffix('/').unwrap_or(path))?;
        let path = match &self.file {
            Some(file) if path.is_empty() || path == file.as_str() => file.as_str(),
            Some(_) => return Err("it is not served".into()),
            None => path,
        };
        let mut source = Source::below(&self.tree, path).map_err(|error| format!("{path}: {error}"))?;
        name.map_or(Ok(()), |name| source.rename(name))?;
        Ok(source)
    }

    /// The directory that `path` is; or the one before it, and the name that a file or directory gets there.
    fn destination(&self, path: &str) -> Result<(Tree, Option<String>), String> {
        if !self.is_writable {
            return Err("this is served for reading only".into());
        }
        let path = Relative::parse(path)?;
        let failed = |path: &str, error: std::io::Error| format!("{path}: {error}");
        match self.tree.subtree(&path) {
            Ok(tree) => Ok((tree, None)),
            Err(error) if error.kind() == ErrorKind::NotFound || error.kind() == ErrorKind::NotADirectory => {
                let (directory, name) = path.split();
                let tree = self.tree.subtree(&Relative::parse(directory)?);
                Ok((tree.map_err(|error| failed(directory, error))?, Some(name.to_owned())))
            }
            Err(error) => Err(failed(path.as_str(), error)),
        }
    }
}

/// What a client asks for.
#[derive(Clone, Debug)]
pub struct Request {
    version: u32,
    /// Which way.
    pub direction: Direction,
    /// What on the server.
    pub path: String,
    name: Option<String>,
    /// How.
    pub options: Options,
    /// Who asks, as far as is known: a copy of the same one takes over from one whose client has gone.
    pub owner: Option<String>,
}

impl Request {
    /// Reads the first message of a stream.
    ///
    /// # Errors
    /// Where it is another, does not come in time, or the stream breaks.
    pub async fn read<R: AsyncRead + Unpin>(reader: &mut R) -> Result<Self, CopyError> {
        let first = tokio::time::timeout(HELLO_TIMEOUT, wire::read(reader)).await;
        match first.map_err(|_| CopyError::Protocol("nothing is asked for".into()))?? {
            Message::Hello { version, direction, path, name, options } => {
                Ok(Self { version, direction, path, name, options, owner: None })
            }
            _ => Err(CopyError::Protocol("the first message is no hello".into())),
        }
    }
}

async fn accept(name: Option<String>, writer: &mut (impl AsyncWrite + Unpin)) -> Result<(), CopyError> {
    wire::write(writer, &Message::Ready { name }).await?;
    Ok(writer.flush().await?)
}

/// Asks, and gives the name that the server has for the one source.
async fn ask<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    hello: &Message,
    reader: &mut R,
    writer: &mut W,
) -> Result<Option<String>, CopyError> {
    wire::write(writer, hello).await?;
    writer.flush().await?;
    match wire::read(reader).await? {
        Message::Ready { name } => Ok(name),
        Message::Refused { reason } => Err(CopyError::Refused(reason)),
        other => Err(wire::unexpected(&other)),
    }
}

/// Sends `source` into the directory `path` of a server. Where the server has no such directory, but the one before it, the
/// last part of `path` is the name that the one source gets; not so where it ends in a slash.
///
/// # Errors
/// Where the server refuses, or the stream or the protocol breaks.
pub async fn push<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    mut source: Source,
    path: &str,
    options: Options,
    progress: &Progress,
    reader: &mut R,
    writer: &mut W,
) -> Result<Outcome, CopyError> {
    let directory = path.strip_suffix('/');
    let to = directory.unwrap_or(path).to_owned();
    let hello =
        Message::Hello { version: VERSION, direction: Direction::Push, path: to, name: None, options };
    if let Some(name) = ask(&hello, reader, writer).await? {
        if directory.is_some() {
            return Err(CopyError::Refused(format!("{path} is no directory there")));
        }
        source.rename(&name).map_err(|reason| CopyError::Refused(format!("{path}: {reason}")))?;
    }
    send(&source, options, progress, reader, writer).await
}

/// Fetches `path` of a server to `destination`: into it where it is a directory, else under its name.
///
/// # Errors
/// Where neither `destination` nor what it stands in is a directory, the server refuses, or the stream or the protocol
/// breaks.
pub async fn pull<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    path: &str,
    destination: &Path,
    options: Options,
    progress: &Progress,
    reader: &mut R,
    writer: &mut W,
) -> Result<Outcome, CopyError> {
    let (tree, name) = place(destination)?;
    let path = path.to_owned();
    let hello = Message::Hello { version: VERSION, direction: Direction::Pull, path, name, options };
    ask(&hello, reader, writer).await?;
    receive(&tree, options, None, progress, reader, writer).await
}

/// The directory that `destination` is; or the one that it stands in, and its name there.
fn place(destination: &Path) -> Result<(Tree, Option<String>), CopyError> {
    let wrong = |what: String| CopyError::Argument(format!("{}: {what}", destination.display()));
    let slash = destination.as_os_str().as_encoded_bytes().ends_with(b"/");
    if slash || destination.is_dir() {
        return Ok((Tree::open(destination).map_err(|error| wrong(error.to_string()))?, None));
    }
    let name = destination.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| wrong("no name for a file".into()))?.to_owned();
    let parent = destination.parent().filter(|parent| !parent.as_os_str().is_empty());
    let tree = Tree::open(parent.unwrap_or(Path::new("."))).map_err(|error| wrong(error.to_string()))?;
    Ok((tree, Some(name)))
}
