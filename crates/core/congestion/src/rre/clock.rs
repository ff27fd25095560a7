//! The receiver's clock, as seen in TCP timestamps, and the length of its ticks.

/// Tick lengths that receivers use, in microseconds: 1 ms (Linux today), 2 and 4 ms (HZ of 500 and 250), 10 ms (HZ of
/// 100) and 100 ms (RFC 7323 section 5.4 allows up to a second).
const TICKS_US: [u32; 5] = [1_000, 2_000, 4_000, 10_000, 100_000];
/// Ticks that must have passed before their length is judged [DERIVED].
const TICKS_TO_JUDGE: u64 = 10;
/// A clock that has not made that many ticks while data was sent for this time has stopped: the slowest clock needs
/// half of it.
const STOPPED_US: u64 = 2_000_000;
/// By how much the receiver's clock may fall behind ours, in addition to a twentieth: the longest delay of a buffer
/// that has drained since the first ACK.
const BEHIND_US: u64 = 250_000;
/// How far either clock may be outside the range of local time: the longest delay of an ACK.
const SLACK_US: u64 = 60_000_000;
/// How long the smallest tick of the first ACKs counts.
const EARLY_US: u64 = 2_000_000;
/// A clock that was refused is judged again after this time.
const FORGIVE_US: u64 = 10_000_000;

/// Times of either end that an ACK carries. The zero of each clock is arbitrary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reading {
    /// When the receiver sent the ACK, by its clock.
    pub received_us: u64,
    /// When the acknowledged data was sent, by our clock.
    pub sent_us: u64,
}

/// Trust in the receiver's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Trust {
    /// Too little was seen to decide.
    #[default]
    Unknown,
    /// Its ticks have a known length.
    Trusted,
    /// It does not tick regularly, or there are no timestamps: the arrival times of ACKs are used instead.
    Refused,
}

/// The receiver's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Clock {
    pub trust: Trust,
    /// Length of a tick in microseconds, 0 while unknown.
    pub tick_us: u32,
    /// An ACK with timestamps has arrived since the last restart; its values follow.
    pub(super) seen: bool,
    pub(super) last_value: u32,
    pub(super) last_echo: u32,
    /// Local time of the first such ACK, and of the previous restart if the clock was refused then.
    pub(super) first_at_us: u64,
    pub(super) refused_at_us: u64,
    /// Ticks of the receiver's clock since the first ACK, and at the latest reading. Neither wraps.
    pub(super) ticks: u64,
    pub(super) edge_ticks: u64,
    /// Lower bound of the tick length, from how few ticks the receiver's clock counted while ours advanced.
    pub(super) least_tick_us: u32,
    /// Time by our clock from the data that the first ACK answers to the data that the latest one answers.
    pub(super) sent_us: i64,
    /// Local time minus [`Self::sent_us`]: the smallest difference for an ACK whose echo belonged to its latest
    /// segment.
    pub(super) lead_known: bool,
    pub(super) lead_us: i64,
}

impl Clock {
    /// An ACK carries `value` and echoes `echo` of our clock, whose ticks last `sender_tick_us`. `advanced` is true if
    /// it acknowledges new data in sequence; only then does the echo belong to the latest arrival (RFC 7323 section
    /// 4.3). Returns false if the clock turns out to be another one than assumed.
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
            // A later ACK has overtaken it.
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

    /// Restarts counting at this ACK if the first one is a bad reference: its round trip was at least twice as long as
    /// this one's, and longer than [`tick_of`] allows for a draining buffer. This happens if the handshake met an
    /// outage. `latest_us` is the sending time of the latest segment that this ACK newly acknowledges, 0 if unknown.
    /// Returns true if counting was restarted.
    pub fn begin_anew(&mut self, now_us: u64, latest_us: u64) -> bool {
        if !self.seen || latest_us == 0 || self.sent_us < 0 {
            return false;
        }
        let lead_us = latest_us as i64 - self.sent_us;
        if !self.lead_known || lead_us < self.lead_us {
            self.lead_known = true;
            self.lead_us = lead_us;
        }
        let first_rtt_us = (self.first_at_us as i64 - self.lead_us).max(0) as u64;
        let rtt_us = now_us.saturating_sub(latest_us);
        if first_rtt_us <= behind_us(self.sent_us as u64) || first_rtt_us / 2 < rtt_us {
            return false;
        }
        *self = Self {
            trust: if self.trust == Trust::Refused { Trust::Refused } else { Trust::Unknown },
            refused_at_us: self.refused_at_us,
            seen: true,
            last_value: self.last_value,
            last_echo: self.last_echo,
            first_at_us: now_us,
            lead_known: true,
            lead_us: self.lead_us + self.sent_us,
            ..Self::default()
        };
        true
    }

