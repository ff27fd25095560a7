//! How much of each stream the peer may send before its reader has taken it: windows that share a pool, so that no reader, and no
//! set of readers, can take the room that others need.
//!
//! Credit that was given cannot be taken back (RFC 9000 section 4.1), so a stream holds its granted credit until its reader has
//! read it. Each stream therefore has a floor of its own that no other stream can touch, and borrows the rest of its window from
//! the pool: as much as its reader has shown to need, and never more than half of the bytes that others leave. The design is in
//! docs/design/tack-endpoint.md.

use super::config::{Config, Reader};
use tacit_packet::units::{Duration, Instant};

/// A window is a multiple of the bytes that its reader takes, or that arrive, in a round-trip time, where `loss` 65,536ths of the
/// packets sent are lost: neither a start-up, which doubles, nor a repair, which takes a round trip, is to be held by it. Where much
/// is lost some packet of a round trip is lost again and again: six times in a thousand packets with one in three lost, three times in
/// two thousand with one in twenty lost. Until that packet arrives, a sender that is held learns of its losses by timeouts alone.
pub(super) fn round_trips(loss: u16) -> u64 {
    match loss {
        0..SIXTY_FOURTH => 4,
        SIXTY_FOURTH..EIGHTH => 6,
        EIGHTH..QUARTER => 8,
        QUARTER.. => 12,
    }
}

/// Shares of the packets sent, in 65,536ths.
const SIXTY_FOURTH: u16 = 1 << 10;
const EIGHTH: u16 = 1 << 13;
const QUARTER: u16 = 1 << 14;

/// Where others have borrowed more than half of the pool a window doubles only after its reader has taken this multiple of it. A
/// program that stops reading has first filled the buffers of its system, and must not look like one that reads: with the
/// default floor these are 4 MiB, the most that Linux holds of one socket's data to send (net.ipv4.tcp_wmem). Ours.
const EARNED_WINDOWS: u64 = 16;

/// Room for the bytes of streams.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    /// The window that every stream has, independent of others.
    pub floor: u64,
    /// The largest window of one stream.
    largest: u64,
    /// Bytes that all streams together may borrow, and have borrowed.
    size: u64,
    lent: u64,
}

/// The window of one stream. Places are bytes of the stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    size: u64,
    /// The borrowed part of the window, or of the credit granted before it shrank.
    borrowed: u64,
    /// When the reader's rate was looked at last, and how far it was then.
    since: Instant,
    read_before: u64,
    /// Bytes that have waited for the reader at every moment since.
    standing: u64,
    /// How far the reader was when the window grew last.
    read_at_growth: u64,
}

/// The path on which bytes arrive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    /// From when a packet leaves to when its sender hears of it, where no queue stands.
    pub feedback_delay: Duration,
    /// Packets lost, in 65,536ths.
    pub loss: u16,
}

/// How far a stream is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// Bytes that the reader has taken.
    pub read: u64,
    /// Bytes that have arrived in order, read or not.
    pub delivered: u64,
    /// Bytes that the peer may send in all: up to its limit, or up to the end where that is known.
    pub granted: u64,
    /// More may come.
    pub open: bool,
}

impl Pool {
    pub fn new(config: &Config) -> Self {
        let largest = config.stream_buffer.0;
        let floor = match config.reader {
            // No reader stalls.
            Reader::Immediate => largest,
            Reader::Explicit => largest.min(config.min_stream_buffer.0).min(config.receive_buffer.0),
        };
        let size = config.max_receive_buffer.0.max(config.receive_buffer.0);
        Self { floor, largest, size, lent: 0 }
    }

    /// Bytes that are borrowed.
    pub fn lent(&self) -> u64 {
        self.lent
    }

    /// Bytes that may be borrowed.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// `bytes` may be borrowed from now on. Windows that hold more shrink with each read.
    pub fn resize(&mut self, size: u64) {
        self.size = size;
    }
}

impl Window {
    pub fn new(pool: &Pool) -> Self {
        Self { size: pool.floor, ..Self::default() }
    }

    /// Bytes that the peer may send beyond those read.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The reader has taken some.
    pub fn on_read(&mut self, pool: &mut Pool, progress: Progress) {
        self.standing = self.standing.min(progress.delivered - progress.read);
        self.account(pool, progress);
    }

