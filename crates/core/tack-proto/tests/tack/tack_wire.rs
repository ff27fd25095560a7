//! TACK packets to bytes and back.

mod property;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::{env, fs, path::Path};

use tacit_packet::endpoint::{Ends, Event};
use tacit_packet::tack::packet::{
    Block, Body, Cause, CloseCode, ConnectionId, Control, Data, Datagram, Hello, InstantAck, MAX_LIST,
    Packet, Reason, Stamp, StreamId, Sync, TAG_LEN, Tack, Token,
};
use tacit_packet::tack::wire::{
    DecodeError, EncodeError, Prefix, Unsound, decode, decode_sealed, encode, encode_sealed,
};
use tacit_packet::tack::{Forged, Protector, Tag};
use tacit_packet::units::{Bytes, Duration, FlowId, HostId, Instant, SeqNumber};
use tacit_packet::{Ecn, Endpoint as _, IpHeader, IpVersion, Transport, wire};
use tacit_tack_proto::{AckClock, Config, Connection, Lists};

/// Widths of the fields type and flags, connection, packet number.
fn prefix(packet: &Packet) -> &'static [usize] {
    match (packet.is_short(), packet.connection) {
        (false, _) => &[1, 4, 4],
        (true, ConnectionId(0)) => &[1, 2],
        (true, _) => &[1, 4, 2],
    }
}

fn prefix_len(packet: &Packet) -> usize {
    prefix(packet).iter().sum()
}

const TAG: usize = TAG_LEN as usize;

fn packet(body: Body) -> Packet {
    let connection = if matches!(body, Body::Open(_)) { 0 } else { 0xc0c1_c2c3 };
    Packet { connection: ConnectionId(connection), number: SeqNumber(0x0102_0304), body }
}

fn hello() -> Hello {
    Hello {
        version: Hello::VERSION,
        source: ConnectionId(0xa0a1_a2a3),
        departed: Stamp(0x1000_0001),
        echo: Stamp(0),
        window: 1 << 20,
        stream_window: 1 << 16,
        streams: 8,
        max_payload: 1472,
        beta: 4,
        every: 2,
        min_interval_ms: 25,
    }
}

fn data() -> Data {
    Data { offset: SeqNumber(0x2000), payload_len: 3, departed: Stamp(0x1000_0002), ..Data::default() }
}

/// `data` in short form, to a connection that is named or not.
fn short(data: Data, named: bool) -> Packet {
    let packet = packet(Body::Data(Data { short: true, departed: data.departed.short(), ..data }));
    let connection = if named { packet.connection } else { ConnectionId(0) };
    Packet { connection, number: SeqNumber(0x0304), ..packet }
}

fn sync() -> Sync {
    Sync {
        rtt_min_us: 80_000,
        floor: SeqNumber(0x0102_0000),
        blocks: 16,
        startup: true,
        ack_interval_ms: 0x0102,
    }
}

fn block(first: u32, last: u32) -> Block {
    Block { first: SeqNumber(first), last: SeqNumber(last) }
}

/// The receiver has everything below 12, and 15, 16 and 20; everything in between is lost.
fn tack() -> Tack {
    Tack {
        left: Stamp(0x2000_0001),
        departed: Stamp(0x1000_0003),
        delay_us: 250,
        rate_kbps: 190_000,
        loss: 0x0290,
        received: SeqNumber(0x3000),
        window: SeqNumber(0x0010_3000),
        ce: 1,
        burst: 0x0040,
        base_loss: 0x0d,
        cumulative: SeqNumber(12),
        acked: vec![block(20, 20), block(15, 16)],
        unacked: vec![block(12, 14), block(17, 19)],
        repeated: 2,
        streams: vec![(StreamId(7), SeqNumber(0x4000))],
    }
}

fn instant() -> InstantAck {
    InstantAck {
        cause: Cause::Loss,
        largest: SeqNumber(5),
        second: SeqNumber(3),
        since: SeqNumber(2),
        cumulative: SeqNumber(2),
        window: SeqNumber(0x5000),
    }
}

fn reason() -> Reason {
    Reason::new(0x107, "full")
}

fn datagram() -> Datagram {
    Datagram { payload_len: 3, departed: Stamp(0x1000_0004), sync: None }
}

