//! The thread that writes qlog files.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tacit_packet::units::Instant;

use super::format::{Event, Header};

/// Most records that wait to be written; further ones are dropped. Ours: some 10 MB.
const WAITING_MAX: usize = 1 << 16;

/// Most existing files of one name that are skipped. Ours.
const NAMES_MAX: u32 = 1000;

/// Time limit for writing pending records when the program ends. Ours.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Orders for the thread.
pub(super) enum Order {
    Begin { file: u64, header: Header },
    Event { file: u64, now: Instant, event: Event },
    End(u64),
    Flush(Sender<()>),
}

#[derive(Debug, Default)]
struct Counts {
    waiting: AtomicUsize,
    dropped: AtomicU64,
    files: AtomicU64,
}

#[derive(Debug)]
pub(super) struct Writer {
    orders: Option<Sender<Order>>,
    counts: Arc<Counts>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    pub fn start(directory: &Path) -> io::Result<Self> {
        if !directory.metadata()?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let (orders, received) = channel();
        let counts = Arc::new(Counts::default());
        let mut desk =
            Worker { directory: directory.to_owned(), counts: counts.clone(), files: BTreeMap::new() };
        let thread = thread::Builder::new().name("qlog".into()).spawn(move || desk.work(&received))?;
        Ok(Self { orders: Some(orders), counts, thread: Mutex::new(Some(thread)) })
    }

    pub fn begin(&self, header: Header) -> u64 {
        let file = self.counts.files.fetch_add(1, Relaxed);
        self.order(Order::Begin { file, header });
        file
    }

    /// Passes an event on; returns false if too many wait.
    pub fn record(&self, file: u64, now: Instant, event: Event) -> bool {
        if self.counts.waiting.load(Relaxed) >= WAITING_MAX {
            self.counts.dropped.fetch_add(1, Relaxed);
            return false;
        }
        self.order(Order::Event { file, now, event });
        true
    }

    /// Passes an order on without a limit, because orders are few.
    pub fn order(&self, order: Order) {
        self.counts.waiting.fetch_add(1, Relaxed);
        // Fails only if the thread has panicked, which was printed.
        if let Some(orders) = &self.orders {
            let _ = orders.send(order);
        }
    }

    pub fn dropped(&self) -> u64 {
        self.counts.dropped.load(Relaxed)
    }

    pub fn flush(&self) {
        let _ = self.order_flush().recv_timeout(FLUSH_TIMEOUT);
    }

    /// The same without a time limit. Tests that read the files need it.
    #[cfg(test)]
    pub fn flush_without_limit(&self) {
        self.order_flush().recv().expect("the thread writes");
    }

    /// Orders a flush; the receiver is notified once all earlier records are written.
    fn order_flush(&self) -> Receiver<()> {
        let (flushed, done) = channel();
        self.order(Order::Flush(flushed));
        done
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.flush();
        self.orders = None;
        // A thread that takes longer is not joined.
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread.filter(JoinHandle::is_finished) {
            let _ = thread.join();
        }
    }
}

/// A file that is being written; `None` after a write error.
struct Open {
    file: Option<BufWriter<File>>,
    path: PathBuf,
}

/// State of the thread.
struct Worker {
    directory: PathBuf,
    counts: Arc<Counts>,
    files: BTreeMap<u64, Open>,
}

impl Worker {
    fn work(&mut self, orders: &Receiver<Order>) {
        while let Ok(order) = orders.recv() {
            self.counts.waiting.fetch_sub(1, Relaxed);
            match order {
                Order::Begin { file, header } => self.begin(file, &header),
                Order::Event { file, now, event } => self.write(file, &event.to_records(now)),
                Order::End(file) => self.end(file),
                Order::Flush(flushed) => {
                    let files: Vec<_> = self.files.keys().copied().collect();
                    for file in files {
                        self.try_file(file, |open| open.flush());
                    }
                    // The caller may have given up.
                    let _ = flushed.send(());
                }
            }
        }
    }

    fn begin(&mut self, file: u64, header: &Header) {
        let name = header.file_name();
        let open = |path: &Path| OpenOptions::new().write(true).create_new(true).open(path);
        let mut path = self.directory.join(format!("{name}.sqlog"));
        let mut opened = open(&path);
        for again in 1..NAMES_MAX {
            match &opened {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    path = self.directory.join(format!("{name}-{again}.sqlog"));
                    opened = open(&path);
                }
                _ => break,
            }
        }
        let opened = match opened {
            Ok(opened) => Some(BufWriter::with_capacity(1 << 16, opened)),
            Err(error) => {
                tracing::warn!(target: "tacit_tack::qlog", path = ?path, %error, "no file for a connection");
                None
            }
        };
        self.files.insert(file, Open { file: opened, path });
        self.write(file, &[header.to_record()]);
    }

    /// Writes records, each with a record separator before it and a line feed after it (RFC 7464 section 2.2).
    fn write(&mut self, file: u64, records: &[serde_json::Value]) {
        self.try_file(file, |open| {
            for record in records {
                open.write_all(b"\x1e")?;
                serde_json::to_writer(&mut *open, record)?;
                open.write_all(b"\n")?;
            }
            Ok(())
        });
    }

    /// Ends a file.
    fn end(&mut self, file: u64) {
        self.try_file(file, |open| open.flush());
        self.files.remove(&file);
    }

    /// Performs an operation on a file. After an error, usually a full disk, the file is abandoned, because no transfer
    /// should wait for it.
    fn try_file(&mut self, file: u64, act: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) {
        let Some(open) = self.files.get_mut(&file) else { return };
        let Some(writer) = &mut open.file else {
            self.counts.dropped.fetch_add(1, Relaxed);
            return;
        };
        if let Err(error) = act(writer) {
            tracing::warn!(target: "tacit_tack::qlog", path = ?open.path, %error, "a file ends before its connection");
            self.counts.dropped.fetch_add(1, Relaxed);
            // Otherwise dropping the writer would try to write its buffer again.
            if let Some(writer) = open.file.take() {
                let _ = writer.into_parts();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_ends_the_file_and_what_comes_then_is_counted() {
        // Writing to /dev/full fails as on a full disk.
        let Ok(full) = OpenOptions::new().write(true).open("/dev/full") else {
            eprintln!("SKIPPED: no /dev/full on this machine");
            return;
        };
        let counts = Arc::new(Counts::default());
        let mut desk = Worker { directory: PathBuf::new(), counts: counts.clone(), files: BTreeMap::new() };
        let file = Some(BufWriter::with_capacity(100, full));
        desk.files.insert(0, Open { file, path: PathBuf::new() });
        for _ in 0..100 {
            desk.write(0, &[serde_json::json!({ "time": 0, "name": "x", "data": {} })]);
        }
        assert!(desk.files[&0].file.is_none());
        assert!(counts.dropped.load(Relaxed) > 90);
        desk.end(0);
        assert!(desk.files.is_empty());
    }

    #[test]
    fn records_that_come_too_fast_are_dropped_and_those_that_end_files_are_not() {
        let counts = Arc::new(Counts::default());
        let (orders, received) = channel();
        let writer = Writer { orders: Some(orders), counts, thread: Mutex::new(None) };
        for _ in 0..WAITING_MAX {
            assert!(writer.record(0, Instant::ZERO, Event::Connected));
        }
        assert!(!writer.record(0, Instant::ZERO, Event::Connected));
        assert_eq!(writer.dropped(), 1);
        writer.order(Order::End(0));
        assert_eq!(received.try_iter().count(), WAITING_MAX + 1);
        // There is no thread that could flush.
        drop(received);
    }
}
