//! The end that has the files.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use rustix::fs::FileType;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};

use super::tree::{Relative, Tree, file_type, hash_prefix, mtime_ns};
use super::wire::{self, ENTRIES_MAX, Entry, Kind, LENGTH_MAX, Message};
use super::{Action, CopyError, Options, Outcome, Progress, Report};

/// Reasons that are told one by one; more are counted.
const UNLISTED_TOLD_MAX: usize = 8;
/// End of the name of what an interrupted copy leaves: no file of a source.
pub(super) const PARTIAL_SUFFIX: &str = ".tacit-part";

/// What is sent: a directory's contents, or things with a name.
#[derive(Debug, Default)]
pub struct Source(Vec<Root>);

#[derive(Debug)]
struct Root {
    tree: Tree,
    /// Below `tree`; empty: all that is in it, without a name of its own.
    start: Relative,
    /// What `start` is called where it arrives, if not what it is called here.
    name: Option<Relative>,
}

impl Root {
    /// What `path`, which is `start` or below it, is called where it arrives.
    fn arrives(&self, path: &Relative) -> Result<Relative, String> {
        let Some(name) = &self.name else { return Ok(path.clone()) };
        let below = path.as_str().strip_prefix(self.start.as_str()).unwrap_or_default();
        match below.trim_start_matches('/') {
            "" => Ok(name.clone()),
            below => name.join(below),
        }
    }
}

impl Source {
    /// What the user names: each arrives under its last name, and `DIR/` or `.` without one.
    ///
    /// # Errors
    /// Where one is not there, or its name is no text.
    pub fn named(paths: &[impl AsRef<Path>]) -> Result<Self, CopyError> {
        let mut roots: Vec<Root> = Vec::new();
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
                    Root { tree, start, name: None }
                }
                None => {
                    Root { tree: Tree::open(path).map_err(failed)?, start: Relative::default(), name: None }
                }
            };
            if roots.iter().any(|other| other.start == root.start) {
                return Err(CopyError::Argument(format!("two sources are called {:?}", root.start.as_str())));
            }
            roots.push(root);
        }
        Ok(Self(roots))
    }

    /// `path` below `tree`, under its last name, or without one where `path` ends in a slash.
    pub(super) fn below(tree: &Tree, path: &str) -> Result<Self, CopyError> {
        let path = match path.strip_suffix('/') {
            Some(directory) => (directory, ""),
            None => path.rsplit_once('/').unwrap_or(("", path)),
        };
        let (directory, name) = path;
        let directory = Relative::parse(directory).map_err(CopyError::Protocol)?;
        let start = Relative::parse(name).map_err(CopyError::Protocol)?;
        let tree = tree.subtree(&directory)?;
        tree.stat(&start)?;
        Ok(Self(vec![Root { tree, start, name: None }]))
    }

    /// Lets the one source arrive under another name.
    ///
    /// # Errors
    /// Where there are several, or the name is none.
    pub(super) fn rename(&mut self, name: &str) -> Result<(), String> {
        let name = Relative::parse(name)?;
        match &mut self.0[..] {
            [root] if !name.is_empty() && name.split().0.is_empty() => root.name = Some(name),
            [_] => return Err("no name for what arrives".into()),
            _ => return Err("several sources need a directory that is there".into()),
        }
        Ok(())
    }
}

/// A file that was listed.
struct Listed {
    root: usize,
    path: Relative,
    size_octets: u64,
    mtime_ns: i64,
}

/// What the sender remembers of its manifest.
#[derive(Default)]
struct Manifest {
    /// By place; `None`: no file.
    files: Vec<Option<Listed>>,
    unlisted: Vec<Report>,
    unlisted_count: u64,
}

impl Manifest {
    fn unlisted(&mut self, path: &str, reason: &str) {
        self.unlisted_count += 1;
        if self.unlisted.len() < UNLISTED_TOLD_MAX {
            let reason = Some(wire::bounded(reason.to_owned()));
            let path = wire::bounded(path.to_owned());
            // All of them fit in one message, however JSON escapes them.
            let short = |text: String| text.chars().take(256).collect::<String>();
            let path = short(path);
            self.unlisted.push(Report { path, action: Action::Failed, reason: reason.map(short) });
        }
    }
}