fn token(padding: u16) -> Token {
    Token { token: [0xe0, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7], padding }
}

/// A packet of each kind, with the widths of the fields after its prefix.
fn samples() -> Vec<(&'static str, Packet, Vec<usize>)> {
    let hello_fields = vec![2, 4, 4, 4, 4, 4, 2, 1, 1, 1];
    let answer = Hello { source: ConnectionId(0xb0b1_b2b3), echo: Stamp(0x1000_0001), ..hello() };
    let reset = Control::Reset { stream: StreamId(7), code: 0x105, end: SeqNumber(0x2003) };
    let long = Data { stream: StreamId(0x0001_0007), ..data() };
    let full = Data { stream: StreamId(7), fin: true, immediate_ack: true, sync: Some(sync()), ..data() };
    vec![
        ("open", packet(Body::Open(hello())), hello_fields.clone()),
        ("answer", packet(Body::Answer(answer)), hello_fields),
        ("data", packet(Body::Data(data())), vec![4, 4, 3]),
        ("data-full", packet(Body::Data(full)), vec![4, 4, 2, 4, 4, 1, 1, 2, 3]),
        ("data-long", packet(Body::Data(long)), vec![4, 4, 4, 3]),
        ("short", short(data(), true), vec![4, 2, 3]),
        ("short-full", short(full, true), vec![4, 2, 2, 4, 4, 1, 1, 2, 3]),
        ("short-implied", short(data(), false), vec![4, 2, 3]),
        (
            "tack",
            packet(Body::Tack(Arc::new(tack()))),
            vec![4, 4, 4, 4, 2, 4, 4, 2, 2, 1, 4, 1, 1, 1, 1, 8, 8, 8, 8, 2, 4],
        ),
        ("tack-bare", packet(Body::Tack(Arc::default())), vec![4, 4, 4, 4, 2, 4, 4, 2, 2, 1, 4, 1, 1, 1, 1]),
        ("iack-loss", packet(Body::Instant(instant())), vec![1, 4, 4, 4, 4, 4]),
        (
            "iack-window",
            packet(Body::Instant(InstantAck { cause: Cause::Window, ..instant() })),
            vec![1, 4, 4, 4, 4, 4],
        ),
        ("sync", packet(Body::Sync(sync())), vec![4, 4, 1, 1, 2]),
        ("probe", packet(Body::Probe { padding: 6 }), vec![6]),
        ("close", packet(Body::Close(CloseCode::Done)), vec![1]),
        ("close-reason", packet(Body::CloseWith(Arc::new(reason()))), vec![1, 4, 4]),
        ("reset", packet(Body::Control(reset)), vec![1, 2, 4, 4]),
        ("stop", packet(Body::Control(Control::Stop { stream: StreamId(7), code: 0x106 })), vec![1, 2, 4]),
        ("streams", packet(Body::Control(Control::Streams { limit: 300 })), vec![1, 4]),
        ("held", packet(Body::Control(Control::Held { stream: StreamId(7) })), vec![1, 2]),
        ("datagram", packet(Body::Datagram(datagram())), vec![4, 3]),
        (
            "datagram-full",
            packet(Body::Datagram(Datagram { sync: Some(sync()), ..datagram() })),
            vec![4, 4, 4, 1, 1, 2, 3],
        ),
        ("challenge", packet(Body::PathChallenge(token(3))), vec![8, 3]),
        ("response", packet(Body::PathResponse(token(0))), vec![8]),
    ]
}

/// Content of the streams of `packet` in these tests.
fn content_of(packet: &Packet) -> Vec<u8> {
    (0..packet.payload_len()).map(|place| 0xd0 | place as u8 & 0xf).collect()
}

fn encoded(packet: &Packet) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(packet, &content_of(packet), &mut bytes).unwrap();
    bytes
}

