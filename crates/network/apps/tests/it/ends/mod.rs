//! Two ends of a copy over an in-memory stream.

#![allow(dead_code, reason = "each test program uses some of it")]

use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tacit_apps::copy::sender::Source;
use tacit_apps::copy::session::{Request, Served, pull, push};
use tacit_apps::copy::wire::{self, Entry, Kind, Message, Timestamp, Work};
use tacit_apps::copy::{CopyError, CopyReport, Options, Progress, Rights};
use tokio::io::{
    AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex, split,
};

/// Smaller than most messages, so an end that waits with a full buffer would deadlock.
const BUFFER_BYTES: usize = 64;

pub fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime
        .block_on(async { tokio::time::timeout(Duration::from_secs(60), work).await.expect("no deadlock") })
}

pub fn pushed(from: &Path, to: &Path, options: Options) -> CopyReport {
    sent(from, to, "", options).unwrap()
}

/// A stream in the form that copies take.
pub fn halves(stream: DuplexStream) -> (BufReader<ReadHalf<DuplexStream>>, WriteHalf<DuplexStream>) {
    let (reader, writer) = split(stream);
    (BufReader::new(reader), writer)
}

/// Pushes `from` to `path` below the served directory `root`.
pub fn sent(
    from: impl AsRef<Path>,
    root: &Path,
    path: &str,
    options: Options,
) -> Result<CopyReport, CopyError> {
    let source = Source::named(&[from]).unwrap();
    let (client, server) = sent_from(source, root, path, options, None);
    if let Ok(client) = &client {
        assert_eq!(client, &server.unwrap());
    }
    client
}

/// Reports of both ends of a push.
pub fn sent_from(
    source: Source,
    root: &Path,
    path: &str,
    options: Options,
    rights: Option<Rights>,
) -> (Result<CopyReport, CopyError>, Result<CopyReport, CopyError>) {
    run(async {
        let (mine, theirs) = duplex(BUFFER_BYTES);
        let served = Served::new(root, true).unwrap();
        let (mut reader, mut writer) = halves(mine);
        let (mut their_reader, mut their_writer) = halves(theirs);
        let progress = Progress::default();
        let client = async move { push(source, path, &options, &progress, &mut reader, &mut writer).await };
        let serving = async {
            let mut request = Request::read(&mut their_reader).await?;
            (request.rights, request.owner) = (rights, rights.map(|_| "somebody".to_owned()));
            served.answer(request, &mut their_reader, &mut their_writer).await
        };
        tokio::join!(client, serving)
    })
}

pub fn pushed_to(from: &Path, root: &Path, path: &str) -> Result<CopyReport, CopyError> {
    sent(from, root, path, Options::default())
}

pub fn pulled(root: &Path, path: &str, to: &Path) -> Result<CopyReport, CopyError> {
    fetched(root, &[path], to, Options::default())
}

pub fn fetched(root: &Path, paths: &[&str], to: &Path, options: Options) -> Result<CopyReport, CopyError> {
    run(async {
        let (mine, theirs) = duplex(BUFFER_BYTES);
        let served = Served::new(root, false).unwrap();
        let (mut reader, mut writer) = halves(mine);
        let (mut their_reader, mut their_writer) = halves(theirs);
        let progress = Progress::default();
        let paths: Vec<_> = paths.iter().map(|&path| path.to_owned()).collect();
        let client = async move { pull(&paths, to, &options, &progress, &mut reader, &mut writer).await };
        let (client, _) = tokio::join!(client, served.serve(&mut their_reader, &mut their_writer));
        client
    })
}

pub fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at * at / 7) as u8).collect()
}

/// A server that accepts uploads into `to`, and a client that sends `messages` and then `raw`.
pub fn hostile(to: &Path, messages: Vec<Message>, raw: &[u8]) -> Result<CopyReport, CopyError> {
    hostile_with(to, Options::default(), messages, raw)
}

/// The same with other `options`.
pub fn hostile_with(
    to: &Path,
    options: Options,
    messages: Vec<Message>,
    raw: &[u8],
) -> Result<CopyReport, CopyError> {
    run(async {
        let (mut mine, theirs): (DuplexStream, _) = duplex(1 << 20);
        let served = Served::new(to, true).unwrap();
        let work = Work::Push { path: String::new(), is_directory: false };
        wire::write(&mut mine, &Message::hello()).await.unwrap();
        wire::write(&mut mine, &Message::Ask { work, options }).await.unwrap();
        for message in messages {
            wire::write(&mut mine, &message).await.unwrap();
        }
        mine.write_all(raw).await.unwrap();
        mine.shutdown().await.unwrap();
        let (mut reader, mut writer) = halves(theirs);
        let result = served.serve(&mut reader, &mut writer).await;
        drop((reader, writer));
        mine.read_to_end(&mut Vec::new()).await.unwrap();
        result
    })
}

pub fn entry(path: &str, kind: Kind) -> Message {
    Message::Entry(Entry { path: path.into(), kind, mtime: Timestamp::default(), mode: 0o644 })
}

pub fn directory(path: &str) -> Message {
    Message::Entry(Entry {
        path: path.into(),
        kind: Kind::Directory,
        mtime: Timestamp::default(),
        mode: 0o755,
    })
}

pub const FILE: Kind = Kind::File { size_bytes: 3, blake3: None };
pub const END: Message = Message::EntriesEnd { is_top_listed: false };

/// The message that begins the contents of the first file.
pub fn opened(size_bytes: u64) -> Message {
    let (size_bytes, mtime) = (Some(size_bytes), Some(Timestamp::default()));
    Message::Contents { index: 0, offset_bytes: 0, size_bytes, mtime }
}

/// A path that the sender has but does not send.
pub fn omitted(path: &str, reason: &str, is_failure: bool) -> Message {
    Message::Omitted { path: path.into(), reason: reason.into(), is_failure }
}

/// Pushes `from`, and runs `meanwhile` once some of the contents have been sent.
pub fn sent_while(from: &Path, root: &Path, meanwhile: impl FnOnce()) -> CopyReport {
    run(async {
        let (mine, theirs) = duplex(BUFFER_BYTES);
        let served = Served::new(root, true).unwrap();
        let (mut reader, mut writer) = halves(mine);
        let (mut their_reader, mut their_writer) = halves(theirs);
        let (source, progress) = (Source::named(&[from]).unwrap(), Progress::default());
        let options = Options::default();
        let client = push(source, "", &options, &progress, &mut reader, &mut writer);
        let serving = served.serve(&mut their_reader, &mut their_writer);
        let changing = async {
            while progress.done_bytes.load(Relaxed) == 0 {
                tokio::task::yield_now().await;
            }
            meanwhile();
        };
        let (client, server, ()) = tokio::join!(client, serving, changing);
        server.unwrap();
        client.unwrap()
    })
}
