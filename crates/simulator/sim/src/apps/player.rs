//! A play-out buffer: plays frames at their times, and waits when it runs dry.

use tacit_packet::units::{Duration, Instant};

/// State of the player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Gathering frames before playing starts.
    StartsUp,
    /// Frame `frame` was played at `at`, and the following frames since then.
    Plays { frame: u64, at: Instant },
    /// It ran dry at this time, or was already waiting when measuring started.
    Waits { since: Instant },
    /// All frames have been played.
    Done { since: Instant },
}

/// Plays frames in order at a fixed rate, once there are enough of them.
#[derive(Clone, Debug)]
pub(super) struct Player {
    /// Frames per second.
    frame_rate: u64,
    /// Frames gathered before playing starts, and after each wait.
    threshold: u64,
    state: State,
    /// Number of available frames, whether played or not.
    there: u64,
    /// Frames played.
    played: u64,
    /// Total number of frames, once known.
    length: Option<u64>,
    started_at: Option<Instant>,
    /// Start of the measured viewing time.
    watched_from: Option<Instant>,
    waits: u64,
    waited: Duration,
}

/// Playback in the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Watched {
    /// How often it ran dry.
    pub waits: u64,
    /// Total waiting time.
    pub waited: Duration,
    /// From the first played frame to the last, including waits.
    pub watched: Duration,
    /// When the first frame was played.
    pub started_at: Option<Instant>,
}

impl Player {
    /// A player of `frame_rate` frames per second, above zero, with a buffer of this duration.
    pub fn new(frame_rate: u32, buffer: Duration) -> Self {
        let frame_rate = u64::from(frame_rate);
        let frames = u128::from(buffer.as_nanos()) * u128::from(frame_rate);
        Self {
            frame_rate,
            // Even without a buffer, the next frame must be available.
            threshold: (frames.div_ceil(1_000_000_000) as u64).max(1),
            state: State::StartsUp,
            there: 0,
            played: 0,
            length: None,
            started_at: None,
            watched_from: None,
            waits: 0,
            waited: Duration::ZERO,
        }
    }

    /// Duration of `frames`, rounded down to a nanosecond.
    pub fn time_of(frames: u64, frame_rate: u64) -> Duration {
        Duration::from_nanos((u128::from(frames) * 1_000_000_000 / u128::from(frame_rate)) as u64)
    }

    /// Number of frames played.
    pub fn played(&self) -> u64 {
        self.played
    }

    /// The first `there` frames are available; a smaller number than before changes nothing.
    pub fn provide(&mut self, now: Instant, there: u64) {
        self.there = self.there.max(there);
        self.resume(now);
    }

    /// There will be exactly `length` frames.
    pub fn end_at(&mut self, now: Instant, length: u64) {
        self.length = Some(length);
        self.finish(now);
        self.resume(now);
    }

    /// Starts to play if enough frames are available or no more will arrive.
    fn resume(&mut self, now: Instant) {
        let waiting = match self.state {
            State::StartsUp => Duration::ZERO,
            State::Waits { since } => now.saturating_since(since),
            State::Plays { .. } | State::Done { .. } => return,
        };
        let ahead = self.there - self.played;
        let rest = self.length.map_or(u64::MAX, |length| length - self.played);
        if ahead == 0 || ahead < self.threshold.min(rest) {
            return;
        }
        self.waited += waiting;
        self.started_at.get_or_insert(now);
        self.watched_from.get_or_insert(now);
        self.state = State::Plays { frame: self.played, at: now };
    }

