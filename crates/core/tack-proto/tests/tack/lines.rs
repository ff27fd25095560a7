//! Packet scripts in lines, in the language of TCP's (`tests/tcp/script.rs`):
//!
//! ```text
//! +0   < 5-9,11 owd 8               packets of the peer with data arrive, which left `owd` ms before (5 where not said)
//! +1   > iack 10..12                the connection must send it, `+ms` after the line before: 11 is missing
//! +20  > tack cum 10 missing 10 base 25   parts left out are not compared; `missing none` for an empty list
//! +0   write 20                     the user gives as many full packets
//! +0   > data 2-5                   packets with data leave, whose first is the one after those before
//! +40  < tack cum 4 missing 5 base 25 rate 40 ce 1 got 3     what the peer has, its Mb/s, marks and packets that arrived
//! +0   path                         packets take another path
//! +0   silence                      nothing has been sent that no line before expects
//! ```
//!
//! Numbers of ours count from the first data packet, 1. Packets of the peer are as in `Script::data`, each with its own bytes.

use std::collections::VecDeque;
use std::sync::Arc;

use tacit_packet::Endpoint;
use tacit_packet::tack::packet::{Block, Body, Cause, Data, InstantAck, Stamp, Tack};
use tacit_packet::units::{Duration, Instant, SeqNumber};

use crate::script::{FULL, Script};

pub struct Lines {
    pub script: Script,
    now: Instant,
    sent: VecDeque<(Instant, u32, Body)>,
    /// The number of our first data packet.
    first: Option<u32>,
}

impl Lines {
    /// Continues `script` at `now`.
    pub fn new(script: Script, now: Instant) -> Self {
        Self { script, now, sent: VecDeque::new(), first: None }
    }

    /// Runs the lines of `text`; nothing may be left unexpected at the end.
    pub fn run(&mut self, text: &str) {
        self.run_open(text);
        self.expect_silence("the end of the script");
    }