/// One word per field, without the tag, which is zero.
fn words(packet: &Packet, widths: &[usize]) -> String {
    let bytes = encoded(packet);
    let mut rest = &bytes[..bytes.len() - TAG];
    let mut words = Vec::new();
    for width in prefix(packet).iter().chain(widths) {
        let (word, behind) = rest.split_at(*width);
        rest = behind;
        words.push(word.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    }
    assert!(rest.is_empty(), "{rest:02x?} is no field");
    words.join(" ")
}

/// To be read together with the tables of docs/references/tack-wire.md.
#[test]
fn packets_look_as_documented() {
    let lines: Vec<_> =
        samples().iter().map(|(name, packet, widths)| format!("{name}: {}", words(packet, widths))).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    open: 18 00000000 01020304 0004 a0a1a2a3 10000001 00000000 00100000 00010000 05c0 04 02 19
    answer: 28 c0c1c2c3 01020304 0004 b0b1b2b3 10000001 10000001 00100000 00010000 05c0 04 02 19
    data: 30 c0c1c2c3 01020304 00002000 10000002 d0d1d2
    data-full: 3f c0c1c2c3 01020304 00002000 10000002 0007 00013880 01020000 10 01 0102 d0d1d2
    data-long: 34 c0c1c2c3 01020304 00002000 10000002 80010007 d0d1d2
    short: d0 c0c1c2c3 0304 00002000 0000 d0d1d2
    short-full: df c0c1c2c3 0304 00002000 0000 0007 00013880 01020000 10 01 0102 d0d1d2
    short-implied: e0 0304 00002000 0000 d0d1d2
    tack: 40 c0c1c2c3 01020304 20000001 10000003 000000fa 0002e630 0290 00003000 00103000 0001 0040 0d 0000000c 02 02 02 01 0000001400000014 0000000f00000010 0000000c0000000e 0000001100000013 0007 00004000
    tack-bare: 40 c0c1c2c3 01020304 00000000 00000000 00000000 00000000 0000 00000000 00000000 0000 0000 00 00000000 00 00 00 00
    iack-loss: 50 c0c1c2c3 01020304 01 00000005 00000003 00000002 00000002 00005000
    iack-window: 50 c0c1c2c3 01020304 02 00000005 00000003 00000002 00000002 00005000
    sync: 60 c0c1c2c3 01020304 00013880 01020000 10 01 0102
    probe: 70 c0c1c2c3 01020304 000000000000
    close: 80 c0c1c2c3 01020304 01
    close-reason: 80 c0c1c2c3 01020304 05 00000107 66756c6c
    reset: 90 c0c1c2c3 01020304 01 0007 00000105 00002003
    stop: 90 c0c1c2c3 01020304 02 0007 00000106
    streams: 90 c0c1c2c3 01020304 03 0000012c
    held: 90 c0c1c2c3 01020304 04 0007
    datagram: a0 c0c1c2c3 01020304 10000004 d0d1d2
    datagram-full: a8 c0c1c2c3 01020304 10000004 00013880 01020000 10 01 0102 d0d1d2
    challenge: b0 c0c1c2c3 01020304 e0e1e2e3e4e5e6e7 000000
    response: c0 c0c1c2c3 01020304 e0e1e2e3e4e5e6e7
    ");
}

#[test]
fn a_packet_is_as_long_as_it_says() {
    for (name, packet, widths) in samples() {
        let len = prefix(&packet).iter().chain(&widths).sum::<usize>() + TAG;
        assert_eq!(packet.len() as usize, len, "{name}");
        assert_eq!(encoded(&packet).len(), len, "{name}");
    }
}

#[test]
fn a_packet_cut_short_or_drawn_out_is_refused() {
    for (name, packet, _) in samples() {
        let bytes = encoded(&packet);
        let plain = &bytes[..bytes.len() - TAG];
        // Data and padding are the rest, so any length is valid.
        let (fixed, open_ended) = match &packet.body {
            Body::Data(data) => (plain.len() - usize::from(data.payload_len), true),
            Body::Datagram(datagram) => (plain.len() - usize::from(datagram.payload_len), true),
            Body::Probe { padding } => (plain.len() - usize::from(*padding), true),
            Body::PathChallenge(token) | Body::PathResponse(token) => {
                (plain.len() - usize::from(token.padding), true)
            }
            // The same for text; zeros are valid text.
            Body::CloseWith(reason) => (plain.len() - reason.text.len(), true),
            _ => (plain.len(), false),
        };
        for len in 0..fixed {
            assert!(decode(&[&plain[..len], &[0; TAG]].concat()).is_err(), "{len} bytes of {name}");
        }
        let longer = [plain, &[0; TAG + 1]].concat();
        assert_eq!(decode(&longer).is_ok(), open_ended, "{name}");
    }
    assert!((0..TAG).all(|len| decode(&vec![0; len]).is_err()));
}

/// `packet` with the byte at `place` after its prefix changed to `value`.
fn damaged(packet: &Packet, place: usize, value: u8) -> Result<Packet, DecodeError> {
    let mut bytes = encoded(packet);
    bytes[9 + place] = value;
    decode(&bytes).map(|(packet, _)| packet)
}

#[test]
fn unknown_packet_types_are_refused() {
    for first in 0..=u8::MAX {
        let known = matches!(
            first,
            0x10..=0x3f | 0x40 | 0x50 | 0x60 | 0x70 | 0x80 | 0x90 | 0xa0 | 0xa8 | 0xb0 | 0xc0 | 0xd0..=0xef
        );
        // Long enough for any kind, so that only the type is invalid.
        let mut bytes = [&[first][..], &[1; 8], &[0; 60]].concat();
        bytes.extend([0; TAG]);
        let refused = decode(&bytes).map(drop) == Err(DecodeError::Kind(first));
        assert_eq!(refused, !known, "{first:#x}");
    }
    let value = |result: Result<Packet, DecodeError>| matches!(result, Err(DecodeError::Misread(_)));
    assert!(value(damaged(&packet(Body::Instant(instant())), 0, 0)), "a cause");
    assert!(value(damaged(&packet(Body::Instant(instant())), 0, 3)), "a cause");
    assert!(value(damaged(&packet(Body::Sync(sync())), 9, 2)), "neither at start nor not");
    assert!(value(damaged(&packet(Body::Close(CloseCode::Done)), 0, 0)), "a reason");
    assert!(value(damaged(&packet(Body::Close(CloseCode::Done)), 0, 5)), "a reason of which nothing follows");
    assert!(value(damaged(&packet(Body::Close(CloseCode::Done)), 0, 7)), "a reason");
    let held = packet(Body::Control(Control::Held { stream: StreamId(7) }));
    assert!(value(damaged(&held, 0, 0)) && value(damaged(&held, 0, 5)), "something about streams");
    assert_eq!(damaged(&packet(Body::CloseWith(Arc::new(reason()))), 5, 0xff), Err(DecodeError::Text));
    assert_eq!(damaged(&packet(Body::PathChallenge(token(3))), 10, 1), Err(DecodeError::Padding));
    let probe = packet(Body::Probe { padding: 6 });
    assert_eq!(damaged(&probe, 5, 1), Err(DecodeError::Padding));
    let named = packet(Body::Data(Data { stream: StreamId(7), ..data() }));
    assert_eq!(damaged(&named, 9, 0), Err(DecodeError::StreamZero));
    let long = packet(Body::Data(Data { stream: StreamId(0x8007), ..data() }));
    // Bytes 8 and 9 belong to offset and stamp; the stream is 80 00 80 07.
    assert!(value(damaged(&long, 10, 0x7f)), "two bytes would do");
    let mut tagged = encoded(&probe);
    *tagged.last_mut().unwrap() = 1;
    assert_eq!(decode(&tagged), Err(DecodeError::Forged(Forged)));
}

/// Encoding and decoding apply the same rules: a packet that cannot be encoded cannot be decoded either.
#[test]
fn packets_that_no_end_sends_are_neither_encoded_nor_decoded() {
    let unsound = |packet: &Packet| encode(packet, &content_of(packet), &mut Vec::new());
    let refused =
        |packet: Packet, why| assert_eq!(unsound(&packet), Err(EncodeError::Unsound(why)), "{packet:?}");
    let nobody = |body| Packet { connection: ConnectionId(0), ..packet(body) };
    refused(nobody(Body::Sync(sync())), Unsound::Connection(0));
    assert!(
        unsound(&nobody(Body::Close(CloseCode::Aborted))).is_ok()
            && unsound(&nobody(Body::CloseWith(Arc::default()))).is_ok(),
        "an initiator without an answer may give up"
    );
    let known = Packet { connection: ConnectionId(1), ..packet(Body::Open(hello())) };
    refused(known, Unsound::Connection(1));
    let unnamed = Hello { source: ConnectionId(0), ..hello() };
    refused(packet(Body::Open(unnamed)), Unsound::OwnConnection);
    refused(packet(Body::Answer(unnamed)), Unsound::OwnConnection);
    let far = StreamId(StreamId::MAX + 1);
    refused(packet(Body::Data(Data { stream: far, ..data() })), Unsound::Stream(far.0));
    refused(short(Data { stream: far, ..data() }, false), Unsound::Stream(far.0));
    refused(Packet { number: SeqNumber(1 << 16), ..short(data(), true) }, Unsound::Short(1 << 16));
    let late = Body::Data(Data { short: true, departed: Stamp(1 << 20), ..data() });
    refused(Packet { body: late, ..short(data(), false) }, Unsound::Short(1 << 20));
    refused(nobody(Body::Data(data())), Unsound::Connection(0));
    refused(packet(Body::Control(Control::Held { stream: far })), Unsound::Stream(far.0));
    let limits = Tack { streams: vec![(far, SeqNumber(0))], ..Tack::default() };
    refused(packet(Body::Tack(Arc::new(limits))), Unsound::Stream(far.0));
    for body in [Body::Open, Body::Answer] {
        refused(packet(body(Hello { streams: 16, ..hello() })), Unsound::Streams(16));
    }
    let wordy = |len| packet(Body::CloseWith(Arc::new(Reason { code: 1, text: "a".repeat(len) })));
    refused(wordy(65), Unsound::LongReason(65));
    assert!(unsound(&wordy(64)).is_ok());
    assert_eq!(Reason::new(1, &"é".repeat(40)).text, "é".repeat(32), "a letter is not cut");
    refused(packet(Body::Open(Hello { echo: Stamp(1), ..hello() })), Unsound::Echo);
    let hole = |second| {
        let (second, since) = (SeqNumber(second), SeqNumber(second) - 1);
        packet(Body::Instant(InstantAck { second, since, ..instant() }))
    };
    refused(hole(4), Unsound::NoHole);
    refused(hole(5), Unsound::NoHole);
    refused(hole(6), Unsound::NoHole);
    assert!(unsound(&hole(u32::MAX)).is_ok(), "nothing came before the hole");
    let reversed = InstantAck { since: instant().second + 1, ..instant() };
    refused(packet(Body::Instant(reversed)), Unsound::NoHole);

    // The same in bytes.
    let taken = |packet: &Packet, place, value| damaged(packet, place, value).unwrap_err();
    assert_eq!(taken(&packet(Body::Open(hello())), 13, 1), DecodeError::Unsound(Unsound::Echo));
    assert_eq!(taken(&packet(Body::Instant(instant())), 8, 4), DecodeError::Unsound(Unsound::NoHole));
    for bytes in [&[0x70, 0, 0, 0, 0, 1, 2, 3, 4][..], &[0xd0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0]] {
        let bytes = [bytes, &[0; TAG]].concat();
        assert_eq!(decode(&bytes), Err(DecodeError::Unsound(Unsound::Connection(0))), "{bytes:?}");
    }
}

#[test]
fn lists_are_in_order_and_apart() {
    let refused = |change: fn(&mut Tack), why| {
        let mut tack = tack();
        change(&mut tack);
        let packet = packet(Body::Tack(Arc::new(tack)));
        assert_eq!(encode(&packet, &[], &mut Vec::new()), Err(EncodeError::Unsound(why)), "{packet:?}");
    };
    refused(|tack| tack.acked.reverse(), Unsound::Blocks);
    refused(|tack| tack.unacked.reverse(), Unsound::Blocks);
    refused(|tack| tack.acked[0] = block(21, 20), Unsound::Blocks);
    refused(|tack| tack.acked[0] = block(16, 20), Unsound::Blocks);
    refused(|tack| tack.unacked[0] = block(11, 14), Unsound::Blocks);
    refused(|tack| tack.acked[0] = block(20, 12 + (1 << 31)), Unsound::Blocks);
    refused(|tack| tack.unacked[1] = block(17, 20), Unsound::Both);
    refused(|tack| tack.unacked[1] = block(16, 19), Unsound::Both);
    refused(|tack| tack.unacked[0] = block(12, 30), Unsound::Blocks);
    refused(|tack| (tack.unacked, tack.repeated) = (vec![block(12, 30)], 1), Unsound::Both);
    refused(|tack| tack.repeated = 3, Unsound::Repeated);
    refused(|tack| tack.streams.resize(MAX_LIST + 1, tack.streams[0]), Unsound::LongList);
    // The last byte of the list's last block.
    let late = packet(Body::Tack(Arc::new(tack())));
    assert_eq!(damaged(&late, 39 + 31, 20), Err(DecodeError::Unsound(Unsound::Both)));
    assert_eq!(damaged(&late, 39 + 31, 16), Err(DecodeError::Unsound(Unsound::Blocks)));
}

#[test]
fn lists_hold_as_much_as_their_length_can_say() {
    let mut full = Tack { cumulative: SeqNumber(u32::MAX - 9), ..Tack::default() };
    for nth in 0..MAX_LIST as u32 {
        let (missing, received) = (full.cumulative + 4 * nth, full.cumulative + 4 * nth + 2);
        full.unacked.push(Block { first: missing, last: missing + 1 });
        full.acked.insert(0, Block { first: received, last: received + 1 });
        full.streams.push((StreamId(nth), received));
    }
    let packet = packet(Body::Tack(Arc::new(full)));
    let bytes = encoded(&packet);
    assert_eq!(decode(&bytes), Ok((packet, &[][..])));
    // Lengths that announce bytes that are missing.
    for list in 0..3 {
        let mut bytes = [&[0x40; 1][..], &[1; 8], &[0; 35], &[0; TAG]].concat();
        bytes[9 + 32 + list] = u8::MAX;
        assert!(matches!(decode(&bytes), Err(DecodeError::Misread(_))), "list {list}");
    }
}

#[test]
fn a_hello_of_another_version_can_be_read_and_so_refused() {
    let packet = packet(Body::Open(Hello { version: 0x7777, ..hello() }));
    assert_eq!(decode(&encoded(&packet)), Ok((packet, &[][..])));
}

#[test]
fn content_is_as_long_as_the_packet_says() {
    let mut bytes = b"before".to_vec();
    assert_eq!(encode(&packet(Body::Data(data())), b"four", &mut bytes), Err(EncodeError::Content(4, 3)));
    assert_eq!(encode(&packet(Body::Sync(sync())), b"x", &mut bytes), Err(EncodeError::Content(1, 0)));
    assert_eq!(bytes, b"before", "nothing is left of the failed packets");
}

/// Stands for a cipher: the body becomes unreadable, and the tag depends on all inputs.
struct Toy(u8);

impl Toy {
    fn mix(&self, number: u64, place: usize) -> u8 {
        self.0 ^ (number as u8).wrapping_mul(31) ^ (number >> 32) as u8 ^ place as u8
    }

    fn tag(&self, number: u64, header: &[u8], body: &[u8]) -> Tag {
        let mut tag = [self.mix(number, 0); TAG];
        for (place, byte) in header.iter().chain(body).enumerate() {
            tag[place % TAG] = tag[place % TAG].rotate_left(1) ^ byte;
        }
        tag
    }

    fn turn(&self, number: u64, body: &mut [u8]) {
        body.iter_mut().enumerate().for_each(|(place, byte)| *byte ^= self.mix(number, place));
    }
}

impl Protector for Toy {
    fn seal(&self, number: u64, header: &[u8], body: &mut [u8]) -> Tag {
        self.turn(number, body);
        self.tag(number, header, body)
    }

    fn open(&self, number: u64, header: &[u8], body: &mut [u8], tag: &Tag) -> Result<(), Forged> {
        if self.tag(number, header, body) != *tag {
            return Err(Forged);
        }
        self.turn(number, body);
        Ok(())
    }
}

#[test]
fn a_protector_sees_header_body_and_whole_number() {
    let (toy, number) = (Toy(0x5a), 0x0000_0009_0102_0304);
    for (name, packet, _) in samples() {
        let (content, plain) = (content_of(&packet), encoded(&packet));
        let mut sealed = b"before".to_vec();
        encode_sealed(&packet, &content, number, &toy, &mut sealed).unwrap();
        let sealed = sealed.split_off(6);
        assert_eq!(sealed.len(), plain.len(), "{name}");
        let header = prefix_len(&packet);
        assert_eq!(sealed[..header], plain[..header], "the header stays readable");
        assert!(sealed[header..sealed.len() - TAG] != plain[header..plain.len() - TAG], "{name} can be read");
        let (connection, number_carried, short) = (packet.connection, packet.number, packet.is_short());
        assert_eq!(Prefix::parse(&sealed), Ok(Prefix { connection, number: number_carried, short }));
        assert!((0..header + TAG).all(|len| Prefix::parse(&sealed[..len]).is_err()), "{name}");

        assert_eq!(decode_sealed(&mut sealed.clone(), number, &toy), Ok((packet, &content[..])), "{name}");
        let other = decode_sealed(&mut sealed.clone(), number + (1 << 32), &toy).map(drop);
        assert_eq!(other, Err(DecodeError::Forged(Forged)), "another nonce");
        for place in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[place] ^= 0x10;
            let forged = decode_sealed(&mut damaged, number, &toy).map(drop);
            assert_eq!(forged, Err(DecodeError::Forged(Forged)), "byte {place} of {name}");
        }
    }
    assert!((0..9 + TAG).all(|len| Prefix::parse(&vec![1; len]).is_err()));
    assert!((0..9 + TAG).all(|len| decode_sealed(&mut vec![0; len], 0, &toy).is_err()));
}