    /// When the next frame is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Plays { frame, at } => Some(at + Self::time_of(self.played - frame, self.frame_rate)),
            _ => None,
        }
    }

    /// Plays the frame that is due and returns its number. `None` if none is due, or if it is not available and a wait
    /// begins.
    pub fn play(&mut self, now: Instant) -> Option<u64> {
        if self.poll_timeout().is_none_or(|due| due > now) {
            return None;
        }
        if self.played < self.there {
            self.played += 1;
            self.finish(now);
            return Some(self.played - 1);
        }
        self.waits += 1;
        self.state = State::Waits { since: now };
        None
    }

    fn finish(&mut self, now: Instant) {
        if self.length == Some(self.played) && !matches!(self.state, State::Done { .. }) {
            if let State::Waits { since } = self.state {
                self.waited += now.saturating_since(since);
            }
            self.state = State::Done { since: now };
        }
    }

    /// Starts measuring.
    pub fn start_measuring(&mut self, now: Instant) {
        (self.waits, self.waited) = (0, Duration::ZERO);
        match &mut self.state {
            State::Waits { since } | State::Done { since } => *since = now,
            State::StartsUp | State::Plays { .. } => {}
        }
        if let Some(from) = &mut self.watched_from {
            *from = now;
        }
    }

    /// Playback in the measured window until `now`.
    pub fn watched(&self, now: Instant) -> Watched {
        let waiting = match self.state {
            State::Waits { since } => now.saturating_since(since),
            _ => Duration::ZERO,
        };
        let until = match self.state {
            State::Done { since } => since,
            _ => now,
        };
        Watched {
            waits: self.waits,
            waited: self.waited + waiting,
            watched: self.watched_from.map_or(Duration::ZERO, |from| until.saturating_since(from)),
            started_at: self.started_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// Plays all frames due by `ms`; returns their numbers.
    fn play_until(player: &mut Player, ms: u64) -> Vec<u64> {
        let mut played = Vec::new();
        while let Some(due) = player.poll_timeout().filter(|due| *due <= at(ms)) {
            played.extend(player.play(due));
        }
        played
    }

    #[test]
    fn it_gathers_plays_runs_dry_and_gathers_again() {
        // Ten frames per second, 300 ms of buffer.
        let mut player = Player::new(10, Duration::from_millis(300));
        player.provide(at(50), 2);
        assert_eq!(player.poll_timeout(), None, "two frames are not enough");
        player.provide(at(100), 3);
        assert_eq!(play_until(&mut player, 399), [0, 1, 2], "at 100, 200 and 300 ms");
        // Frame 3 is due at 400 ms and arrives at 450 ms; two more make 300 ms at 700 ms.
        assert_eq!(play_until(&mut player, 400), [] as [u64; 0]);
        player.provide(at(450), 4);
        assert_eq!(player.poll_timeout(), None, "one frame is not enough again");
        player.provide(at(700), 6);
        assert_eq!(play_until(&mut player, 900), [3, 4, 5]);
        let expected = Watched {
            waits: 1,
            waited: Duration::from_millis(300),
            watched: Duration::from_millis(800),
            started_at: Some(at(100)),
        };
        assert_eq!(player.watched(at(900)), expected);
    }

    #[test]
    fn the_end_of_a_video_is_no_wait() {
        let mut player = Player::new(10, Duration::from_millis(300));
        player.provide(at(0), 4);
        player.end_at(at(250), 4);
        assert_eq!(play_until(&mut player, 5_000), [0, 1, 2, 3]);
        assert_eq!((player.watched(at(5_000)).waits, player.watched(at(5_000)).waited), (0, Duration::ZERO));
        assert_eq!(player.watched(at(5_000)).watched, Duration::from_millis(300), "first to last frame");
    }

    #[test]
    fn the_rest_is_played_though_it_is_less_than_the_buffer() {
        let mut player = Player::new(10, Duration::from_millis(300));
        player.provide(at(0), 1);
        player.end_at(at(20), 1);
        assert_eq!(play_until(&mut player, 100), [0]);
    }

    #[test]
    fn a_wait_counts_in_the_window_only_from_its_start() {
        let mut player = Player::new(10, Duration::from_millis(100));
        player.provide(at(0), 1);
        assert_eq!(play_until(&mut player, 100), [0], "and then it runs dry");
        player.start_measuring(at(400));
        let watched = player.watched(at(1_000));
        assert_eq!((watched.waits, watched.waited), (0, Duration::from_millis(600)));
        assert_eq!(watched.watched, Duration::from_millis(600));
    }
}