    /// Runs the lines of `text`, regardless of packets sent after the last.
    pub fn run_open(&mut self, text: &str) {
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (delay, rest) = line.split_once(' ').unwrap_or_else(|| panic!("no action in `{line}`"));
            let at = self.now + millis(delay.trim_start_matches('+'));
            let words: Vec<&str> = rest.split_whitespace().collect();
            if words[0] == ">" {
                self.expect(at, &words[1..], line);
                continue;
            }
            self.advance(at);
            self.expect_silence(line);
            match words[..] {
                ["<", "tack", ref parts @ ..] => self.give_tack(parts),
                ["<", numbers, ref parts @ ..] => self.give_data(numbers, part(parts, "owd")),
                ["write", packets] => self.script.end.write(number(packets) * u64::from(FULL)),
                ["path"] => self.script.end.on_path_changed(at),
                ["silence"] => {}
                _ => panic!("unknown action in `{line}`"),
            }
            self.drain();
        }
    }

    /// Moves time, letting timers fire on the way.
    fn advance(&mut self, to: Instant) {
        self.drain();
        while let Some(at) = self.script.end.poll_timeout().filter(|at| *at <= to) {
            self.now = at.max(self.now);
            self.script.end.handle_timeout(self.now);
            self.drain();
        }
        self.now = to;
    }

    fn drain(&mut self) {
        for (number, body) in self.script.numbered(self.now) {
            if matches!(body, Body::Data(_)) {
                self.first.get_or_insert(number);
            }
            self.sent.push_back((self.now, number, body));
        }
    }

    fn expect_silence(&mut self, line: &str) {
        if let Some((at, _, body)) = self.sent.front() {
            panic!("before `{line}`: unexpected at {at}: {body:?}");
        }
    }

    fn expect(&mut self, at: Instant, words: &[&str], line: &str) {
        if words[0] == "data" {
            return self.expect_data(at, &spans(words[1]), line);
        }
        if self.sent.is_empty() {
            self.advance(at);
        }
        let Some((sent_at, _, body)) = self.sent.pop_front() else { panic!("`{line}`: nothing until {at}") };
        match (words[0], &body) {
            ("iack", Body::Instant(InstantAck { cause: Cause::Loss, largest, second, .. })) => {
                assert_eq!(format!("{}..{}", second.0, largest.0), words[1], "`{line}`");
            }
            ("tack", Body::Tack(tack)) => compare(tack, &words[1..], line),
            _ => panic!("`{line}`: got {body:?}"),
        }
        assert_eq!(sent_at, at, "`{line}`: at the wrong time");
        self.now = at;
    }

    /// All of them have left by `at`, and nothing else.
    fn expect_data(&mut self, at: Instant, expected: &[(u32, u32)], line: &str) {
        self.advance(at);
        let data = self.sent.drain(..).map(|(_, number, body)| match body {
            Body::Data(_) => number - self.first.unwrap_or(number) + 1,
            other => panic!("`{line}`: got {other:?}"),
        });
        let wanted: Vec<u32> = expected.iter().flat_map(|(first, last)| *first..=*last).collect();
        assert_eq!(data.collect::<Vec<_>>(), wanted, "`{line}`");
    }

    fn give_data(&mut self, numbers: &str, owd: Option<&str>) {
        let left =
            Stamp(self.now.as_nanos().wrapping_sub(millis(owd.unwrap_or("5")).as_nanos()) as u32 / 1000);
        for number in spans(numbers).into_iter().flat_map(|(first, last)| first..=last) {
            let offset = SeqNumber((number - 2) * u32::from(FULL));
            let data = Data { offset, payload_len: FULL, departed: left, ..Data::default() };
            self.script.give_number(self.now, number, Body::Data(data));
        }
    }

    fn give_tack(&mut self, parts: &[&str]) {
        let first = self.first.unwrap_or_default();
        let value = |name| part(parts, name).map_or(0, number);
        let unacked: Vec<Block> = part(parts, "missing")
            .map(spans)
            .unwrap_or_default()
            .into_iter()
            .map(|(from, to)| Block { first: SeqNumber(first + from - 1), last: SeqNumber(first + to - 1) })
            .collect();
        let acked = part(parts, "acked").map(spans).unwrap_or_default().into_iter();
        let tack = Tack {
            delay_us: u32::MAX,
            rate_kbps: value("rate") as u32 * 1000,
            base_loss: value("base") as u8,
            ce: value("ce") as u16,
            received: SeqNumber(value("got") as u32 * u32::from(FULL)),
            window: SeqNumber(1 << 30),
            cumulative: SeqNumber(first + value("cum") as u32 - 1),
            repeated: unacked.len() as u8,
            acked: acked
                .map(|(from, to)| Block {
                    first: SeqNumber(first + from - 1),
                    last: SeqNumber(first + to - 1),
                })
                .collect(),
            unacked,
            ..Tack::default()
        };
        let next = self.script.number;
        self.script.give_number(self.now, next, Body::Tack(Arc::new(tack)));
    }
}

fn compare(tack: &Tack, parts: &[&str], line: &str) {
    if let Some(cumulative) = part(parts, "cum") {
        assert_eq!(u64::from(tack.cumulative.0), number(cumulative), "`{line}`");
    }
    if let Some(missing) = part(parts, "missing") {
        let missing = if missing == "none" { vec![] } else { spans(missing) };
        let listed: Vec<_> = tack.unacked.iter().map(|block| (block.first.0, block.last.0)).collect();
        assert_eq!(listed, missing, "`{line}`");
    }
    if let Some(base) = part(parts, "base") {
        assert_eq!(u64::from(tack.base_loss), number(base), "`{line}`");
    }
    if let Some(rate) = part(parts, "rate") {
        assert_eq!(u64::from((tack.rate_kbps + 500) / 1000), number(rate), "`{line}`");
    }
}

/// The word behind `name`.
fn part<'a>(parts: &[&'a str], name: &str) -> Option<&'a str> {
    parts.iter().position(|word| *word == name).map(|place| parts[place + 1])
}

/// `3-5,8` is 3 to 5, and 8.
fn spans(text: &str) -> Vec<(u32, u32)> {
    let span = |text: &str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        (number(first) as u32, number(last) as u32)
    };
    text.split(',').map(span).collect()
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("`{text}` is no number"))
}

/// `12.5` is twelve and a half milliseconds.
fn millis(text: &str) -> Duration {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    Duration::from_nanos(number(whole) * 1_000_000 + number(&format!("{part:0<6}")))
}
