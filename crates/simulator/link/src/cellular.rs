//! Cellular links: delivery opportunities as recorded on a real network.
//!
//! The format is mahimahi's (Netravali et al., USENIX ATC 2015; the recordings are from Winstein et al., NSDI 2013):
//! each line is the millisecond of one opportunity for 1500 bytes, and the trace repeats after the last one.

use std::fmt;

use tacit_packet::units::{BitRate, Bytes, Instant};

/// Bytes per opportunity: a packet of Ethernet's MTU, or the same number of bytes of several packets.
pub const OPPORTUNITY: Bytes = Bytes(1_500);
/// Most opportunities in a trace: four hours at 100 Mb/s.
pub const MAX_OPPORTUNITIES: usize = 1 << 27;
/// Longest trace in milliseconds: a week.
pub const MAX_MILLIS: u32 = 7 * 86_400 * 1_000;
const NANOS_PER_MILLI: u64 = 1_000_000;
/// Most characters of a wrong line that its error shows.
const MAX_SHOWN: usize = 20;

/// The delivery opportunities of a cellular link, repeated periodically.
#[derive(Clone, PartialEq, Eq)]
pub struct Trace {
    /// Ascending; several opportunities may share a millisecond. The last one is the period.
    millis: Vec<u32>,
}

/// Why a text is not a trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct TraceError {
    /// Line number, from 1; one past the last line if something is missing.
    pub line: usize,
    /// The error, and the allowed values.
    pub what: String,
}

impl Trace {
    /// A trace with these opportunities in milliseconds.
    ///
    /// # Errors
    /// [`TraceError`] for the first value that is out of order or too large, and for traces without an opportunity
    /// after their first millisecond.
    pub fn new(millis: Vec<u32>) -> Result<Self, TraceError> {
        let mut trace = Self { millis: Vec::new() };
        for (number, at) in millis.iter().enumerate() {
            trace.check_next(number + 1, number.checked_sub(1).map(|before| millis[before]), *at)?;
        }
        trace.millis = millis;
        trace.check_whole()
    }

    /// Parses a trace in mahimahi's format. Empty lines at the end are allowed.
    ///
    /// # Errors
    /// [`TraceError`] for the first line that is not a millisecond from 0 to [`MAX_MILLIS`], or is less than the line
    /// before it, and for a trace of zero length.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut trace = Self { millis: Vec::new() };
        for (line, number) in text.trim_end().lines().zip(1..) {
            let at = parse_millis(line).map_err(|what| TraceError { line: number, what })?;
            trace.check_next(number, trace.millis.last().copied(), at)?;
            trace.millis.push(at);
        }
        trace.check_whole()
    }

    fn check_next(&self, line: usize, before: Option<u32>, at: u32) -> Result<(), TraceError> {
        let refuse = |what| Err(TraceError { line, what });
        if at > MAX_MILLIS {
            return refuse(too_late(at));
        }
        if let Some(before) = before.filter(|before| *before > at) {
            return refuse(format!("{at} ms comes after {before} ms; allowed: times that never fall"));
        }
        if line > MAX_OPPORTUNITIES {
            return refuse(format!("too many opportunities; allowed: {MAX_OPPORTUNITIES}"));
        }
        Ok(())
    }

    fn check_whole(self) -> Result<Self, TraceError> {
        match self.millis.last() {
            Some(last) if *last > 0 => Ok(self),
            _ => Err(TraceError {
                line: self.millis.len() + 1,
                what: "the trace has no length; allowed: at least one opportunity after millisecond 0".into(),
            }),
        }
    }

    /// Length of the period in milliseconds.
    pub fn period_millis(&self) -> u32 {
        self.millis[self.millis.len() - 1]
    }

    /// Number of opportunities per period.
    pub fn opportunities(&self) -> usize {
        self.millis.len()
    }

    /// Throughput of a queue that is never empty, IP headers included, rounded down.
    pub fn mean_rate(&self) -> BitRate {
        let bits = self.millis.len() as u64 * OPPORTUNITY.0 * 8;
        BitRate::from_bps(bits * 1_000 / u64::from(self.period_millis()))
    }

    /// Bytes of the opportunities after `from`, up to and including `to`.
    pub fn capacity(&self, from: Instant, to: Instant) -> Bytes {
        Bytes(self.first_after(to).saturating_sub(self.first_after(from)) * OPPORTUNITY.0)
    }

    /// Time of opportunity `number`, counted from 0 over all periods.
    pub(crate) fn at(&self, number: u64) -> Instant {
        let len = self.millis.len() as u64;
        let millis =
            number / len * u64::from(self.period_millis()) + u64::from(self.millis[(number % len) as usize]);
        Instant::from_nanos(millis * NANOS_PER_MILLI)
    }

    /// The first opportunity after `now`: a packet that arrives at the same time as an opportunity misses it.
    pub(crate) fn first_after(&self, now: Instant) -> u64 {
        let period = u64::from(self.period_millis());
        let millis = now.as_nanos() / NANOS_PER_MILLI + 1;
        // Counted so that the last opportunity belongs to the period that it ends.
        let cycle = (millis - 1) / period;
        let within = millis - cycle * period;
        let index = self.millis.partition_point(|at| u64::from(*at) < within);
        cycle * self.millis.len() as u64 + index as u64
    }
}

fn parse_millis(line: &str) -> Result<u32, String> {
    let digits = line.strip_suffix('\r').unwrap_or(line);
    let shown: String = digits.chars().take(MAX_SHOWN).collect();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("{shown:?} is no millisecond; allowed: one whole number per line"));
    }
    // Longer than any 32-bit number.
    digits.parse().map_err(|_| too_late(if shown.len() < digits.len() { shown + "…" } else { shown }))
}

