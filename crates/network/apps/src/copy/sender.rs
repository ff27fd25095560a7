//! The end that sends the files.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use rustix::fs::FileType;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;

use super::lists::{ListBudget, Lists};
use super::pattern::excludes;
use super::tree::{
    self, PARTIAL_SUFFIX, Relative, Tree, file_type, hash_hole, hash_prefix, join_os, mtime_of, size_of,
};
use super::wire::{self, ASKED_MAX, ENTRIES_MAX, Entry, HOLE_BYTES_MAX, Kind, Listing, Message, Timestamp};
use super::{CopyError, CopyReport, Options, Progress};

/// Pieces after which the sender checks for stop requests, if it never has to wait. Ours: 1 MiB.
const PIECES_AT_ONCE: u32 = 16;
/// Permissions of a file that was sent as a stream.
const STREAM_MODE: u32 = 0o644;

/// An input without a name that is read to its end, such as a pipe.
pub type Stream = Box<dyn AsyncRead + Unpin + Send>;

/// The paths to send: contents of a directory, named files and directories, or a stream.
#[derive(Debug, Default)]
pub struct Source {
    roots: Vec<SourceRoot>,
    stream: Option<StreamRoot>,
    parts: Parts,
}

/// How partial files of interrupted copies are listed. They are never copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Parts {
    /// As paths that are skipped.
    #[default]
    Skipped,
    /// As entries.
    Entries,
    /// Not at all.
    Hidden,
}

#[derive(Debug)]
struct SourceRoot {
    tree: Tree,
    /// Path below `tree`; if empty, everything in `tree` is sent, without a name of its own.
    start: Relative,
    /// Name of `start` at the destination, if it differs.
    name: Option<Relative>,
    /// How many levels below `start` are listed; 0 lists `start` only.
    depth_max: usize,
}

struct StreamRoot {
    stream: tokio::sync::Mutex<Stream>,
    name: Relative,
}

impl std::fmt::Debug for StreamRoot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamRoot").field("name", &self.name).finish_non_exhaustive()
    }
}

impl SourceRoot {
    fn new(tree: Tree, start: Relative) -> Self {
        Self { tree, start, name: None, depth_max: usize::MAX }
    }

    /// Path at the destination for `path`, which is `start` or below it.
    fn arrives(&self, path: &Relative) -> Result<Relative, String> {
        let Some(name) = &self.name else { return Ok(path.clone()) };
        let below = path.as_str().strip_prefix(self.start.as_str()).unwrap_or_default();
        match below.trim_start_matches('/') {
            "" => Ok(name.clone()),
            below => name.join(below),
        }
    }

    /// Number of levels between `start` and `path`.
    fn depth(&self, path: &Relative) -> usize {
        let below = path.as_str().strip_prefix(self.start.as_str()).unwrap_or_default();
        below.split('/').filter(|name| !name.is_empty()).count()
    }
}

impl Source {
    /// The paths that the user names. Each is sent under its last name; `DIR/` and `.` are sent without a name of their
    /// own.
    ///
    /// # Errors
    /// If a path does not exist, or its name is not UTF-8.
    pub fn named(paths: &[impl AsRef<Path>]) -> Result<Self, CopyError> {
        let mut source = Self::default();
        for path in paths {
            let path = path.as_ref();
            let failed = |error| CopyError::Argument(format!("{}: {error}", path.display()));
            let text = path
                .to_str()
                .ok_or_else(|| CopyError::Argument(format!("{}: the name is not UTF-8", path.display())))?;
            let root = match path.file_name().filter(|_| !text.ends_with('/') && !text.ends_with("/.")) {
                Some(name) => {
                    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
                    let tree = Tree::open(parent.unwrap_or(Path::new("."))).map_err(failed)?;
                    let start = Relative::parse(&name.to_string_lossy()).map_err(CopyError::Argument)?;
                    tree.stat(&start).map_err(failed)?;
                    SourceRoot::new(tree, start)
                }
                None => SourceRoot::new(Tree::open(path).map_err(failed)?, Relative::default()),
            };
            source.add(root).map_err(CopyError::Argument)?;
        }
        Ok(source)
    }