    /// Bytes arrived at `now`, over `path`: the window follows the reader, once per round trip.
    pub fn on_arrival(&mut self, pool: &mut Pool, progress: Progress, now: Instant, path: Path) {
        if pool.floor == pool.largest || now.saturating_since(self.since) < path.feedback_delay {
            return;
        }
        let wanted = round_trips(path.loss).saturating_mul(progress.read - self.read_before);
        if wanted > self.size {
            self.grow(pool, progress.read, wanted);
        } else if self.standing > self.size / 2 {
            // The reader is behind, not the path: it needs no more than it takes.
            self.size = wanted.max(pool.floor);
        }
        if pool.lent > pool.size {
            self.size = self.size.min(self.most(pool));
        }
        (self.since, self.read_before) = (now, progress.read);
        self.standing = progress.delivered - progress.read;
        self.account(pool, progress);
    }

    /// Bytes of the pool that no other stream holds.
    fn free(&self, pool: &Pool) -> u64 {
        pool.size.saturating_sub(pool.lent - self.borrowed)
    }

    /// The largest window beside those of others.
    fn most(&self, pool: &Pool) -> u64 {
        pool.floor + self.free(pool) / 2
    }

    fn grow(&mut self, pool: &Pool, read: u64, wanted: u64) {
        let mut size = wanted.min(pool.largest).min(self.most(pool));
        if self.free(pool) < pool.size / 2 {
            if read - self.read_at_growth < EARNED_WINDOWS.saturating_mul(self.size) {
                return;
            }
            size = size.min(2 * self.size);
        }
        if size > self.size {
            (self.size, self.read_at_growth) = (size, read);
        }
    }

    /// Updates its share of the pool after a change.
    pub fn account(&mut self, pool: &mut Pool, progress: Progress) {
        let granted = progress.granted.saturating_sub(progress.read);
        let held = if progress.open { granted.max(self.size) } else { granted };
        let borrowed = held.saturating_sub(pool.floor);
        pool.lent = pool.lent - self.borrowed + borrowed;
        self.borrowed = borrowed;
    }

