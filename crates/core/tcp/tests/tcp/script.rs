//! Packet scripts: a conversation with one end of a connection, line by line.
//!
//! ```text
//! +0    connect                      what the user does: connect, listen, write N, hold, read N, close, abort;
//!                                    several at once are joined by `;`
//! +0    > S 0:0(0)                   a segment the connection must send, `+ms` after the line before
//! +100  < S. 0:0(0) ack 1 win 9000   a segment that arrives
//! +0    = Established                the state must be
//! +0    ! Connected                  the next event must be
//! ```
//!
//! Segments are written `flags first:end(payload)`, with flags from `S F R P`, `E` for ECE, `C` for CWR
//! and `.` for ACK, then `ack N`, `win N` (the raw field), the ECN field if it is `ect0` or `ce`, and
//! `<options>`: `mss N`, `sackOK`, `wscale N`, `TS val ecr`,
//! `sack a:b c:d`. Sequence numbers count from each end's SYN; our timestamps are milliseconds of
//! script time. In an expected segment `win` and `<options>` may be left out, and are then not
//! compared. An unexpected segment, or one at the wrong time, fails the script.

use std::collections::VecDeque;
use std::fmt::Write;

use tacit_packet::endpoint::{Ends, Event};
use tacit_packet::tcp::{Flags, SackBlocks, SackRange, Segment, Timestamps};
use tacit_packet::units::{Bytes, Duration, FlowId, HostId, Instant, SeqNumber};
use tacit_packet::{Ecn, Endpoint, IpHeader, Packet, Transport};
use tacit_tcp::{Config, Connection, Counters, DelayedAcks, ReadPolicy};

/// Initial sequence numbers near the end of the number space, so that most scripts cross the wrap.
const OUR_ISS: SeqNumber = SeqNumber(u32::MAX - 4_000);
const PEER_ISS: SeqNumber = SeqNumber(u32::MAX - 2_000);

const ENDS: Ends = Ends { flow: FlowId(1), local: HostId(1), remote: HostId(2) };

/// Round numbers: segments of 1000 bytes, unscaled windows, no timestamps, immediate ACKs, unless a script is about
/// these.
pub fn plain() -> Config {
    Config {
        mtu: Bytes(1040),
        timestamps: false,
        receive_buffer: Bytes(60_000),
        ack_policy: DelayedAcks { every: 1, quick_ack_segments: 0, ..DelayedAcks::default() }.into(),
        ..Config::default()
    }
}

pub struct Script {
    config: Config,
    pub connection: Connection,
    now: Instant,
    /// Sent segments that were not compared with a line yet.
    sent: VecDeque<(Instant, Segment, Ecn)>,
    /// Our timestamp clock at script time zero, known from the SYN.
    stamp_base: Option<u32>,
}

impl Script {
    pub fn new(config: Config) -> Self {
        Self {
            config,
            connection: Connection::listen(config, ENDS, OUR_ISS),
            now: Instant::ZERO,
            sent: VecDeque::new(),
            stamp_base: None,
        }
    }

    /// After a handshake of 100 ms with a peer that offers the same options except scaling.
    pub fn connected(config: Config) -> Self {
        let mut script = Self::new(config);
        let sack = if config.sack { ",sackOK" } else { "" };
        let stamps = if config.timestamps { ",TS 1000 0" } else { "" };
        script.run(&format!(
            "+0   connect
             +0   > S 0:0(0)
             +100 < S. 0:0(0) ack 1 win 60000 <mss 1000{sack}{stamps}>
             +0   > . 1:1(0) ack 1
             +0   ! Connected"
        ));
        script
    }

    pub fn counters(&self) -> Counters {
        self.connection.counters()
    }

    /// Removes and returns the sent segments that were not compared with a line, without windows and options.
    pub fn replies(&mut self) -> Vec<String> {
        let sent = std::mem::take(&mut self.sent);
        let short = |text: String| text.split(" win ").next().unwrap_or_default().to_owned();
        sent.iter().map(|(_, segment, ecn)| short(self.render(segment, *ecn))).collect()
    }

    /// Runs the lines of `text`; afterwards no unexpected segment may remain.
    pub fn run(&mut self, text: &str) {
        self.run_open(text);
        self.expect_silence("the end of the script");
    }