/// Sends `source` and gives what the receiver says came of it.
///
/// # Errors
/// Where the stream or the protocol breaks. Files that cannot be read are in the outcome.
pub async fn send<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    source: &Source,
    options: Options,
    progress: &Progress,
    reader: &mut R,
    writer: &mut W,
) -> Result<Outcome, CopyError> {
    let mut manifest = Manifest::default();
    for (index, root) in source.0.iter().enumerate() {
        list(index, root, options, &mut manifest, writer).await?;
    }
    let unlisted = std::mem::take(&mut manifest.unlisted);
    let unlisted_count = manifest.unlisted_count;
    wire::write(writer, &Message::EntriesEnd { unlisted, unlisted_count }).await?;
    writer.flush().await?;
    let wants = wants(&manifest, progress, reader).await?;
    for want in &wants {
        // A want names a file: `wants` looked.
        let Some(Some(listed)) = manifest.files.get(want.index) else { continue };
        contents(&source.0[listed.root].tree, listed, want, progress, writer).await?;
    }
    writer.flush().await?;
    let mut paths = Vec::new();
    loop {
        match wire::read(reader).await? {
            Message::Report(report) if paths.len() < 2 * ENTRIES_MAX => paths.push(report),
            Message::Summary(summary) => return Ok(Outcome { summary, paths }),
            other => return Err(wire::unexpected(&other)),
        }
    }
}

/// Writes the entries of `root`, a directory before what is in it.
async fn list<W: AsyncWrite + Unpin>(
    index: usize,
    root: &Root,
    options: Options,
    manifest: &mut Manifest,
    writer: &mut W,
) -> Result<(), CopyError> {
    let mut open = vec![root.start.clone()];
    while let Some(path) = open.pop() {
        let is_directory = path.is_empty() && root.name.is_none() || {
            let entry =
                root.arrives(&path).and_then(|name| Ok((name, entry_of(&root.tree, &path, options)?)));
            match entry {
                Ok((name, entry)) => {
                    let entry = Entry { path: name.as_str().to_owned(), ..entry };
                    if manifest.files.len() == ENTRIES_MAX {
                        return Err(CopyError::Limit { what: "paths", max: ENTRIES_MAX });
                    }
                    let is_directory = entry.kind == Kind::Directory;
                    let mtime_ns = entry.mtime_ns;
                    manifest.files.push(match entry.kind {
                        Kind::File { size_octets, .. } => {
                            Some(Listed { root: index, path: path.clone(), size_octets, mtime_ns })
                        }
                        _ => None,
                    });
                    wire::write(writer, &Message::Entry(entry)).await?;
                    is_directory
                }
                Err(reason) => {
                    manifest.unlisted(path.as_str(), &reason);
                    false
                }
            }
        };
        if !is_directory {
            continue;
        }
        let names = match root.tree.names(&path) {
            Ok(names) => names,
            Err(error) => {
                manifest.unlisted(path.as_str(), &error.to_string());
                continue;
            }
        };
        for name in names.into_iter().rev() {
            let shown = name.to_string_lossy();
            if shown.ends_with(PARTIAL_SUFFIX) {
                continue;
            }
            match name
                .to_str()
                .ok_or_else(|| "the name is not UTF-8".to_owned())
                .and_then(|name| path.join(name))
            {
                Ok(path) => open.push(path),
                Err(reason) => manifest.unlisted(&format!("{}/{shown}", path.as_str()), &reason),
            }
        }
    }
    Ok(())
}

/// What stands at `path`, or why it cannot be sent.
fn entry_of(tree: &Tree, path: &Relative, options: Options) -> Result<Entry, String> {
    let said = |error: std::io::Error| error.to_string();
    let stat = tree.stat(path).map_err(said)?;
    let kind = match file_type(&stat) {
        FileType::RegularFile => {
            let size_octets = u64::try_from(stat.st_size).map_err(|_| "a size below 0".to_owned())?;
            let blake3 = match options.checksum {
                true => {
                    let mut file = tree.read(path).map_err(said)?;
                    let hash = hash_prefix(&mut file, size_octets).map_err(said)?;
                    Some(hash.ok_or("it changes while it is read")?.finalize().to_hex().to_string())
                }
                false => None,
            };
            Kind::File { size_octets, blake3 }
        }
        FileType::Directory => Kind::Directory,
        FileType::Symlink => {
            let target = tree.link_target(path).map_err(said)?;
            let target = target.into_string().map_err(|_| "the link's target is not UTF-8".to_owned())?;
            Kind::Symlink { target }
        }
        _ => return Err("neither a file, a directory nor a symbolic link".to_owned()),
    };
    let path = path.as_str().to_owned();
    Ok(Entry { path, kind, mtime_ns: mtime_ns(&stat), mode: stat.st_mode & 0o777 })
}

