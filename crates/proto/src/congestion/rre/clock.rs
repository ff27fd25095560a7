//! The receiver's clock as TCP timestamps show it, and how long its ticks are.

/// Lengths of a tick that receivers use, in microseconds: 1 ms (Linux today), 2 and 4 ms (HZ of 500 and 250), 10 ms (HZ of
/// 100) and 100 ms (RFC 7323 section 5.4 allows up to a second).
const TICKS_US: [u32; 5] = [1_000, 2_000, 4_000, 10_000, 100_000];
/// Ticks that must have passed before their length is judged [DERIVED].
const TICKS_TO_JUDGE: u64 = 10;
/// A clock that ticked less often than that while so much was sent has stopped: the slowest needs half of it.
const STOPPED_US: u64 = 2_000_000;
/// How far the receiver's clock may fall behind ours, beside a twentieth: what a buffer can have drained since the first ACK.
const BEHIND_US: u64 = 250_000;
/// How far either clock may be off what local time allows: an ACK that was this long on its way.
const SLACK_US: u64 = 60_000_000;
/// A clock that is not believed is judged again after so long.
const FORGIVE_US: u64 = 10_000_000;

/// What an ACK says of time, from either end. The zero of each is arbitrary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reading {
    /// When the receiver made the ACK, by its clock.
    pub received_us: u64,
    /// When what the ACK answers was sent, by ours.
    pub sent_us: u64,
}

/// What is known of the receiver's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Trust {
    /// Too little was seen.
    #[default]
    Unknown,
    /// Its ticks have a known length.
    Trusted,
    /// It does not tick as clocks do, or there are no timestamps: the arrival of ACKs stands for it.
    Refused,
}

/// The receiver's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Clock {
    pub trust: Trust,
    /// Length of a tick in microseconds, 0 while unknown.
    pub tick_us: u32,
    /// An ACK with timestamps was seen since the last restart; what it said.
    pub(super) seen: bool,
    pub(super) last_value: u32,
    pub(super) last_echo: u32,
    /// Local time of that first ACK, and of the restart before it where the clock was refused.
    pub(super) first_at_us: u64,
    pub(super) refused_at_us: u64,
    /// What the receiver's clock counted since the first ACK, and at the latest reading. Neither wraps.
    pub(super) ticks: u64,
    pub(super) edge_ticks: u64,
    /// What ours counted, from what the first ACK answers to what the latest one does.
    pub(super) sent_us: i64,
}

impl Clock {
    /// An ACK carries `value` and echoes `echo`, of our clock whose ticks last `sender_tick_us`; `advanced` when it
    /// acknowledges more in sequence than before: only then does the echo belong to what arrived last (RFC 7323
    /// section 4.3). Returns false when the clock turns out to be another than thought.
    pub fn on_ack(
        &mut self,
        now_us: u64,
        value: u32,
        echo: u32,
        advanced: bool,
        sender_tick_us: u32,
    ) -> bool {
        if !self.seen {
            *self = Self {
                trust: self.trust,
                tick_us: self.tick_us,
                refused_at_us: self.refused_at_us,
                seen: true,
                last_value: value,
                last_echo: echo,
                first_at_us: now_us,
                ..Self::default()
            };
            return true;
        }
        let ticks = i64::from(value.wrapping_sub(self.last_value) as i32);
        if ticks < 0 && !advanced {
            // It was overtaken by a later one.
            return true;
        }
        if ticks < 0 {
            self.seen = false;
            return false;
        }
        self.last_value = value;
        self.ticks += ticks as u64;
        if advanced {
            let echoed = i64::from(echo.wrapping_sub(self.last_echo) as i32);
            self.last_echo = echo;
            self.sent_us += echoed * i64::from(sender_tick_us);
        }
        let elapsed_us = now_us.saturating_sub(self.first_at_us);
        let most_us = elapsed_us + SLACK_US;
        let impossible = self.sent_us > most_us as i64
            || self.sent_us < -(SLACK_US as i64)
            || self.ticks > most_us / u64::from(TICKS_US[0]);
        if impossible {
            return self.refuse(now_us);
        }
        !advanced || self.judge(now_us)
    }

    /// Compares what the receiver's clock counted with what ours did, from sending to sending: the way of the ACKs is
    /// in neither.
    fn judge(&mut self, now_us: u64) -> bool {
        if self.sent_us < 0 || (self.trust == Trust::Refused && now_us < self.refused_at_us + FORGIVE_US) {
            return true;
        }
        let span_us = self.sent_us as u64;
        if self.ticks < TICKS_TO_JUDGE {
            return span_us < STOPPED_US || self.refuse(now_us);
        }
        let tick_us = tick_of(self.ticks, span_us);
        if tick_us == 0 {
            return self.refuse(now_us);
        }
        let known = self.trust == Trust::Trusted && tick_us == self.tick_us;
        self.trust = Trust::Trusted;
        self.tick_us = tick_us;
        known
    }

    fn refuse(&mut self, now_us: u64) -> bool {
        let known = self.trust == Trust::Refused;
        self.trust = Trust::Refused;
        self.tick_us = 0;
        self.refused_at_us = now_us;
        self.seen = false;
        known
    }

    /// What the latest ACK says, if it is the first of a tick: then the receiver's clock is known as closely as ACKs
    /// follow each other, whatever the length of its ticks [DERIVED].
    pub fn read(&mut self) -> Option<Reading> {
        if self.trust != Trust::Trusted || !self.seen || self.ticks == self.edge_ticks {
            return None;
        }
        self.edge_ticks = self.ticks;
        Some(Reading {
            received_us: SLACK_US + self.ticks * u64::from(self.tick_us),
            // What the first ACK answers need not have been sent first.
            sent_us: self.sent_us.wrapping_add(SLACK_US as i64) as u64,
        })
    }
}

/// The length in microseconds of `ticks` that passed while we counted `span_us`: the shortest known one with which the
/// receiver's clock has not fallen behind by more than a quarter, nor by more than a buffer and drift explain. A buffer that
/// fills in the meantime makes the receiver's time longer, never shorter. 0 where no length fits.
fn tick_of(ticks: u64, span_us: u64) -> u32 {
    let behind_us = (span_us / 4).min(BEHIND_US + span_us / 20);
    let least_us = span_us - behind_us;
    for tick_us in TICKS_US {
        if ticks * u64::from(tick_us) >= least_us {
            return tick_us;
        }
    }
    0
}
