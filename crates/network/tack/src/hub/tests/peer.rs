//! Peers above the encryption: a client or a server that has proved its key, and then keeps no rule. Each lie ends its own
//! connection or changes nothing; the other connections of the endpoint go through.

use tacit_packet::tack::Body;
use tacit_packet::tack::packet::{
    Block, Cause, Control, Data, Datagram, Hello, InstantAck, Stamp, Sync, Tack, Token,
};
use tacit_packet::units::SeqNumber;

use super::*;

/// Which end lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Liar {
    Client,
    Server,
}

impl Liar {
    /// The lowest bit of the streams that it opens.
    fn parity(self) -> u32 {
        u32::from(self == Self::Server)
    }
}

/// What a lie does to the connection of the victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Ends,
    Stands,
}

/// Number of the first lie: none of the honest packets before has it.
const FIRST: u32 = 5_000;

/// A connection with a lying end. Streams 0 and 2 are open, and both ends have sent some bytes.
struct Lies {
    net: Net,
    liar: Liar,
    /// The connection at the client, and at the server.
    ends: [u32; 2],
    number: u32,
}

impl Lies {
    fn new(liar: Liar) -> Self {
        let mut net = Net::new();
        let (client, _) = net.begin(10_000);
        net.run(Duration::from_secs(1));
        let server = net.server.accept().expect("a client connected");
        let session = net.server.session(server).unwrap();
        let stream = session.open().unwrap().unwrap();
        assert_eq!(session.write(stream, &payload(10_000)), Ok(Some(10_000)));
        net.run(Duration::from_secs(1));
        Self { net, liar, ends: [client, server], number: FIRST }
    }

    fn send(&mut self, body: Body, content: &[u8]) {
        let net = &mut self.net;
        let (liar, victim, from) = match self.liar {
            Liar::Client => (net.client.session(self.ends[0]), &mut net.server, net.client_at),
            Liar::Server => (net.server.session(self.ends[1]), &mut net.client, server_address()),
        };
        let mut bytes = liar.unwrap().sealed(self.number, body, content);
        self.number += 1;
        victim.handle(net.now, from, Ecn::NotEct, &mut bytes);
    }

    fn victim(&mut self) -> &mut Session {
        match self.liar {
            Liar::Client => self.net.server.session(self.ends[1]).unwrap(),
            Liar::Server => self.net.client.session(self.ends[0]).unwrap(),
        }
    }

    /// The bytes of each datagram that the victim sends now. None of them arrives: the honest half of the liar would not take them.
    fn answers(&mut self) -> Vec<usize> {
        let net = &mut self.net;
        let victim = if self.liar == Liar::Client { &mut net.server } else { &mut net.client };
        let (mut bytes, mut lens) = (Vec::new(), Vec::new());
        while victim.poll_transmit(net.now, &mut bytes).is_some() {
            lens.push(bytes.len());
            bytes.clear();
        }
        lens
    }

    fn outcome(&mut self) -> Outcome {
        match self.victim().alive() {
            Ok(()) => Outcome::Stands,
            Err(ConnectionError::Reset) => Outcome::Ends,
            Err(other) => panic!("{other}"),
        }
    }

    /// Another client is served, or this client by another server.
    fn others_go_through(&mut self) {
        let net = &mut self.net;
        if self.liar == Liar::Server {
            net.server = server(&Config::default(), &net.server_identity);
        }
        while net.server.accept().is_some() {}
        net.begin(5_000);
        net.run(Duration::from_secs(2));
        assert!(net.read() == (payload(5_000), true));
    }
}

fn data(stream: u32, offset: u32, payload_len: u16, fin: bool) -> Body {
    let (stream, offset) = (StreamId(stream), SeqNumber(offset));
    Body::Data(Data { stream, offset, payload_len, fin, ..Data::default() })
}

fn tack(tack: Tack) -> Body {
    Body::Tack(Arc::new(Tack { delay_us: u32::MAX, ..tack }))
}

fn control(control: Control) -> Body {
    Body::Control(control)
}

/// Each end in turn does what `lie` says, and then others go through.
fn with_each_liar(lie: impl Fn(&mut Lies)) {
    for liar in [Liar::Client, Liar::Server] {
        let mut lies = Lies::new(liar);
        lie(&mut lies);
        lies.net.in_flight.clear();
        lies.others_go_through();
    }
}

