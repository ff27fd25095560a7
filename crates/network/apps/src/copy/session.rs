//! The protocol of a copy at the client and at the server, starting with the first message.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, AsyncWriteExt as _};

use super::lists::Lists;
use super::manifest::TopNames;
use super::receiver::{OnServer, Terms, receive};
use super::sender::{Source, send, show};
use super::tree::{Relative, Tree};
use super::wire::{
    self, ASKED_MAX, Arriving, ENTRIES_MAX, Entry, Kind, Listing, Message, Piece, VERSION, Work,
};
use super::writers::Writers;
use super::{Action, CopyError, CopyReport, Options, Progress, Report, Rights};

/// Time limit for a client's request on a new stream. Ours.
const HELLO_TIMEOUT: Duration = Duration::from_secs(30);

/// Time limit for a refused client to finish sending its list. Ours.
const HEARD_TIMEOUT: Duration = Duration::from_secs(30);

/// The directory tree or the single file that is served.
#[derive(Debug)]
pub struct Served {
    tree: Tree,
    /// The one served file below `tree`; `None` if the whole tree is served.
    file: Option<Relative>,
    rights: Rights,
    writers: Writers,
    lists: Lists,
}

impl Served {
    /// Serves the file or directory at `path`, for reading or also for writing.
    ///
    /// # Errors
    /// If it does not exist, or is a file that should be writable.
    pub fn new(path: &Path, is_writable: bool) -> Result<Self, CopyError> {
        let rights = if is_writable { Rights::Write } else { Rights::Read };
        let failed = |error| CopyError::Argument(format!("{}: {error}", path.display()));
        let path = path.canonicalize().map_err(failed)?;
        if path.is_dir() {
            return Ok(Self {
                tree: Tree::open(&path).map_err(failed)?,
                file: None,
                rights,
                writers: Writers::default(),
                lists: Lists::default(),
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
            rights,
            writers: Writers::default(),
            lists: Lists::default(),
        })
    }

    /// Number and bytes of the partial files that interrupted copies have left. Reads all directories.
    pub fn parts(&self) -> (u64, u64) {
        self.tree.parts()
    }

    /// Serves a client's request on one stream.
    ///
    /// # Errors
    /// If the request is refused, the stream breaks, or the client violates the protocol.
    pub async fn serve<R: AsyncBufRead + Unpin, W: AsyncWrite + Unpin>(
        &self,
        reader: &mut R,
        writer: &mut W,
    ) -> Result<CopyReport, CopyError> {
        let request = Request::read(reader).await?;
        self.answer(request, reader, writer).await
    }

    /// Serves `request`.
    ///
    /// # Errors
    /// If it is refused, the stream breaks, or the client violates the protocol.
    pub async fn answer<R: AsyncBufRead + Unpin, W: AsyncWrite + Unpin>(
        &self,
        request: Request,
        reader: &mut R,
        writer: &mut W,
    ) -> Result<CopyReport, CopyError> {
        let done = self.work(request, reader, writer).await;
        if let Err(error @ CopyError::Limit { .. }) = &done {
            // The reason is sent first; the client reads it after it has sent its current messages.
            wire::write(writer, &Message::Refused { reason: error.to_string() }).await?;
            writer.flush().await?;
            let _ =
                tokio::time::timeout(HEARD_TIMEOUT, tokio::io::copy(reader, &mut tokio::io::sink())).await;
        }
        done
    }

    async fn work<R: AsyncBufRead + Unpin, W: AsyncWrite + Unpin>(
        &self,
        request: Request,
        reader: &mut R,
        writer: &mut W,
    ) -> Result<CopyReport, CopyError> {
        let progress = Progress::default();
        let Request { version, work, options, owner, rights } = request;
        let rights = rights.unwrap_or(self.rights);
        let arrival = self.writers.arrival();
        let refusal = match work {
            _ if version != VERSION => {
                format!("version {version} of the protocol is asked for, this is {VERSION}")
            }
            Some(Work::Pull { paths, name }) => match self.source(&paths, name.as_deref(), rights) {
                Ok(source) => {
                    accept(None, writer).await?;
                    return send(&source, &options, &progress, &self.lists, reader, writer).await;
                }
                Err(reason) => reason,
            },
            Some(Work::List(listing)) => match self.to_list(&listing, rights) {
                Ok(source) => {
                    accept(None, writer).await?;
                    show(&source, &options, &self.lists, writer).await?;
                    return Ok(CopyReport::default());
                }
                Err(reason) => reason,
            },
            Some(Work::Push { path, is_directory }) => {
                match self.destination(&path, is_directory, rights, &options) {
                    Ok((tree, name, below)) => {
                        accept(name.clone(), writer).await?;
                        let tops = name.map_or(TopNames::Any, TopNames::One);
                        let writers = &self.writers;
                        let on_server =
                            owner.as_deref().map(|owner| OnServer { writers, owner, arrival, below });
                        let terms = Terms { options: &options, rights, tops, on_server, lists: &self.lists };
                        return receive(&tree, terms, &progress, reader, writer).await;
                    }
                    Err(reason) => reason,
                }
            }
            None => "nothing is asked for".into(),
        };
        let reason = wire::bounded(refusal);
        wire::write(writer, &Message::Refused { reason: reason.clone() }).await?;
        writer.flush().await?;
        Err(CopyError::Refused(reason))
    }

    /// The requested paths. If a single file is served, it may also be requested without its name.
    fn paths(&self, paths: &[String], rights: Rights) -> Result<Vec<String>, String> {
        if rights == Rights::Drop {
            return Err("this server accepts files and shows none".into());
        }
        let Some(file) = &self.file else { return Ok(paths.to_vec()) };
        match paths.iter().all(|path| path.is_empty() || path == file.as_str()) {
            true => Ok(vec![file.as_str().to_owned()]),
            false => Err("it is not served".into()),
        }
    }

    fn source(&self, paths: &[String], name: Option<&str>, rights: Rights) -> Result<Source, String> {
        let mut source = Source::below(&self.tree, &self.paths(paths, rights)?)?;
        name.map_or(Ok(()), |name| source.rename(name))?;
        Ok(source)
    }

    fn to_list(&self, listing: &Listing, rights: Rights) -> Result<Source, String> {
        Source::to_list(&self.tree, &self.paths(&listing.paths, rights)?, listing)
    }

    /// As [`place_in`] the served tree, if `rights` allow it.
    fn destination(
        &self,
        path: &str,
        is_directory: bool,
        rights: Rights,
        options: &Options,
    ) -> Result<(Tree, Option<String>, Relative), String> {
        match rights {
            Rights::Read => Err("served for reading only".into()),
            Rights::Drop if options.delete => Err("this server removes nothing".into()),
            Rights::Drop | Rights::Write => place_in(&self.tree, path, is_directory, options.dry_run),
        }
    }
}

/// The directory `path` below `tree` and no name, if `path` exists as a directory or `is_directory`; otherwise the
/// parent directory and the last name. Missing directories are created. The path of the directory comes last.
fn place_in(
    tree: &Tree,
    path: &str,
    is_directory: bool,
    dry_run: bool,
) -> Result<(Tree, Option<String>, Relative), String> {
    let path = Relative::parse(path)?;
    let failed = |path: &str, error: std::io::Error| format!("{path}: {error}");
    match tree.subtree(&path) {
        Ok(tree) => Ok((tree, None, path)),
        Err(error) if error.kind() == ErrorKind::NotADirectory && is_directory => {
            Err(format!("{}: no directory", path.as_str()))
        }
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            let (before, name) = path.split();
            let directory = if is_directory { path.clone() } else { Relative::parse(before)? };
            let tree =
                tree.make_subtree(&directory, dry_run).map_err(|error| failed(directory.as_str(), error))?;
            Ok((tree, (!is_directory).then(|| name.to_owned()), directory))
        }
        Err(error) => Err(failed(path.as_str(), error)),
    }
}