    /// The bytes of `stream` up to its end, sent as one file whose name the destination decides.
    pub fn stream(stream: Stream) -> Self {
        let stream = tokio::sync::Mutex::new(stream);
        let stream = Some(StreamRoot { stream, name: Relative::default() });
        Self { stream, ..Self::default() }
    }

    /// True for a single source, which can be renamed.
    pub fn is_single(&self) -> bool {
        self.roots.len() + usize::from(self.stream.is_some()) == 1
    }

    /// True if the source has no name unless it is given one.
    pub fn needs_name(&self) -> bool {
        self.stream.as_ref().is_some_and(|root| root.name.is_empty())
    }

    fn add(&mut self, root: SourceRoot) -> Result<(), String> {
        if self.roots.iter().any(|other| other.start == root.start) {
            return Err(format!("two sources are called {:?}", root.start.as_str()));
        }
        self.roots.push(root);
        Ok(())
    }

    /// The `paths` below `tree`, each under its last name, or without a name of its own if it ends in a slash. A path
    /// that does not exist is a pattern.
    pub(super) fn below(tree: &Tree, paths: &[String]) -> Result<Self, String> {
        if paths.is_empty() || paths.len() > ASKED_MAX {
            return Err(format!("from 1 to {ASKED_MAX} paths can be asked for"));
        }
        let mut source = Self::default();
        for path in paths {
            let named = Relative::parse(path.strip_suffix('/').unwrap_or(path))?;
            let slash = if path.ends_with('/') { "/" } else { "" };
            let named = tree.followed(&named, !slash.is_empty());
            for found in tree.expand(&named).map_err(|error| format!("{path}: {error}"))? {
                let root = root_below(tree, &format!("{}{slash}", found.as_str()));
                source.add(root.map_err(|error| format!("{path}: {error}"))?)?;
            }
        }
        Ok(source)
    }

    /// For `listing`: the entries at `paths` below `tree` and the entries of a single directory; or everything below.
    pub(super) fn to_list(tree: &Tree, paths: &[String], listing: &Listing) -> Result<Self, String> {
        let one = match paths {
            [path] => Relative::parse(path.trim_end_matches('/'))
                .ok()
                .map(|named| tree.followed(&named, path.ends_with('/'))),
            _ => None,
        };
        let inside = one.and_then(|path| tree.subtree(&path).ok());
        let mut source = match inside {
            Some(tree) => Self { roots: vec![SourceRoot::new(tree, Relative::default())], ..Self::default() },
            None => Self::below(tree, paths)?,
        };
        for root in source.roots.iter_mut().filter(|_| !listing.is_recursive) {
            root.depth_max = usize::from(root.start.is_empty());
        }
        source.parts = if listing.with_parts { Parts::Entries } else { Parts::Hidden };
        Ok(source)
    }

    /// Sends the one source under another name.
    ///
    /// # Errors
    /// If there are several sources, or the name is invalid.
    pub(super) fn rename(&mut self, name: &str) -> Result<(), String> {
        let name = Relative::parse(name)?;
        if name.is_empty() || !name.split().0.is_empty() {
            return Err("no name for the source".into());
        }
        match (&mut self.roots[..], &mut self.stream) {
            ([root], None) => root.name = Some(name),
            ([], Some(stream)) => stream.name = name,
            _ => return Err("several sources need a directory: end it in a slash".into()),
        }
        Ok(())
    }
}

/// The root at `path` below `tree`.
fn root_below(tree: &Tree, path: &str) -> Result<SourceRoot, String> {
    let (directory, name) = match path.strip_suffix('/') {
        Some(directory) => (directory, ""),
        None => path.rsplit_once('/').unwrap_or(("", path)),
    };
    let (directory, start) = (Relative::parse(directory)?, Relative::parse(name)?);
    let text = |error: std::io::Error| error.to_string();
    let tree = tree.subtree(&directory).map_err(text)?;
    tree.stat(&start).map_err(text)?;
    Ok(SourceRoot::new(tree, start))
}

/// A file of the manifest.
struct Listed {
    /// Index of its root; `None` for the stream.
    root: Option<usize>,
    path: Relative,
    size_bytes: u64,
}