fn carried(packet: Packet) -> tacit_packet::Packet {
    tacit_packet::Packet {
        flow: FlowId(7),
        source: HostId(1),
        destination: HostId(2),
        ip: IpHeader { version: IpVersion::V4, ecn: Ecn::Ect0, identification: 0x1234 },
        transport: Transport::Tack(packet),
    }
}

#[test]
fn a_datagram_is_tacks_by_its_port() {
    let packet = carried(packet(Body::Close(CloseCode::Done)));
    let bytes = wire::encode(&packet).unwrap();
    assert_eq!(bytes[20..24], [0x3c, 0xb7, 0x20, 0x21], "flow 7 to 8225");
    assert_eq!(wire::decode(&bytes), Ok(packet.clone()));
    let back = tacit_packet::Packet { source: HostId(2), destination: HostId(1), ..packet };
    assert_eq!(wire::decode(&wire::encode(&back).unwrap()), Ok(back));
    // To the other service it is a datagram. The port is smaller by 3224, the checksum larger.
    let mut elsewhere = bytes;
    elsewhere[22..24].copy_from_slice(&5001u16.to_be_bytes());
    let sum = u16::from_be_bytes([elsewhere[26], elsewhere[27]]);
    elsewhere[26..28].copy_from_slice(&(sum + (8225 - 5001)).to_be_bytes());
    let (other, _) = wire::decode_foreign(&elsewhere).unwrap();
    assert!(matches!(other.transport, Transport::Udp(_)), "{other:?}");
}