/// A client's request.
#[derive(Clone, Debug)]
pub struct Request {
    version: u32,
    /// What to do; `None` if the client has another version.
    pub work: Option<Work>,
    /// The options.
    pub options: Options,
    /// The user of the client, if known. A new copy of the same user can take over files from a copy whose client is
    /// gone.
    pub owner: Option<String>,
    /// Rights of this client, if they differ from the default rights.
    pub rights: Option<Rights>,
}

impl Request {
    /// Reads the first messages of a stream.
    ///
    /// # Errors
    /// If they are not a request, do not arrive in time, or the stream breaks.
    pub async fn read<R: AsyncRead + Unpin>(reader: &mut R) -> Result<Self, CopyError> {
        let first = tokio::time::timeout(HELLO_TIMEOUT, Self::read_now(reader)).await;
        first.map_err(|_| CopyError::Protocol("nothing is asked for".into()))?
    }

    async fn read_now<R: AsyncRead + Unpin>(reader: &mut R) -> Result<Self, CopyError> {
        let Message::Hello { version, .. } = wire::read(reader).await? else {
            return Err(CopyError::Protocol("the first message is no hello".into()));
        };
        let mut request =
            Self { version, work: None, options: Options::default(), owner: None, rights: None };
        if version != VERSION {
            return Ok(request);
        }
        match wire::read(reader).await? {
            Message::Ask { work, options } => {
                if options.exclude.len() > ASKED_MAX {
                    return Err(CopyError::Limit { what: "patterns", max: ASKED_MAX });
                }
                (request.work, request.options) = (Some(work), options);
                Ok(request)
            }
            other => Err(wire::unexpected(&other)),
        }
    }
}