/// The sender's record of its manifest, needed for the receiver's reports.
struct Manifest<'a> {
    /// By manifest index; `None` for entries that are not files.
    files: Vec<Option<Listed>>,
    omitted_count: usize,
    list_budget: ListBudget<'a>,
}

impl Manifest<'_> {
    async fn entry<W: AsyncWrite + Unpin>(
        &mut self,
        entry: Entry,
        root: Option<usize>,
        path: &Relative,
        writer: &mut W,
    ) -> Result<(), CopyError> {
        self.has_room()?;
        self.list_budget.add(entry.path.len())?;
        let size_bytes = match entry.kind {
            Kind::File { size_bytes, .. } => Some(size_bytes),
            Kind::Stream => Some(0),
            Kind::Directory | Kind::Symlink { .. } => None,
        };
        self.files.push(size_bytes.map(|size_bytes| Listed { root, path: path.clone(), size_bytes }));
        wire::write(writer, &Message::Entry(entry)).await
    }

    async fn omit<W: AsyncWrite + Unpin>(
        &mut self,
        path: String,
        reason: NotListed,
        writer: &mut W,
    ) -> Result<(), CopyError> {
        self.has_room()?;
        self.omitted_count += 1;
        let (reason, is_failure) = match reason {
            NotListed::Failed(reason) => (reason, true),
            NotListed::NotCarried(reason) => (reason, false),
        };
        let (path, reason) = (wire::bounded(path), wire::bounded(reason));
        wire::write(writer, &Message::Omitted { path, reason, is_failure }).await
    }

    fn has_room(&self) -> Result<(), CopyError> {
        match self.files.len() + self.omitted_count < ENTRIES_MAX {
            true => Ok(()),
            false => Err(CopyError::Limit { what: "paths", max: ENTRIES_MAX }),
        }
    }
}

/// Why a path is not sent.
enum NotListed {
    /// It could not be read.
    Failed(String),
    /// Paths of this type are not copied.
    NotCarried(String),
}

/// Sends `source` and returns the receiver's report.
///
/// # Errors
/// If the stream breaks, or the receiver violates the protocol. Files that cannot be read are in the outcome.
pub(super) async fn send<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    source: &Source,
    options: &Options,
    progress: &Progress,
    lists: &Lists,
    reader: &mut R,
    writer: &mut W,
) -> Result<CopyReport, CopyError> {
    let mut manifest = list(source, options, lists, writer).await?;
    let wants = wants(source, &mut manifest, progress, reader).await?;
    let mut list_budget = lists.list_budget();
    let stop_requests = StopRequests::default();
    let sending = async {
        for want in &wants {
            // `wants` checked that every want refers to a file.
            let Some(Some(listed)) = manifest.files.get(want.index) else { continue };
            let mut sending =
                Sending { index: want.index, stop_requests: &stop_requests, progress, writer: &mut *writer };
            match listed.root {
                Some(root) => sending.file(&source.roots[root].tree, listed, want).await?,
                None => sending.stream(source).await?,
            }
        }
        Ok(writer.flush().await?)
    };
    // Messages are read while contents are sent; otherwise both ends could wait for each other with full buffers.
    let ((), outcome) = tokio::try_join!(
        sending,
        read_reports(source, &manifest, &stop_requests, progress, &mut list_budget, reader)
    )?;
    Ok(outcome)
}

/// Sends the entries of `source` as a listing.
pub(super) async fn show<W: AsyncWrite + Unpin>(
    source: &Source,
    options: &Options,
    lists: &Lists,
    writer: &mut W,
) -> Result<(), CopyError> {
    list(source, options, lists, writer).await.map(|_| ())
}