/// The lies, each with its name. `parity` is the lowest bit of the streams that the liar opens.
fn lies(parity: u32) -> Vec<(&'static str, Outcome, Vec<Body>)> {
    use Outcome::{Ends, Stands};
    let theirs = 1 - parity;
    let never = SeqNumber(1_000_000);
    let block = Block { first: never, last: never };
    let instant = |largest, cumulative| {
        let (second, since, window) = (SeqNumber(2), SeqNumber(2), SeqNumber(0));
        Body::Instant(InstantAck { cause: Cause::Loss, largest, second, since, cumulative, window })
    };
    let (code, end) = (1, SeqNumber(0));
    let stream = StreamId;
    vec![
        ("all of what was never sent", Ends, vec![tack(Tack { cumulative: never, ..Tack::default() })]),
        ("a block never sent", Ends, vec![tack(Tack { acked: vec![block], ..Tack::default() })]),
        ("a hole never sent", Ends, vec![tack(Tack { unacked: vec![block], ..Tack::default() })]),
        ("bytes never sent", Ends, vec![tack(Tack { received: SeqNumber(1 << 30), ..Tack::default() })]),
        ("an instant ACK never sent", Ends, vec![instant(never, SeqNumber(0))]),
        ("a stream that the victim did not open", Ends, vec![data(theirs + 200, 0, 1, false)]),
        ("the end of one", Ends, vec![control(Control::Reset { stream: stream(theirs + 200), code, end })]),
        ("a stop of one", Ends, vec![control(Control::Stop { stream: stream(theirs + 200), code })]),
        ("one that is held", Ends, vec![control(Control::Held { stream: stream(theirs + 200) })]),
        ("more streams than allowed", Ends, vec![data(parity + 1_000_000, 0, 1, false)]),
        ("more bytes than allowed", Ends, vec![data(parity + 20, 1 << 29, 1, false)]),
        ("bytes behind the end", Ends, vec![data(parity + 20, 0, 2, true), data(parity + 20, 2, 1, false)]),
        ("a second end", Ends, vec![data(parity + 20, 0, 2, true), data(parity + 20, 0, 1, true)]),
        ("a limit of too many streams", Ends, vec![control(Control::Streams { limit: u32::MAX })]),
        ("limits of streams that are not there", Stands, {
            let streams = (0..200).map(|id| (stream(1 + 2 * id), never)).collect();
            vec![tack(Tack { streams, ..Tack::default() })]
        }),
        ("a handshake within the connection", Stands, {
            let hello = Hello { version: 4, source: ConnectionId(7), max_payload: 1200, ..Hello::default() };
            vec![Body::Answer(hello)]
        }),
        ("an answer to no challenge", Stands, vec![Body::PathResponse(Token::default())]),
        ("no bytes", Stands, vec![data(parity + 20, 0, 0, false)]),
        ("a path without delay, and without floor", Stands, {
            let floor = SeqNumber(u32::MAX / 3);
            vec![Body::Sync(Sync {
                rtt_min_us: 1,
                floor,
                blocks: 255,
                startup: true,
                ack_interval_ms: u16::MAX,
            })]
        }),
        (
            "wild rates",
            Stands,
            vec![tack(Tack {
                rate_kbps: u32::MAX,
                loss: u16::MAX,
                base_loss: u8::MAX,
                burst: u16::MAX,
                ce: u16::MAX,
                left: Stamp(u32::MAX),
                window: SeqNumber(u32::MAX / 2),
                ..Tack::default()
            })],
        ),
    ]
}

#[test]
fn every_lie_ends_its_own_connection_or_changes_nothing() {
    for liar in [Liar::Client, Liar::Server] {
        for (name, wanted, bodies) in lies(liar.parity()) {
            let mut lies = Lies::new(liar);
            for body in bodies {
                let len = match &body {
                    Body::Data(data) => data.payload_len.into(),
                    _ => 0,
                };
                lies.send(body, &payload(len));
            }
            assert_eq!(lies.outcome(), wanted, "{liar:?}: {name}");
            lies.net.run(Duration::from_secs(2));
            lies.others_go_through();
        }
    }
}

/// quic-go, CVE-2023-49295: an end that answers more slowly than it is asked.
#[test]
fn answers_that_cannot_leave_take_no_memory() {
    with_each_liar(|lies| {
        for round in 0..2_000u32 {
            lies.send(Body::PathChallenge(Token { token: [round as u8; 8], padding: 1_000 }), &[]);
        }
        assert_eq!(lies.outcome(), Outcome::Stands);
        let waiting = lies.victim().waiting_bytes();
        assert!(waiting < 100_000, "{:?}: {waiting} bytes", lies.liar);
        lies.net.run(Duration::from_secs(2));
    });
}

/// Answers are no larger than a packet, and a burst of questions gets as few as an honest sender needs.
#[test]
fn a_burst_of_questions_gets_six_answers() {
    with_each_liar(|lies| {
        let (liar, parity) = (lies.liar, lies.liar.parity());
        // Many holes and many streams that are held: the longest answers.
        for place in 0..100 {
            lies.number += 1;
            lies.send(control(Control::Held { stream: StreamId(parity + 2 + 2 * place) }), &[]);
        }
        for _ in 0..1_000 {
            lies.number += 1;
            lies.send(data(parity + 2, 1, 1, false), &[1]);
        }
        lies.answers();
        for burst in [1, 64, 1_000] {
            for _ in 0..burst {
                lies.send(Body::Probe { padding: 0 }, &[]);
            }
            let answers = lies.answers();
            assert!((1..=burst.min(6)).contains(&answers.len()), "{liar:?}: {burst} probes: {answers:?}");
            assert!(answers.iter().all(|len| *len <= 1472), "{liar:?}: {answers:?}");
        }
    });
}

/// Bytes behind a gap on every stream that may be open; unread datagrams; and endless questions.
#[test]
fn a_peer_that_floods_costs_what_the_limits_say() {
    with_each_liar(|lies| {
        let (liar, parity) = (lies.liar, lies.liar.parity());
        for round in 0..20_000u32 {
            let place = round % 100;
            let body = match round % 5 {
                0 => data(parity + 2 + 2 * place, 1 + 2_000 * (round / 500), 1_000, false),
                1 => Body::Datagram(Datagram { payload_len: 1_000, ..Datagram::default() }),
                2 => Body::PathChallenge(Token { token: [round as u8; 8], padding: 0 }),
                3 => control(Control::Held { stream: StreamId(parity + 2 + 2 * place) }),
                _ => Body::Probe { padding: 1_000 },
            };
            let len = if round % 5 < 2 { 1_000 } else { 0 };
            lies.send(body, &payload(len));
            if lies.victim().alive().is_err() {
                break;
            }
        }
        // What the streams may hold before a reader comes: the window of a connection, and its datagrams.
        let held = lies.victim().share().held + lies.victim().share().borrowed;
        assert!(held < 64 << 20, "{liar:?}: {held} bytes");
        let answers: usize = lies.answers().into_iter().sum();
        assert!(
            answers < 1_000_000,
            "{liar:?}: {answers} bytes are waiting for a peer that asks without end"
        );
    });
}