#[test]
fn content_stands_where_its_stream_says() {
    let at = |stream, offset| {
        let place = Data { stream: StreamId(stream), offset: SeqNumber(offset), payload_len: 64, ..data() };
        let bytes = wire::encode(&carried(packet(Body::Data(place)))).unwrap();
        wire::decode_foreign(&bytes).unwrap().1.to_vec()
    };
    assert_eq!(at(0, 1000)[24..], at(0, 1024)[..40], "a byte is where it is however it is cut");
    assert_eq!(at(3, u32::MAX - 9)[10..], at(3, 0)[..54], "places wrap");
    assert_ne!(at(0, 1000), at(3, 1000), "each stream has bytes of its own");

    let packet = carried(packet(Body::Data(data())));
    let mut bytes = Vec::new();
    wire::encode_foreign(&packet, b"own", &mut bytes).unwrap();
    assert_eq!(wire::decode_foreign(&bytes), Ok((packet, &b"own"[..])));
    assert_eq!(wire::decode(&bytes), Err(wire::DecodeError::Payload(0)));
}

/// Two ends 10 ms apart, with `loss` of 1000 packets lost in each direction, and every packet encoded and decoded.
/// Returns the kinds of the sent packets, sorted by code.
fn exchange(config: Config, loss: u64) -> Vec<u8> {
    let bytes = 400_000;
    let ends = |local, remote| Ends { flow: FlowId(3), local: HostId(local), remote: HostId(remote) };
    let mut now = Instant::ZERO;
    let mut ends =
        [Connection::connect(config, ends(1, 2), 7, now), Connection::listen(config, ends(2, 1), 8)];
    ends[0].write(bytes);
    let mut flying = [VecDeque::new(), VecDeque::new()];
    let (mut random, mut kinds) = (1u64, BTreeSet::new());
    while ends[1].delivered_bytes() < 2 * bytes {
        for way in 0..2 {
            while let Some(packet) = ends[way].poll_transmit(now) {
                let bytes = wire::encode(&packet).unwrap_or_else(|error| panic!("{packet:?}: {error}"));
                kinds.insert(bytes[28] >> 4);
                let arrived = wire::decode(&bytes).unwrap_or_else(|error| panic!("{packet:?}: {error}"));
                assert_eq!(arrived, packet);
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                if (random >> 33) % 1000 >= loss {
                    flying[way].push_back((now + Duration::from_millis(10), arrived));
                }
            }
            while let Some(event) = ends[way].poll_event() {
                if (way, event) == (0, Event::Connected) {
                    let stream = ends[0].open_stream().unwrap();
                    ends[0].write_stream(stream, bytes);
                    let given_up = ends[0].open_stream().unwrap();
                    ends[0].write_stream(given_up, 10);
                    ends[0].reset_stream(given_up, 7);
                    ends[0].send_datagram(100).unwrap();
                    ends[0].close();
                }
            }
        }
        let arrivals = flying.iter().filter_map(|way| way.front().map(|(at, _)| *at));
        let timers = ends.iter().filter_map(Connection::poll_timeout);
        now = now.max(arrivals.chain(timers).min().expect("it waits for ever"));
        assert!(now < Instant::ZERO + Duration::from_secs(60), "it takes too long");
        for way in 0..2 {
            while flying[way].front().is_some_and(|(at, _)| *at <= now) {
                let (_, packet) = flying[way].pop_front().unwrap();
                ends[1 - way].handle_packet(now, packet);
            }
            ends[way].handle_timeout(now);
        }
    }
    kinds.into_iter().collect()
}