fn too_late(millis: impl fmt::Display) -> String {
    format!("{millis} ms is too late; allowed: up to {MAX_MILLIS} ms, a week")
}

/// A short form, because a trace may have a million lines; contains a hash (FNV-1a) that distinguishes traces.
impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hash = self.millis.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, millis| {
            (hash ^ u64::from(*millis)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        write!(f, "Trace({} in {} ms, {hash:016x})", self.millis.len(), self.period_millis())
    }
}

/// Position of a link in its trace.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Position {
    /// The next opportunity that was neither used nor missed.
    next: u64,
    /// Time of the previous one.
    at: Instant,
    /// The unused part of that one, for packets that were waiting at its time.
    left: Bytes,
}

impl Position {
    /// When the first byte of a packet that has waited since `since` is sent.
    pub fn next_start(&self, trace: &Trace, since: Instant) -> Instant {
        if self.may_share(since) { self.at } else { trace.at(self.unused(trace, since)) }
    }

    /// Sends `len` bytes that have waited since `since`; returns when the first and the last byte are sent.
    pub fn transmit(&mut self, trace: &Trace, since: Instant, len: Bytes) -> (Instant, Instant) {
        if !self.may_share(since) {
            self.take(trace, self.unused(trace, since));
        }
        let start = self.at;
        let mut rest = len;
        loop {
            let used = rest.min(self.left);
            (rest, self.left) = (rest - used, self.left - used);
            if rest == Bytes(0) {
                return (start, self.at);
            }
            self.take(trace, self.next);
        }
    }

    fn may_share(&self, since: Instant) -> bool {
        self.left > Bytes(0) && since < self.at
    }

    fn unused(&self, trace: &Trace, since: Instant) -> u64 {
        self.next.max(trace.first_after(since))
    }

    fn take(&mut self, trace: &Trace, number: u64) {
        *self = Self { next: number + 1, at: trace.at(number), left: OPPORTUNITY };
    }
}

#[cfg(test)]
mod tests {
    use tacit_packet::units::Duration;

    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn the_period_ends_with_the_last_opportunity_and_starts_again() {
        let trace = Trace::parse("0\n3\n3\n10\n").unwrap();
        let times: Vec<_> = (0..9).map(|number| trace.at(number).as_nanos() / 1_000_000).collect();
        assert_eq!(times, [0, 3, 3, 10, 10, 13, 13, 20, 20]);
        assert_eq!(trace.mean_rate(), BitRate::from_bps(4 * 1500 * 8 * 100));
    }

    #[test]
    fn packets_that_come_with_an_opportunity_have_missed_it() {
        let trace = Trace::parse("0\n3\n3\n10").unwrap();
        assert_eq!(trace.first_after(at(0)), 1);
        assert_eq!(trace.first_after(at(3) - Duration::from_nanos(1)), 1);
        assert_eq!(trace.first_after(at(3)), 3);
        assert_eq!(trace.first_after(at(10)), 5, "those at 0 and 10 of the next period came too");
        for ms in 0..60 {
            let first = trace.first_after(at(ms));
            assert!(trace.at(first) > at(ms) && (first == 0 || trace.at(first - 1) <= at(ms)), "{ms}");
        }
    }

    #[test]
    fn small_packets_share_an_opportunity_and_large_ones_take_several() {
        let trace = Trace::parse("1\n2\n3\n4\n5\n9").unwrap();
        let mut position = Position::default();
        let mut send = |since, len| position.transmit(&trace, at(since), Bytes(len));
        assert_eq!(send(0, 600), (at(1), at(1)));
        assert_eq!(send(0, 600), (at(1), at(1)), "the rest of the first");
        assert_eq!(send(0, 600), (at(1), at(2)), "half in the first, half in the second");
        assert_eq!(send(2, 100), (at(3), at(3)), "the rest of the second went by before it came");
        assert_eq!(send(0, 3_000), (at(3), at(5)), "1400 in the third, 1500, 100");
        assert_eq!(send(5, 100), (at(9), at(9)));
    }

    #[test]
    fn wrong_traces_say_where() {
        let error = |text: &str| Trace::parse(text).unwrap_err().to_string();
        assert_eq!(error("1\n5\n4\n"), "line 3: 4 ms comes after 5 ms; allowed: times that never fall");
        assert_eq!(error("1\n-5\n"), "line 2: \"-5\" is no millisecond; allowed: one whole number per line");
        assert!(error("1\n\n5").starts_with("line 2: \"\" is no millisecond"));
        assert!(error("99999999999999999999").starts_with("line 1: 99999999999999999999 ms is too late"));
        assert!(error(&"9".repeat(30)).starts_with("line 1: 99999999999999999999… ms is too late"));
        assert!(error("4294967295\n").starts_with("line 1: 4294967295 ms is too late"));
        assert!(error("604800001").contains("a week"));
        assert!(error("").starts_with("line 1: the trace has no length"));
        assert!(error("0\n0\n").starts_with("line 3: the trace has no length"));
        assert_eq!(Trace::new(vec![3, 2]).unwrap_err().line, 2);
    }

    #[test]
    fn other_traces_print_otherwise() {
        let print = |text| format!("{:?}", Trace::parse(text).unwrap());
        assert_eq!(print("1\n2\n"), print("1\r\n2"));
        assert_ne!(print("0\n2\n"), print("1\n2"));
    }
}