async fn list<'a, W: AsyncWrite + Unpin>(
    source: &Source,
    options: &Options,
    lists: &'a Lists,
    writer: &mut W,
) -> Result<Manifest<'a>, CopyError> {
    let mut manifest = Manifest { files: Vec::new(), omitted_count: 0, list_budget: lists.list_budget() };
    for (index, root) in source.roots.iter().enumerate() {
        list_root(index, root, source.parts, options, &mut manifest, writer).await?;
    }
    if let Some(StreamRoot { name, .. }) = &source.stream {
        let path = name.as_str().to_owned();
        let entry = Entry { path, kind: Kind::Stream, mtime: Timestamp::default(), mode: STREAM_MODE };
        manifest.entry(entry, None, name, writer).await?;
    }
    let is_top_listed = source.roots.iter().any(|root| root.start.is_empty() && root.name.is_none());
    wire::write(writer, &Message::EntriesEnd { is_top_listed }).await?;
    writer.flush().await?;
    Ok(manifest)
}

/// Files that the receiver cannot store.
#[derive(Default)]
struct StopRequests {
    indexes: Mutex<BTreeSet<usize>>,
    more: Notify,
}

impl StopRequests {
    fn has(&self, index: usize) -> bool {
        self.indexes.lock().unwrap_or_else(PoisonError::into_inner).contains(&index)
    }

    fn insert(&self, index: usize) {
        self.indexes.lock().unwrap_or_else(PoisonError::into_inner).insert(index);
        self.more.notify_one();
    }
}

/// Reads the receiver's messages after `wants_end`.
async fn read_reports<R: AsyncRead + Unpin>(
    source: &Source,
    manifest: &Manifest<'_>,
    stop_requests: &StopRequests,
    progress: &Progress,
    list_budget: &mut ListBudget<'_>,
    reader: &mut R,
) -> Result<CopyReport, CopyError> {
    let mut paths = Vec::new();
    loop {
        match wire::read(reader).await? {
            Message::Stop { index, reason } if paths.is_empty() => {
                on_stop(source, manifest, progress, index, &reason)?;
                stop_requests.insert(index);
            }
            Message::Report(report) if paths.len() < 2 * ENTRIES_MAX => {
                list_budget.add(report.path.len() + report.reason.as_ref().map_or(0, String::len))?;
                paths.push(report);
            }
            Message::Summary(summary) => return Ok(CopyReport { summary, paths }),
            other => return Err(wire::unexpected(&other)),
        }
    }
}

/// Records a file that the receiver cannot store.
fn on_stop(
    source: &Source,
    manifest: &Manifest<'_>,
    progress: &Progress,
    index: usize,
    reason: &str,
) -> Result<(), CopyError> {
    let Some(Some(listed)) = manifest.files.get(index) else {
        return Err(CopyError::Protocol("a stop names no file".into()));
    };
    let name = listed.root.and_then(|root| source.roots[root].arrives(&listed.path).ok());
    progress.on_failure(name.as_ref().unwrap_or(&listed.path).as_str(), reason);
    Ok(())
}

/// Writes the entries of `root`, a directory before its contents.
async fn list_root<W: AsyncWrite + Unpin>(
    index: usize,
    root: &SourceRoot,
    parts: Parts,
    options: &Options,
    manifest: &mut Manifest<'_>,
    writer: &mut W,
) -> Result<(), CopyError> {
    let mut open = vec![root.start.clone()];
    while let Some(path) = open.pop() {
        let name = root.arrives(&path);
        let shown = name.as_ref().unwrap_or(&path).as_str().to_owned();
        // A root without a name is a directory whose own entry is not sent.
        let is_top = path.is_empty() && root.name.is_none();
        if !is_top {
            let entry = name.map_err(NotListed::NotCarried);
            match entry.and_then(|_| entry_of(&root.tree, &path, &shown, parts, options)) {
                Ok(None) => continue,
                Ok(Some(entry)) => {
                    let is_directory = entry.kind == Kind::Directory;
                    manifest.entry(entry, Some(index), &path, writer).await?;
                    if !is_directory {
                        continue;
                    }
                }
                Err(reason) => {
                    manifest.omit(shown, reason, writer).await?;
                    continue;
                }
            }
        }
        if root.depth(&path) >= root.depth_max {
            continue;
        }
        match root.tree.names(path.as_str()) {
            Ok(names) => {
                for name in names.into_iter().rev() {
                    let utf8 = name.to_str().ok_or_else(|| "the name is not UTF-8".to_owned());
                    match utf8.and_then(|name| path.join(name)) {
                        Ok(path) => open.push(path),
                        Err(reason) => {
                            let shown = join_os(OsStr::new(&shown), &name).to_string_lossy().into_owned();
                            if !excludes(&options.exclude, &shown, false) {
                                manifest.omit(shown, NotListed::NotCarried(reason), writer).await?;
                            }
                        }
                    }
                }
            }
            Err(error) => manifest.omit(shown, NotListed::Failed(error.to_string()), writer).await?,
        }
    }
    Ok(())
}