#[test]
fn packets_of_endpoints_round_trip() {
    for (lists, ack_clock) in
        [(Lists::Poor, AckClock::USUAL), (Lists::Rich, AckClock::USUAL), (Lists::Rich, AckClock::PAPER)]
    {
        let config = Config { lists, ack_clock, ..Config::default() };
        exchange(config, 0);
        let mut expected = vec![1, 2, 4, 5, 9, 10, 13];
        // Here TACKs report holes together with other losses.
        expected.retain(|kind| *kind != 5 || lists == Lists::Poor || ack_clock != AckClock::USUAL);
        let kinds = exchange(config, 100);
        assert!(expected.iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
        exchange(Config { mtu: Bytes(9_000), max_mtu: Bytes(9_000), ..config }, 100);
    }
}

#[test]
fn an_aborted_handshake_is_told_on_the_wire() {
    let ends = Ends { flow: FlowId(3), local: HostId(1), remote: HostId(2) };
    let mut end = Connection::connect(Config::default(), ends, 7, Instant::ZERO);
    end.abort();
    let packet = end.poll_transmit(Instant::ZERO).unwrap();
    assert!(matches!(&packet.transport, Transport::Tack(Packet { body: Body::Close(_), .. })), "{packet:?}");
    assert_eq!(wire::decode(&wire::encode(&packet).unwrap()), Ok(packet));
}

/// `TACIT_WRITE_SEEDS=1` writes them. The fuzz target adds the tag.
#[test]
fn the_fuzzer_starts_from_a_packet_of_each_kind() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/tack_decode");
    for (name, packet, _) in samples() {
        let (path, bytes) = (folder.join(name), encoded(&packet));
        let seed = &bytes[..bytes.len() - TAG];
        if env::var_os("TACIT_WRITE_SEEDS").is_some() {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&path, seed).unwrap();
        }
        assert_eq!(fs::read(&path).unwrap_or_default(), seed, "{}", path.display());
    }
}