async fn accept(name: Option<String>, writer: &mut (impl AsyncWrite + Unpin)) -> Result<(), CopyError> {
    wire::write(writer, &Message::Ready { name }).await?;
    Ok(writer.flush().await?)
}

/// Sends a request, and returns the name that the server assigns to a single source.
async fn request<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    work: Work,
    options: &Options,
    reader: &mut R,
    writer: &mut W,
) -> Result<Option<String>, CopyError> {
    wire::write(writer, &Message::hello()).await?;
    wire::write(writer, &Message::Ask { work, options: options.clone() }).await?;
    writer.flush().await?;
    match wire::read(reader).await? {
        Message::Ready { name } => Ok(name),
        Message::Refused { reason } => Err(CopyError::Refused(reason)),
        other => Err(wire::unexpected(&other)),
    }
}

/// Sends `source` into the directory `path` of a server. If the server has no such directory, the last part of `path`
/// becomes the name of a single source; but if `path` ends in a slash or there are several sources, the directory is
/// created.
///
/// # Errors
/// If the server refuses or violates the protocol, or the stream breaks.
pub async fn push<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    mut source: Source,
    path: &str,
    options: &Options,
    progress: &Progress,
    reader: &mut R,
    writer: &mut W,
) -> Result<CopyReport, CopyError> {
    let directory = path.strip_suffix('/');
    let is_directory = directory.is_some() || !source.is_single();
    let to = directory.unwrap_or(path).to_owned();
    if let Some(name) = request(Work::Push { path: to, is_directory }, options, reader, writer).await? {
        source.rename(&name).map_err(|reason| CopyError::Refused(format!("{path}: {reason}")))?;
    }
    if source.needs_name() {
        return Err(CopyError::Argument(format!(
            "{path:?} is a directory on the server: add a file name for standard input"
        )));
    }
    send(&source, options, progress, &Lists::default(), reader, writer).await
}

/// Fetches `paths` of a server to `destination`. The paths are stored in `destination` if that is a directory, ends in
/// a slash or there are several paths; otherwise the one path is stored under the name `destination`. Missing
/// directories are created.
///
/// # Errors
/// If another kind of file is in the way, the server refuses or violates the protocol, or the stream breaks.
pub async fn pull<R: AsyncBufRead + Unpin, W: AsyncWrite + Unpin>(
    paths: &[String],
    destination: &Path,
    options: &Options,
    progress: &Progress,
    reader: &mut R,
    writer: &mut W,
) -> Result<CopyReport, CopyError> {
    let wrong = |reason: String| CopyError::Argument(format!("{}: {reason}", destination.display()));
    let text = destination.to_str().ok_or_else(|| wrong("the name is not UTF-8".into()))?;
    let is_directory = text.ends_with('/') || paths.len() > 1;
    let name = match is_directory || destination.is_dir() {
        true => None,
        false => Some(text.rsplit('/').next().unwrap_or_default().to_owned()),
    };
    if name.as_deref().is_some_and(|name| matches!(name, "" | "." | "..")) {
        return Err(wrong("no name for a file".into()));
    }
    let work = Work::Pull { paths: paths.to_vec(), name: name.clone() };
    request(work, options, reader, writer).await?;
    let before = if name.is_none() { text } else { text.rsplit_once('/').map_or("", |(before, _)| before) };
    // For a path such as `/name`, the directory is `/`.
    let before = if before.is_empty() && text.starts_with('/') { "/" } else { before };
    let tree = open_or_make(Path::new(before), options.dry_run).map_err(|error| wrong(error.to_string()))?;
    let tops = TopNames::asked(paths, name.as_deref());
    let lists = Lists::default();
    let terms = Terms { options, rights: Rights::Write, tops, on_server: None, lists: &lists };
    receive(&tree, terms, progress, reader, writer).await
}

/// Opens a local directory; creates it if it does not exist.
fn open_or_make(directory: &Path, dry_run: bool) -> std::io::Result<Tree> {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    match Tree::open(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound && dry_run => Ok(Tree::missing()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            std::fs::create_dir_all(directory)?;
            Tree::open(directory)
        }
        opened => opened,
    }
}