/// The entry of `path`, which arrives as `name`; `None` if it is excluded or hidden.
fn entry_of(
    tree: &Tree,
    path: &Relative,
    name: &str,
    parts: Parts,
    options: &Options,
) -> Result<Option<Entry>, NotListed> {
    let not_listed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => NotListed::NotCarried("it vanished".into()),
        _ => NotListed::Failed(error.to_string()),
    };
    let stat = tree.stat(path).map_err(not_listed)?;
    let file_type = file_type(&stat);
    if excludes(&options.exclude, name, file_type == FileType::Directory) {
        return Ok(None);
    }
    match parts {
        Parts::Skipped if path.as_str().ends_with(PARTIAL_SUFFIX) => {
            return Err(NotListed::NotCarried("a part of an interrupted copy".into()));
        }
        Parts::Hidden if path.as_str().ends_with(PARTIAL_SUFFIX) => return Ok(None),
        _ => (),
    }
    let kind = match file_type {
        FileType::RegularFile => {
            let size_bytes = size_of(&stat);
            let mut blake3 = None;
            if options.checksum {
                let mut file = tree.read(path).map_err(not_listed)?;
                let hash = hash_prefix(&mut file, size_bytes).map_err(not_listed)?;
                let short = || NotListed::Failed("it shrank while it was read".into());
                blake3 = Some(hash.ok_or_else(short)?.finalize().to_hex().to_string());
            }
            Kind::File { size_bytes, blake3 }
        }
        FileType::Directory => Kind::Directory,
        FileType::Symlink => {
            let target = tree.link_target(path).map_err(not_listed)?.into_string();
            Kind::Symlink {
                target: target.map_err(|_| NotListed::NotCarried("the link's target is not UTF-8".into()))?,
            }
        }
        FileType::Fifo => return Err(NotListed::NotCarried("a FIFO".into())),
        FileType::Socket => return Err(NotListed::NotCarried("a socket".into())),
        FileType::CharacterDevice | FileType::BlockDevice => {
            return Err(NotListed::NotCarried("a device".into()));
        }
        FileType::Unknown => {
            return Err(NotListed::NotCarried("neither a file, a directory nor a symbolic link".into()));
        }
    };
    let (path, mtime, mode) = (name.to_owned(), mtime_of(&stat), stat.st_mode & 0o777);
    Ok(Some(Entry { path, kind, mtime, mode }))
}

struct Want {
    index: usize,
    offset_bytes: u64,
    blake3: String,
}

async fn wants<R: AsyncRead + Unpin>(
    source: &Source,
    manifest: &mut Manifest<'_>,
    progress: &Progress,
    reader: &mut R,
) -> Result<Vec<Want>, CopyError> {
    let mut wants: Vec<Want> = Vec::new();
    let mut total_bytes = 0u64;
    loop {
        match wire::read(reader).await? {
            Message::Want { index, offset_bytes, blake3 } => {
                if wants.last().is_some_and(|last| last.index >= index) {
                    return Err(CopyError::Protocol("files are wanted out of order".into()));
                }
                let Some(Some(listed)) = manifest.files.get(index) else {
                    return Err(CopyError::Protocol("a wanted entry is no file".into()));
                };
                if offset_bytes > listed.size_bytes {
                    return Err(CopyError::Protocol("a file is wanted from behind its end".into()));
                }
                total_bytes = total_bytes.saturating_add(listed.size_bytes - offset_bytes);
                manifest.list_budget.add(blake3.len())?;
                wants.push(Want { index, offset_bytes, blake3 });
            }
            Message::Stop { index, reason } => on_stop(source, manifest, progress, index, &reason)?,
            Message::WantsEnd => break,
            other => return Err(wire::unexpected(&other)),
        }
    }
    progress.total_bytes.store(total_bytes, Relaxed);
    progress.wanted.store(wants.len() as u64, Relaxed);
    Ok(wants)
}