    /// Runs the lines of `text`, and ignores segments sent after the last one.
    pub fn run_open(&mut self, text: &str) {
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            self.run_line(line);
        }
    }

    fn run_line(&mut self, line: &str) {
        let (delay, rest) = line.split_once(' ').unwrap_or_else(|| panic!("no action in `{line}`"));
        let at = self.now + parse_delay(delay);
        let rest = rest.trim();
        if let Some(expected) = rest.strip_prefix("> ") {
            return self.expect_segment(at, expected, line);
        }
        self.advance(at);
        self.expect_silence(line);
        for action in rest.split(';').map(str::trim) {
            match action.split_once(' ').map_or((action, ""), |(verb, rest)| (verb, rest.trim())) {
                ("<", segment) => self.deliver(segment),
                ("=", state) => assert_eq!(format!("{:?}", self.connection.state()), state, "`{line}`"),
                ("!", event) => {
                    let got = self.connection.poll_event().map(|event: Event| format!("{event:?}"));
                    assert_eq!(got.as_deref(), Some(event), "`{line}`");
                }
                (verb, argument) => self.act(verb, argument),
            }
        }
        self.drain();
    }

    fn act(&mut self, verb: &str, argument: &str) {
        let number = || argument.parse().unwrap_or_else(|_| panic!("`{verb}` wants a number"));
        match verb {
            "connect" => self.connection = Connection::connect(self.config, ENDS, OUR_ISS, self.now),
            "listen" => self.connection = Connection::listen(self.config, ENDS, OUR_ISS),
            "write" => self.connection.write(number()),
            "read" => assert_eq!(self.connection.read(number()), number()),
            "hold" => self.connection.set_read_policy(ReadPolicy::Manual),
            "close" => self.connection.close(),
            "abort" => self.connection.abort(),
            "silence" => {}
            _ => panic!("unknown action `{verb}`"),
        }
    }

    /// Advances time; timers fire when they are due.
    fn advance(&mut self, to: Instant) {
        self.drain();
        while let Some(at) = self.connection.poll_timeout().filter(|at| *at <= to) {
            self.now = at.max(self.now);
            self.connection.handle_timeout(self.now);
            self.drain();
        }
        self.now = to;
    }

    fn drain(&mut self) {
        while let Some(packet) = self.connection.poll_transmit(self.now) {
            let Transport::Tcp(segment) = packet.transport else { unreachable!("a connection sends TCP") };
            if let (None, Some(stamps)) = (self.stamp_base, segment.timestamps) {
                self.stamp_base = Some(stamps.value.wrapping_sub(millis(self.now)));
            }
            self.sent.push_back((self.now, segment, packet.ip.ecn));
        }
    }

    fn expect_silence(&mut self, line: &str) {
        self.drain();
        if let Some((at, segment, ecn)) = self.sent.front() {
            panic!("before `{line}`: unexpected at {at}: {}", self.render(segment, *ecn));
        }
    }

    fn expect_segment(&mut self, at: Instant, expected: &str, line: &str) {
        if self.sent.is_empty() {
            self.advance(at);
        }
        let Some((sent_at, segment, ecn)) = self.sent.pop_front() else {
            panic!("`{line}`: nothing was sent until {at}");
        };
        let got = self.render(&segment, ecn);
        for (name, part, wanted) in
            parts(expected).into_iter().zip(parts(&got)).map(|((n, w), (_, g))| (n, g, w))
        {
            let optional = name == "win" || name == "options";
            assert!(optional && wanted.is_empty() || part == wanted, "`{line}`: got `{got}`");
        }
        assert_eq!(sent_at, at, "`{line}`: got `{got}` at the wrong time");
        self.now = at;
    }

    fn deliver(&mut self, text: &str) {
        let segment = self.parse(text);
        let packet = Packet {
            flow: ENDS.flow,
            source: ENDS.remote,
            destination: ENDS.local,
            ip: IpHeader { ecn: codepoint(text), ..IpHeader::default() },
            transport: Transport::Tcp(segment),
        };
        self.connection.handle_packet(self.now, packet);
    }

    /// Formats a segment of ours.
    fn render(&self, segment: &Segment, ecn: Ecn) -> String {
        let flag = |flag, letter| if segment.flags.contains(flag) { letter } else { "" };
        let mut text = String::new();
        text += flag(Flags::SYN, "S");
        text += flag(Flags::FIN, "F");
        text += flag(Flags::RST, "R");
        text += flag(Flags::PSH, "P");
        text += flag(Flags::ECE, "E");
        text += flag(Flags::CWR, "C");
        text += flag(Flags::ACK, ".");
        let first = segment.seq - OUR_ISS;
        let _ = write!(text, " {first}:{}({})", first.wrapping_add(segment.payload_len), segment.payload_len);
        if segment.flags.contains(Flags::ACK) {
            let _ = write!(text, " ack {}", segment.ack - PEER_ISS);
        }
        let _ = write!(text, " win {}", segment.window);
        text += match ecn {
            Ecn::NotEct => "",
            Ecn::Ect0 => " ect0",
            Ecn::Ect1 => " ect1",
            Ecn::Ce => " ce",
        };
        let mut options = Vec::new();
        options.extend(segment.mss.map(|mss| format!("mss {mss}")));
        options.extend(segment.sack_permitted.then(|| "sackOK".to_owned()));
        options.extend(segment.window_scale.map(|scale| format!("wscale {scale}")));
        options.extend(segment.timestamps.map(|stamps| {
            let value = stamps.value.wrapping_sub(self.stamp_base.unwrap_or(0));
            format!("TS {value} {}", stamps.echo_reply)
        }));
        if !segment.sack.is_empty() {
            let blocks = segment.sack.as_slice().iter();
            let blocks = blocks.map(|block| format!(" {}:{}", block.start - PEER_ISS, block.end - PEER_ISS));
            options.push(format!("sack{}", blocks.collect::<String>()));
        }
        let _ = write!(text, " <{}>", options.join(","));
        text
    }

    /// Parses a segment of the peer.
    fn parse(&self, text: &str) -> Segment {
        let parts = parts(text);
        let get = |name: &str| {
            parts.iter().find(|(other, _)| *other == name).map(|(_, value)| value.as_str()).unwrap_or("")
        };
        let mut segment = Segment { window: 60_000, ..Segment::default() };
        for letter in get("flags").chars() {
            segment.flags |= match letter {
                'S' => Flags::SYN,
                'F' => Flags::FIN,
                'R' => Flags::RST,
                'P' => Flags::PSH,
                'E' => Flags::ECE,
                'C' => Flags::CWR,
                '.' => Flags::ACK,
                _ => panic!("no flag `{letter}` in `{text}`"),
            };
        }
        let (first, rest) = get("range").split_once(':').unwrap_or_else(|| panic!("no range in `{text}`"));
        let payload = rest.split_once('(').map_or("", |(_, payload)| payload).trim_end_matches(')');
        segment.seq = PEER_ISS + signed(first);
        segment.payload_len = payload.parse().unwrap_or_else(|_| panic!("no payload in `{text}`"));
        if !get("ack").is_empty() {
            segment.ack = OUR_ISS + signed(get("ack"));
        }
        if let Ok(window) = get("win").parse() {
            segment.window = window;
        }
        for option in get("options").split(',').filter(|option| !option.is_empty()) {
            self.parse_option(option, &mut segment);
        }
        segment
    }

    fn parse_option(&self, option: &str, segment: &mut Segment) {
        let words: Vec<_> = option.split_whitespace().collect();
        let number = |word: &str| word.parse::<u32>().unwrap_or_else(|_| panic!("no number in `{option}`"));
        match words[..] {
            ["mss", mss] => segment.mss = Some(number(mss) as u16),
            ["sackOK"] => segment.sack_permitted = true,
            ["wscale", scale] => segment.window_scale = Some(number(scale) as u8),
            ["TS", value, echo] => {
                let echo_reply = number(echo).wrapping_add(self.stamp_base.unwrap_or(0));
                segment.timestamps = Some(Timestamps { value: number(value), echo_reply });
            }
            ["sack", ref blocks @ ..] => {
                segment.sack = SackBlocks::EMPTY;
                for block in blocks {
                    let (start, end) =
                        block.split_once(':').unwrap_or_else(|| panic!("no block in `{option}`"));
                    let range = SackRange { start: OUR_ISS + signed(start), end: OUR_ISS + signed(end) };
                    assert!(segment.sack.push(range));
                }
            }
            _ => panic!("unknown option `{option}`"),
        }
    }
}