    /// The stream is forgotten.
    pub fn give_back(&self, pool: &mut Pool) {
        pool.lent -= self.borrowed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tacit_packet::units::Bytes;

    const RTT: Duration = Duration::from_millis(40);

    /// Streams of one connection, whose peer sends all that it may.
    struct Model {
        pool: Pool,
        now: Instant,
        streams: Vec<(Window, Progress)>,
    }

    impl Model {
        fn new(config: &Config) -> Self {
            Self { pool: Pool::new(config), now: Instant::ZERO + RTT, streams: Vec::new() }
        }

        fn open(&mut self) -> usize {
            let progress = Progress { read: 0, delivered: 0, granted: self.pool.floor, open: true };
            self.streams.push((Window::new(&self.pool), progress));
            self.streams.len() - 1
        }

        /// A round trip in which the path has room for `bytes` of the stream, and its reader takes at most `reads`. How much it
        /// took.
        fn round(&mut self, stream: usize, bytes: u64, reads: u64) -> u64 {
            let (window, progress) = &mut self.streams[stream];
            self.now += RTT;
            let before = progress.read;
            progress.delivered = progress.granted.min(progress.delivered.saturating_add(bytes));
            progress.read = progress.delivered.min(progress.read.saturating_add(reads));
            window.on_read(&mut self.pool, *progress);
            window.on_arrival(&mut self.pool, *progress, self.now, Path { feedback_delay: RTT, loss: 0 });
            progress.granted = progress.granted.max(progress.read + window.size());
            window.account(&mut self.pool, *progress);
            progress.read - before
        }

        /// A program that takes as much as the buffers of its system hold, and then nothing.
        fn stall(&mut self, bytes: u64) {
            let stalled = self.open();
            let mut room: u64 = 2_500_000;
            for _ in 0..200 {
                room -= self.round(stalled, bytes, room);
            }
        }

        fn unread(&self) -> u64 {
            self.streams.iter().map(|(_, progress)| progress.granted - progress.read).sum()
        }
    }

    fn config() -> Config {
        Config { reader: Reader::Explicit, ..Config::default() }
    }

    /// Paths of 100 Mb/s and 1 Gb/s, 40 ms long: the bytes of a round trip.
    #[test]
    fn beside_stalled_readers_one_that_reads_gets_what_the_path_has() {
        for bytes in [500_000, 5_000_000] {
            for stalled in [0, 1, 10, 200] {
                let mut model = Model::new(&config());
                (0..stalled).for_each(|_| model.stall(bytes));
                let active = model.open();
                // Its window grows, more slowly where others have borrowed much.
                for _ in 0..150 {
                    model.round(active, bytes, u64::MAX);
                }
                let read: u64 = (0..50).map(|_| model.round(active, bytes, u64::MAX)).sum();
                assert!(read >= 50 * bytes, "{read} of {} beside {stalled}", 50 * bytes);
                let most = (64 << 20) + (stalled + 1) * (256 << 10);
                assert!(model.unread() <= most, "{} bytes may wait beside {stalled}", model.unread());
            }
        }
    }

    #[test]
    fn a_lone_reader_gets_its_window_within_a_few_round_trips() {
        let mut model = Model::new(&config());
        let active = model.open();
        let rounds = (0..20).take_while(|_| model.round(active, 5_000_000, u64::MAX) < 5_000_000).count();
        assert!(rounds < 6, "{rounds}");
        assert!(
            model.streams[active].0.size() <= (32 << 20) + (256 << 10),
            "half of the pool, and its floor"
        );
    }

    #[test]
    fn a_window_shrinks_to_its_floor_while_its_reader_stalls_and_returns_what_was_read() {
        let mut model = Model::new(&config());
        let stream = model.open();
        for _ in 0..20 {
            model.round(stream, 1_000_000, u64::MAX);
        }
        let held = model.pool.lent();
        assert!(held >= 3_000_000);
        for _ in 0..10 {
            model.round(stream, 1_000_000, 0);
        }
        assert_eq!(model.streams[stream].0.size(), model.pool.floor);
        assert_eq!(model.pool.lent(), held, "granted memory is held until it is read");
        // A reader of 25 kB per round trip, 0.6 MB/s.
        for _ in 0..400 {
            model.round(stream, 1_000_000, 25_000);
        }
        assert_eq!(model.pool.lent(), 0);
    }

    /// Other connections of the same program have borrowed bytes that this one might have.
    #[test]
    fn windows_shrink_with_their_pool_as_they_are_read() {
        let mut model = Model::new(&config());
        let streams = [model.open(), model.open()];
        for _ in 0..20 {
            for stream in streams {
                model.round(stream, 1_000_000, u64::MAX);
            }
        }
        let held = model.pool.lent();
        assert!(held >= 6_000_000);
        model.pool.resize(1 << 20);
        assert_eq!(model.pool.lent(), held, "granted memory is held until it is read");
        for _ in 0..20 {
            for stream in streams {
                model.round(stream, 1_000_000, u64::MAX);
            }
        }
        assert!(model.pool.lent() <= 1 << 20, "{}", model.pool.lent());
        model.pool.resize(64 << 20);
        for _ in 0..20 {
            for stream in streams {
                model.round(stream, 1_000_000, u64::MAX);
            }
        }
        assert_eq!(model.pool.lent(), held);
    }

    proptest! {
        #[test]
        fn held_data_is_bounded_however_readers_behave(
            steps in prop::collection::vec((0usize..12, 0u64..4_000_000, 0u64..4_000_000), 1..400),
        ) {
            let config = Config { max_receive_buffer: Bytes(8 << 20), ..config() };
            let mut model = Model::new(&config);
            for _ in 0..12 {
            model.open();
        }
            for (stream, bytes, reads) in steps {
                model.round(stream, bytes, reads);
                prop_assert!(model.pool.lent() <= 8 << 20);
                prop_assert!(model.unread() <= (8 << 20) + 12 * (256 << 10));
            }
            for (window, _) in &model.streams {
                window.give_back(&mut model.pool);
            }
            prop_assert_eq!(model.pool.lent(), 0);
        }
    }
}
