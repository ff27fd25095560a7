//! One end and a script that plays its peer.

use tacit_packet::endpoint::Event;
use tacit_packet::tack::packet::{self, Body, ConnectionId, Data, Hello, Stamp, StreamId, Sync, Tack};
use tacit_packet::units::{Instant, SeqNumber};
use tacit_packet::{Ecn, Endpoint, IpHeader, Packet, Transport};
use tacit_tack_proto::{AckClock, Config, Connection};

use crate::joined::ends;
use crate::ms;

/// The instant `millis` after the start.
pub fn at_ms(millis: u64) -> Instant {
    Instant::ZERO + ms(millis)
}

/// Bytes of data in a full packet of 1500 to a server, or to a client with another connection.
pub const FULL: u16 = 1443;

/// A connection, and the state its peer needs to talk to it.
pub struct Script {
    pub end: Connection,
    /// How the scripted peer wants to be addressed.
    pub peer: ConnectionId,
    /// How the connection does.
    local: ConnectionId,
    /// Its clock at 0 ms.
    clock: Stamp,
    /// The number of the next packet of the peer.
    pub number: u32,
}

impl Script {
    /// A server that waits.
    pub fn listening(config: Config) -> Self {
        let [_, remote] = ends();
        let end = Connection::listen(config, remote, 8);
        Self { end, peer: ConnectionId(77), local: ConnectionId(0), clock: Stamp(0), number: 0 }
    }

    /// A server that has answered at 0 ms a hello with huge windows, and a client's first packet, number 1, at
    /// 10 ms. The next of the peer is number 2.
    pub fn established(config: Config) -> Self {
        Self::with_stream_window(config, 1 << 30)
    }

    /// The same, where each stream may carry `stream_window` bytes.
    pub fn with_stream_window(config: Config, stream_window: u32) -> Self {
        let mut script = Self::listening(config);
        // The peer wishes the same as this end.
        let (beta, every, min_interval_ms) = match config.ack_clock {
            AckClock::Tack { beta, every, min_interval } => {
                (beta, every, (min_interval.as_micros() / 1000) as u8)
            }
            _ => (4, 2, 0),
        };
        let hello = Hello {
            version: Hello::VERSION,
            source: script.peer,
            window: 1 << 30,
            stream_window,
            streams: 8,
            max_payload: 1472,
            beta,
            every,
            min_interval_ms,
            ..Hello::default()
        };
        script.give(at_ms(0), Body::Open(hello));
        let answer = script.takes(at_ms(0));
        let [Body::Answer(answer)] = answer[..] else { panic!("{answer:?}") };
        (script.local, script.clock) = (answer.source, answer.departed);
        script.give(at_ms(10), Body::Probe { padding: 0 });
        let acks = script.takes(at_ms(10));
        assert!(matches!(acks[..], [Body::Tack(_)]), "{acks:?}");
        assert_eq!(script.end.poll_event(), Some(Event::Connected));
        script
    }

    /// The peer's next packet arrives at `now`.
    pub fn give(&mut self, now: Instant, body: Body) {
        self.give_number(now, self.number, body);
    }

    /// The peer's packet `number` arrives at `now`; those after it follow.
    pub fn give_number(&mut self, now: Instant, number: u32, body: Body) {
        self.number = number + 1;
        let [local, remote] = ends();
        let packet = packet::Packet { connection: self.local, number: SeqNumber(number), body };
        self.end.handle_packet(
            now,
            Packet {
                flow: local.flow,
                source: local.local,
                destination: remote.local,
                ip: IpHeader { ecn: Ecn::NotEct, ..IpHeader::default() },
                transport: Transport::Tack(packet),
            },
        );
    }

    /// A full data packet `number` with the bytes of place `place` arrives at `now`, 5 ms after it left.
    pub fn data(&mut self, now: Instant, number: u32, place: u32, sync: Option<Sync>) {
        let data = Data {
            stream: StreamId(0),
            offset: SeqNumber(place * u32::from(FULL)),
            payload_len: FULL,
            departed: Stamp((now.as_nanos() / 1000) as u32 - 5_000),
            sync,
            ..Data::default()
        };
        self.give_number(now, number, Body::Data(data));
    }

    /// Timers that are due at `now` fire.
    pub fn end_timeout(&mut self, now: u64) {
        self.end.handle_timeout(at_ms(now));
    }

    /// Packets that the connection sends at `now`.
    pub fn takes(&mut self, now: Instant) -> Vec<Body> {
        self.end.handle_timeout(now);
        self.numbered(now).into_iter().map(|(_, body)| body).collect()
    }

    /// Packets that the connection sends at `now`, with the numbers.
    pub fn numbered(&mut self, now: Instant) -> Vec<(u32, Body)> {
        let packets = std::iter::from_fn(|| self.end.poll_transmit(now));
        packets
            .map(|packet| match packet.transport {
                Transport::Tack(packet) => (packet.number.0, packet.body),
                other => panic!("{other:?} is no TACK packet"),
            })
            .collect()
    }

    /// The connection's clock at `now`, by the stamp of the answer that it made at 0 ms.
    pub fn stamp_at(&self, now: Instant) -> Stamp {
        Stamp(self.clock.0.wrapping_add((now.as_nanos() / 1000) as u32))
    }

    /// Events that the connection has told.
    pub fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.end.poll_event()).collect()
    }
}

/// A steady path of `rtt_ms`, past its start-up.
pub fn steady(rtt_ms: u32) -> Option<Sync> {
    Some(Sync { rtt_min_us: rtt_ms * 1000, floor: SeqNumber(0), blocks: 4, ..Sync::default() })
}

/// The only TACK among `bodies`.
#[track_caller]
pub fn only_tack(bodies: &[Body]) -> Tack {
    match bodies {
        [Body::Tack(tack)] => Tack::clone(tack),
        other => panic!("one TACK was expected, not {other:?}"),
    }
}