fn codepoint(text: &str) -> Ecn {
    let has = |name| text.split_whitespace().any(|word| word == name);
    match (has("ect0"), has("ce")) {
        (_, true) => Ecn::Ce,
        (true, _) => Ecn::Ect0,
        _ => Ecn::NotEct,
    }
}

fn millis(now: Instant) -> u32 {
    now.saturating_since(Instant::ZERO).as_millis() as u32
}

/// Numbers may be negative, for positions before the SYN.
fn signed(text: &str) -> u32 {
    text.parse::<i64>().unwrap_or_else(|_| panic!("`{text}` is no number")) as u32
}

/// `+12.5` is twelve and a half milliseconds.
fn parse_delay(text: &str) -> Duration {
    let text = text.strip_prefix('+').unwrap_or_else(|| panic!("`{text}` is no delay"));
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let part = format!("{part:0<6}");
    let number = |digits: &str| digits.parse::<u64>().unwrap_or_else(|_| panic!("`{text}` is no delay"));
    Duration::from_nanos(number(whole) * 1_000_000 + number(&part))
}

/// Splits a segment's text into its parts; a part that is missing is empty.
fn parts(text: &str) -> Vec<(&'static str, String)> {
    let (head, options) = text.split_once('<').unwrap_or((text, ""));
    let has_options = text.contains('<');
    let words: Vec<_> = head.split_whitespace().collect();
    let after = |name: &str| {
        words
            .iter()
            .position(|word| *word == name)
            .and_then(|at| words.get(at + 1))
            .unwrap_or(&"")
            .to_string()
    };
    let options = options.trim_end_matches('>').to_owned();
    vec![
        ("flags", words.first().unwrap_or(&"").to_string()),
        ("range", words.get(1).unwrap_or(&"").to_string()),
        ("ack", after("ack")),
        ("win", after("win")),
        ("ecn", words.last().filter(|word| ["ect0", "ect1", "ce"].contains(word)).unwrap_or(&"").to_string()),
        ("options", if has_options && options.is_empty() { "none".to_owned() } else { options }),
    ]
}