/// A file that was opened for sending.
struct Opened {
    file: File,
    hasher: blake3::Hasher,
    /// Offset of the next byte to send.
    at_bytes: u64,
    /// Size when the file was opened. Bytes appended later are left to the next copy.
    size_bytes: u64,
    mtime: Timestamp,
    is_sparse: bool,
}

fn open(tree: &Tree, listed: &Listed, want: &Want) -> std::io::Result<Opened> {
    let mut file = tree.read(&listed.path)?;
    let stat = rustix::fs::fstat(&file)?;
    let (size_bytes, mtime, is_sparse) = (size_of(&stat), mtime_of(&stat), tree::is_sparse(&stat));
    if (1..=size_bytes).contains(&want.offset_bytes)
        && let Some(hasher) = hash_prefix(&mut file, want.offset_bytes)?
        && hasher.finalize().to_hex().as_str() == want.blake3
    {
        let at_bytes = want.offset_bytes;
        return Ok(Opened { file, hasher, at_bytes, size_bytes, mtime, is_sparse });
    }
    file.seek(SeekFrom::Start(0))?;
    Ok(Opened { file, hasher: blake3::Hasher::new(), at_bytes: 0, size_bytes, mtime, is_sparse })
}

/// One file that is being sent.
struct Sending<'a, W> {
    index: usize,
    stop_requests: &'a StopRequests,
    progress: &'a Progress,
    writer: &'a mut W,
}

/// Why sending the contents ended.
enum Sent {
    /// All contents were sent.
    All,
    /// The file has fewer bytes than when it was opened.
    Short,
    /// The receiver cannot store the file.
    Stopped,
}