struct Want {
    index: usize,
    offset_octets: u64,
    blake3: String,
}

async fn wants<R: AsyncRead + Unpin>(
    manifest: &Manifest,
    progress: &Progress,
    reader: &mut R,
) -> Result<Vec<Want>, CopyError> {
    let mut wants: Vec<Want> = Vec::new();
    let mut total_octets = 0u64;
    loop {
        match wire::read(reader).await? {
            Message::Want { index, offset_octets, blake3 } => {
                if wants.last().is_some_and(|last| last.index >= index) {
                    return Err(CopyError::Protocol("files are wanted out of order".into()));
                }
                let Some(Some(listed)) = manifest.files.get(index) else {
                    return Err(CopyError::Protocol("what is wanted is no file".into()));
                };
                if offset_octets > listed.size_octets {
                    return Err(CopyError::Protocol("a file is wanted from behind its end".into()));
                }
                total_octets = total_octets.saturating_add(listed.size_octets - offset_octets);
                wants.push(Want { index, offset_octets, blake3 });
            }
            Message::WantsEnd => break,
            other => return Err(wire::unexpected(&other)),
        }
    }
    progress.total_octets.store(total_octets, Relaxed);
    Ok(wants)
}

/// Opens the file, at the octet where sending begins.
fn open(tree: &Tree, listed: &Listed, want: &Want) -> std::io::Result<(File, blake3::Hasher, u64)> {
    let mut file = tree.read(&listed.path)?;
    if want.offset_octets > 0
        && let Some(hasher) = hash_prefix(&mut file, want.offset_octets)?
        && hasher.finalize().to_hex().as_str() == want.blake3
    {
        return Ok((file, hasher, want.offset_octets));
    }
    file.seek(SeekFrom::Start(0))?;
    Ok((file, blake3::Hasher::new(), 0))
}

/// Sends one file. What goes wrong with it is told at its end.
async fn contents<W: AsyncWrite + Unpin>(
    tree: &Tree,
    listed: &Listed,
    want: &Want,
    progress: &Progress,
    writer: &mut W,
) -> Result<(), CopyError> {
    let (mut failure, opened) = match open(tree, listed, want) {
        Ok(opened) => (None, Some(opened)),
        Err(error) => (Some(error.to_string()), None),
    };
    let offset_octets = opened.as_ref().map_or(0, |(.., offset_octets)| *offset_octets);
    wire::write(writer, &Message::Contents { index: want.index, offset_octets }).await?;
    let mut hasher = blake3::Hasher::new();
    if let Some((mut file, prefix, _)) = opened {
        hasher = prefix;
        let mut left_octets = listed.size_octets - offset_octets;
        let mut buffer = vec![0; LENGTH_MAX];
        while left_octets > 0 {
            let take = buffer.len().min(usize::try_from(left_octets).unwrap_or(usize::MAX));
            match file.read(&mut buffer[..take]) {
                Ok(0) => break,
                Ok(count) => {
                    hasher.update(&buffer[..count]);
                    wire::write_piece(writer, &buffer[..count]).await?;
                    progress.done_octets.fetch_add(count as u64, Relaxed);
                    left_octets -= count as u64;
                }
                Err(error) => {
                    failure = Some(error.to_string());
                    break;
                }
            }
        }
        let stat = rustix::fs::fstat(&file).map_err(std::io::Error::from)?;
        let is_as_listed = left_octets == 0
            && u64::try_from(stat.st_size) == Ok(listed.size_octets)
            && mtime_ns(&stat) == listed.mtime_ns;
        if !is_as_listed {
            failure.get_or_insert_with(|| "it changed while it was read".to_owned());
        }
    }
    wire::write_piece(writer, &[]).await?;
    let blake3 = hasher.finalize().to_hex().to_string();
    wire::write(writer, &Message::ContentsEnd { blake3, failure: failure.map(wire::bounded) }).await
}