/// Calls `found` with each entry of the `listing` of a server, and with each entry that it cannot list.
///
/// # Errors
/// If the server refuses or violates the protocol, or the stream breaks; and the errors of `found`.
pub async fn list<R: AsyncRead + Unpin, W: AsyncWrite + Unpin, E: From<CopyError>>(
    listing: Listing,
    options: &Options,
    reader: &mut R,
    writer: &mut W,
    mut found: impl FnMut(Result<Entry, Report>) -> Result<(), E>,
) -> Result<(), E> {
    request(Work::List(listing), options, reader, writer).await?;
    for _ in 0..=ENTRIES_MAX {
        match wire::read(reader).await? {
            Message::Entry(entry) => found(Ok(entry))?,
            Message::Omitted { path, reason, is_failure } => {
                let action = if is_failure { Action::Failed } else { Action::Skipped };
                found(Err(Report { path, action, reason: Some(reason) }))?;
            }
            Message::EntriesEnd { .. } => return Ok(()),
            other => return Err(wire::unexpected(&other).into()),
        }
    }
    Err(CopyError::Limit { what: "paths", max: ENTRIES_MAX }.into())
}

/// Writes the contents of the one file `path` of a server to `out`.
///
/// # Errors
/// If the server refuses or violates the protocol, the path is not a file, the file cannot be sent or written
/// completely, or the stream breaks.
pub async fn pull_into<R: AsyncBufRead + Unpin, W: AsyncWrite + Unpin>(
    path: &str,
    out: &mut (impl AsyncWrite + Unpin),
    progress: &Progress,
    reader: &mut R,
    writer: &mut W,
) -> Result<CopyReport, CopyError> {
    let options = Options::default();
    request(Work::Pull { paths: vec![path.to_owned()], name: None }, &options, reader, writer).await?;
    one_file(path, reader).await?;
    wire::write(writer, &Message::Want { index: 0, offset_bytes: 0, blake3: String::new() }).await?;
    wire::write(writer, &Message::WantsEnd).await?;
    writer.flush().await?;
    match wire::read(reader).await? {
        Message::Contents { index: 0, offset_bytes: 0, size_bytes, .. } => {
            progress.total_bytes.store(size_bytes.unwrap_or(0), std::sync::atomic::Ordering::Relaxed);
        }
        other => return Err(wire::unexpected(&other)),
    }
    let mut outcome = CopyReport::default();
    let (mut hasher, mut arriving) = (blake3::Hasher::new(), Arriving::default());
    let mut zeros = Vec::new();
    loop {
        let (bytes, received) = match arriving.next(reader).await? {
            Piece::End => break,
            Piece::Hole(bytes) => {
                // Bounded by the longest hole of one piece.
                zeros.resize(usize::try_from(bytes).unwrap_or(0), 0);
                (&zeros[..], 0)
            }
            Piece::Bytes(bytes) => (bytes, bytes.len()),
        };
        hasher.update(bytes);
        out.write_all(bytes).await?;
        progress.done_bytes.fetch_add(bytes.len() as u64, std::sync::atomic::Ordering::Relaxed);
        outcome.summary.received_bytes += received as u64;
        arriving.take(reader, received);
    }
    out.flush().await?;
    let failure = match wire::read(reader).await? {
        Message::ContentsEnd { failure: Some(failure), .. } => Some(failure),
        Message::ContentsEnd { blake3, failure: None, .. } => {
            (hasher.finalize().to_hex().as_str() != blake3).then(|| "its checksum is wrong".to_owned())
        }
        other => return Err(wire::unexpected(&other)),
    };
    let action = if failure.is_some() { Action::Failed } else { Action::Copied };
    outcome.summary.count(action);
    let report = Report { path: wire::bounded(path.to_owned()), action, reason: failure };
    wire::write(writer, &Message::Report(report.clone())).await?;
    outcome.paths.push(report);
    wire::write(writer, &Message::Summary(outcome.summary)).await?;
    writer.flush().await?;
    Ok(outcome)
}

/// Reads a list that must contain exactly one file.
async fn one_file<R: AsyncRead + Unpin>(path: &str, reader: &mut R) -> Result<(), CopyError> {
    let shown = if path.is_empty() { "/" } else { path };
    let wrong =
        |what: &str| CopyError::Argument(format!("{shown}: {what}; only one file can go to standard output"));
    let mut files = 0;
    loop {
        match wire::read(reader).await? {
            Message::Entry(Entry { kind: Kind::File { .. }, .. }) if files == 0 => files += 1,
            Message::Entry(Entry { kind: Kind::File { .. }, .. }) => return Err(wrong("several files")),
            Message::Entry(Entry { kind: Kind::Directory, .. }) => return Err(wrong("a directory")),
            Message::Entry(Entry { kind: Kind::Symlink { .. }, .. }) => return Err(wrong("a symbolic link")),
            Message::Omitted { reason, .. } => return Err(wrong(&reason)),
            Message::EntriesEnd { .. } if files == 1 => return Ok(()),
            Message::EntriesEnd { .. } => return Err(wrong("no file")),
            other => return Err(wire::unexpected(&other)),
        }
    }
}