impl<W: AsyncWrite + Unpin> Sending<'_, W> {
    /// Sends one file. Its last message reports failures.
    async fn file(&mut self, tree: &Tree, listed: &Listed, want: &Want) -> Result<(), CopyError> {
        let mut opened = match open(tree, listed, want) {
            Ok(opened) => opened,
            Err(error) => {
                self.begin(0, Some(listed.size_bytes), None).await?;
                wire::write_piece(self.writer, &[]).await?;
                let has_vanished = error.kind() == std::io::ErrorKind::NotFound;
                let (blake3, failure) = (String::new(), Some(wire::bounded(error.to_string())));
                let end = Message::ContentsEnd { blake3, failure, has_vanished };
                return wire::write(self.writer, &end).await;
            }
        };
        self.begin(opened.at_bytes, Some(opened.size_bytes), Some(opened.mtime)).await?;
        let failure = match self.contents(&mut opened).await? {
            Ok(Sent::All) => {
                let stat = rustix::fs::fstat(&opened.file).map_err(std::io::Error::from)?;
                let has_grown = size_of(&stat) > opened.size_bytes;
                // Appending changes the time as well: a file that has only grown counts as unchanged up to its old end.
                (mtime_of(&stat) != opened.mtime && !has_grown)
                    .then(|| "it changed while it was read".to_owned())
            }
            Ok(Sent::Short) => Some("it shrank while it was read".to_owned()),
            Ok(Sent::Stopped) => Some("stopped".to_owned()),
            Err(error) => Some(error.to_string()),
        };
        self.end(&opened.hasher, failure).await
    }

    async fn begin(
        &mut self,
        offset_bytes: u64,
        size_bytes: Option<u64>,
        mtime: Option<Timestamp>,
    ) -> Result<(), CopyError> {
        let index = self.index;
        wire::write(self.writer, &Message::Contents { index, offset_bytes, size_bytes, mtime }).await
    }

    async fn end(&mut self, hasher: &blake3::Hasher, failure: Option<String>) -> Result<(), CopyError> {
        wire::write_piece(self.writer, &[]).await?;
        let blake3 = hasher.finalize().to_hex().to_string();
        let failure = failure.map(wire::bounded);
        wire::write(self.writer, &Message::ContentsEnd { blake3, failure, has_vanished: false }).await
    }

    /// Sends the contents of `opened`; holes are sent as holes. The outer error is that of the stream, the inner one
    /// that of the file.
    async fn contents(&mut self, opened: &mut Opened) -> Result<std::io::Result<Sent>, CopyError> {
        let size_bytes = opened.size_bytes;
        let mut buffer = wire::Contents::default();
        let mut pieces = 0;
        // Offset at which the next hole begins.
        let mut data_to_bytes = if opened.is_sparse { opened.at_bytes } else { size_bytes };
        while opened.at_bytes < size_bytes {
            pieces += 1;
            if pieces % PIECES_AT_ONCE == 0 {
                // Lets `hear` run.
                tokio::task::yield_now().await;
            }
            if self.stop_requests.has(self.index) {
                return Ok(Ok(Sent::Stopped));
            }
            if opened.at_bytes >= data_to_bytes {
                let hole_bytes = match next_extent(opened) {
                    Ok((data_bytes, end_bytes)) => {
                        data_to_bytes = end_bytes;
                        data_bytes - opened.at_bytes
                    }
                    Err(error) => return Ok(Err(error)),
                };
                if hole_bytes > 0 {
                    // The next iteration continues after this hole.
                    let bytes = hole_bytes.min(HOLE_BYTES_MAX);
                    data_to_bytes = opened.at_bytes + bytes;
                    hash_hole(&mut opened.hasher, bytes);
                    wire::write_hole(self.writer, bytes).await?;
                    self.progress.done_bytes.fetch_add(bytes, Relaxed);
                    opened.at_bytes += bytes;
                    continue;
                }
            }
            let left = usize::try_from(data_to_bytes - opened.at_bytes).unwrap_or(usize::MAX);
            let room = buffer.room();
            let take = room.len().min(left);
            match opened.file.read(&mut room[..take]) {
                Ok(0) => return Ok(Ok(Sent::Short)),
                Ok(count) => {
                    opened.hasher.update(buffer.bytes(count));
                    buffer.write(self.writer, count).await?;
                    self.progress.done_bytes.fetch_add(count as u64, Relaxed);
                    opened.at_bytes += count as u64;
                }
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Ok(Sent::All))
    }

    /// Sends the stream of `source` up to its end.
    async fn stream(&mut self, source: &Source) -> Result<(), CopyError> {
        let Some(root) = &source.stream else { return Ok(()) };
        let mut stream = root.stream.lock().await;
        self.begin(0, None, None).await?;
        let mut hasher = blake3::Hasher::new();
        let mut buffer = wire::Contents::default();
        let failure = loop {
            if self.stop_requests.has(self.index) {
                break Some("stopped".to_owned());
            }
            let read = tokio::select! {
                read = stream.read(buffer.room()) => read,
                // The writer of the stream may pause for a long time.
                () = self.stop_requests.more.notified() => continue,
            };
            match read {
                Ok(0) => break None,
                Ok(count) => {
                    hasher.update(buffer.bytes(count));
                    buffer.write(self.writer, count).await?;
                    // Data of a slow stream is sent without delay.
                    self.writer.flush().await?;
                    self.progress.done_bytes.fetch_add(count as u64, Relaxed);
                }
                Err(error) => break Some(error.to_string()),
            }
        };
        self.end(&hasher, failure).await
    }
}

/// Start and end of the next data extent, within the file's size when it was opened. Sets the file position to the
/// start.
fn next_extent(opened: &mut Opened) -> std::io::Result<(u64, u64)> {
    let size_bytes = opened.size_bytes;
    let data_bytes = tree::next_data(&opened.file, opened.at_bytes)?;
    let data_bytes = data_bytes.map_or(size_bytes, |bytes| bytes.min(size_bytes));
    let end_bytes = match data_bytes < size_bytes {
        true => tree::next_hole(&opened.file, data_bytes)?.min(size_bytes),
        false => size_bytes,
    };
    opened.file.seek(SeekFrom::Start(data_bytes))?;
    Ok((data_bytes, end_bytes))
}