    /// Compares the time counted by the receiver's clock with that counted by ours, between sending times, so that the
    /// delay of ACKs does not matter.
    fn judge(&mut self, now_us: u64) -> bool {
        if self.sent_us < 0 || (self.trust == Trust::Refused && now_us < self.refused_at_us + FORGIVE_US) {
            return true;
        }
        let span_us = self.sent_us as u64;
        // The first ACKs can distinguish tick lengths that later ones may not: at the start more is sent than arrives,
        // and short ticks would keep up with the sender, too. Much later the whole time is decisive [DERIVED].
        if span_us < EARLY_US {
            let least_us = (span_us - span_us / 4) / (self.ticks + 1);
            self.least_tick_us = self.least_tick_us.max(least_us as u32);
        } else {
            self.least_tick_us = 0;
        }
        if self.ticks < TICKS_TO_JUDGE {
            return span_us < STOPPED_US || self.refuse(now_us);
        }
        let tick_us = tick_of(self.ticks, span_us, self.least_tick_us);
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

    /// Times of the latest ACK, if it is the first of a tick: the receiver's clock is then known as precisely as the
    /// distance between ACKs at any tick length [DERIVED]. `latest_us` is as for [`Self::begin_anew`]: an ACK of
    /// several segments is sent when the last of them arrives, but echoes the first (RFC 7323 section 4.3) [DERIVED].
    pub fn read(&mut self, latest_us: u64) -> Option<Reading> {
        if self.trust != Trust::Trusted || !self.seen || self.ticks == self.edge_ticks {
            return None;
        }
        self.edge_ticks = self.ticks;
        let is_known = latest_us > 0 && self.lead_known;
        let latest_sent_us = if is_known { latest_us as i64 - self.lead_us } else { self.sent_us };
        Some(Reading {
            received_us: SLACK_US + self.ticks * u64::from(self.tick_us),
            // The data that the first ACK answers need not be the first that was sent.
            sent_us: self.sent_us.max(latest_sent_us).wrapping_add(SLACK_US as i64) as u64,
        })
    }
}

/// The length in microseconds of `ticks` that passed while we counted `span_us`: the shortest known tick length with
/// which the receiver's clock has not fallen behind by more than a quarter, nor by more than a buffer and drift
/// explain. A buffer that fills meanwhile lengthens the receiver's time and never shortens it. 0 if no length fits.
fn tick_of(ticks: u64, span_us: u64, least_tick_us: u32) -> u32 {
    let least_us = span_us - behind_us(span_us);
    for tick_us in TICKS_US {
        if tick_us >= least_tick_us && ticks * u64::from(tick_us) >= least_us {
            return tick_us;
        }
    }
    0
}

/// By how much the receiver's clock may fall behind ours in `span_us`.
fn behind_us(span_us: u64) -> u64 {
    (span_us / 4).min(BEHIND_US + span_us / 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round trip of 50 ms from the handshake to the first data; then three times as much is sent as arrives.
    fn judged_at_the_start(tick_us: u64) -> u32 {
        let mut clock = Clock::default();
        let mut arrived_us = 1_000_000;
        let mut ack = |sent_us: u64, arrived_us: u64| {
            let value = (arrived_us / tick_us) as u32;
            clock.on_ack(arrived_us + 25_000, value, (sent_us / 1_000) as u32, true, 1_000);
            clock.tick_us
        };
        ack(arrived_us - 25_000, arrived_us);
        let sent_from_us = arrived_us + 25_000;
        let arrives_from_us = sent_from_us + 25_000;
        arrived_us = arrives_from_us;
        let mut tick_us = 0;
        while arrived_us < arrives_from_us + 3_000_000 {
            tick_us = ack(sent_from_us + (arrived_us - arrives_from_us) / 3, arrived_us);
            arrived_us += 12_000;
        }
        tick_us
    }

    /// A handshake during an outage took 1.5 s; later round trips take 50 ms.
    #[test]
    fn an_outage_at_the_handshake_makes_ticks_no_longer() {
        let mut clock = Clock::default();
        let mut anew = 0;
        let mut ack = |sent_us: u64, received_us: u64| {
            let at_us = received_us + 25_000;
            let (value, echo) = ((received_us / 1_000) as u32, (sent_us / 1_000) as u32);
            clock.on_ack(at_us, value, echo, true, 1_000);
            anew += u32::from(clock.begin_anew(at_us, sent_us));
            assert!(matches!(clock.tick_us, 0 | 1_000), "{clock:?} at {at_us}");
            clock.tick_us
        };
        ack(1_000_000, 2_475_000);
        let ticks: Vec<u32> = (0..100).map(|n| ack(2_500_000 + n * 5_000, 2_525_000 + n * 5_000)).collect();
        assert_eq!(ticks.last(), Some(&1_000));
        assert_eq!(anew, 1);
    }

    #[test]
    fn ticks_are_told_while_more_is_sent_than_arrives() {
        for tick_us in [1_000, 2_000, 4_000, 10_000, 100_000] {
            assert_eq!(u64::from(judged_at_the_start(tick_us)), tick_us);
        }
    }
}
