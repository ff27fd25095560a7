//! The handshake: Noise XX (revision 34, section 7.5) in three datagrams, each of one packet.
//!
//! The core's opening packets travel inside the Noise messages: the [`Open`](tacit_packet::tack::Body::Open) unencrypted
//! in the first, the [`Answer`](tacit_packet::tack::Body::Answer) encrypted in the second. The third message
//! authenticates the client; the server has authenticated itself in the second. `docs/references/tack-wire.md`
//! specifies the datagrams.

use snow::{Builder, HandshakeState};
use tacit_packet::tack::packet::{ConnectionId, Packet, Stamp};
use tacit_packet::tack::{Body, wire};
use zeroize::{Zeroize, Zeroizing};

use crate::datagram::{addressed, datagram, kind, take};
use crate::identity::{Identity, PublicKey};
use crate::reset::ResetToken;
use crate::seal::{EPOCH, Opener, Sealer};
use crate::suite::Suite;
use crate::token::{self, Token};

/// Version of the handshake and of the packets after it. Version 1 had no reset token, version 2 no short data, version 3 no
/// share of losses without a queue.
const VERSION: u8 = 4;

/// Body of a [`kind::BUSY`] datagram from a server that speaks another version.
pub(crate) const OTHER_VERSION: u8 = 3;

/// Bytes of an initiation: the least that every path carries (RFC 9000 section 14.1). It is also more than a third of
/// what a server sends before it has validated the client's address.
pub(crate) const INITIATION_LEN: usize = 1200;

/// Bytes of the initiation that leaves beside one of full length once several got no answer: what is left of an IP packet of
/// 576 bytes, which every host receives (RFC 1122 section 3.3.3). A server answers it with a Retry.
pub(crate) const SHORT_INITIATION_LEN: usize = 548;

/// Repetitions after which a client tries short initiations, too. Ours: the path lost two of full length, or carries none.
const SHORT_FROM: u8 = 2;

/// Bytes of the ephemeral key at the start of a Noise XX message.
const EPHEMERAL: usize = 32;

/// Most Retry datagrams that one attempt follows: the server's, and forged ones. Ours.
const MAX_RETRIES: u8 = 8;

/// Most bytes of a Noise message: keys, tags and an opening packet. Ours.
const MAX_NOISE: usize = 512;

/// The prologue, which both ends hash first, so that an attacker cannot make them use another version or suite.
fn prologue(suite: Suite, client: ConnectionId) -> [u8; 16] {
    let mut prologue = *b"tacit-tack\0\0\0\0\0\0";
    prologue[10] = VERSION;
    prologue[11] = suite.code();
    prologue[12..].copy_from_slice(&client.0.to_be_bytes());
    prologue
}

/// A client's first datagram, as a server reads it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Initiation<'a> {
    pub client: ConnectionId,
    suite: Suite,
    pub token: Option<Token>,
    /// It is shorter than [`INITIATION_LEN`]: it does not pay for the server's answers, and the path may carry no longer ones.
    pub is_short: bool,
    noise: &'a [u8],
}

impl<'a> Initiation<'a> {
    /// Parses an initiation; `None` if the datagram is something else or too short.
    pub fn parse(datagram: &'a [u8]) -> Option<Self> {
        if datagram.len() < SHORT_INITIATION_LEN {
            return None;
        }
        let is_short = datagram.len() < INITIATION_LEN;
        let mut rest = datagram.strip_prefix(&[kind::INITIATION])?;
        let client = ConnectionId(u32::from_be_bytes(take(&mut rest)?));
        let [version, suite, token_len] = take(&mut rest)?;
        let suite = Suite::from_code(suite).filter(|_| version == VERSION && client.0 != 0)?;
        let token = match usize::from(token_len) {
            0 => None,
            token::LEN => Some(Token(take(&mut rest)?)),
            _ => return None,
        };
        let len = usize::from(u16::from_be_bytes(take(&mut rest)?));
        let noise = rest.get(..len).filter(|noise| (EPHEMERAL..=MAX_NOISE).contains(&noise.len()))?;
        Some(Self { client, suite, token, is_short, noise })
    }

    /// The client's connection ID, if the datagram is an initiation of another version.
    pub fn client_of_other_version(datagram: &[u8]) -> Option<ConnectionId> {
        let (kind, client, rest) = addressed(datagram).filter(|_| datagram.len() >= SHORT_INITIATION_LEN)?;
        let is_other = kind == kind::INITIATION && rest.first() != Some(&VERSION);
        (is_other && client.0 != 0).then_some(client)
    }

    /// All that the handshake depends on, which distinguishes the attempts of a client: its repetitions are equal. Only
    /// the ephemeral key would not do, as any host can send it with another opening packet or suite.
    pub fn transcript(&self) -> Vec<u8> {
        [&[self.suite.code()], self.noise].concat()
    }
}

/// Keys and identities that result from the handshake.
pub(crate) struct Keys {
    pub sealer: Sealer,
    pub opener: Opener,
    pub peer: PublicKey,
}

impl Keys {
    fn from_handshake(mut noise: HandshakeState, suite: Suite) -> Option<Self> {
        let peer = PublicKey::from_slice(noise.get_remote_static()?)?;
        let (mut first, mut second) = noise.dangerously_get_raw_split();
        let (to_server, to_client) = (Zeroizing::new(first), Zeroizing::new(second));
        first.zeroize();
        second.zeroize();
        let (send, receive) =
            if noise.is_initiator() { (to_server, to_client) } else { (to_client, to_server) };
        Some(Self {
            sealer: Sealer::new(suite, &send, EPOCH),
            opener: Opener::new(suite, &receive, EPOCH),
            peer,
        })
    }
}

/// Encodes an opening packet of the core.
fn in_bytes(packet: &Packet) -> Vec<u8> {
    let mut bytes = Vec::new();
    wire::encode(packet, &[], &mut bytes).expect("an opening packet of the core has a form");
    bytes
}

fn write(noise: &mut HandshakeState, payload: &[u8]) -> Vec<u8> {
    let mut message = vec![0; MAX_NOISE];
    let len = noise.write_message(payload, &mut message).expect("it is our turn, and there is room");
    message.truncate(len);
    message
}

fn read(noise: &mut HandshakeState, message: &[u8]) -> Option<Vec<u8>> {
    let mut payload = vec![0; MAX_NOISE];
    let len = noise.read_message(message, &mut payload).ok()?;
    payload.truncate(len);
    Some(payload)
}

fn begin<'a>(suite: Suite, prologue: &'a [u8], identity: &'a Identity) -> Builder<'a> {
    let builder = Builder::new(suite.params()).prologue(prologue);
    let builder = builder.and_then(|builder| builder.local_private_key(identity.private()));
    builder.expect("both are said once")
}

/// The client's side, until the server has answered.
pub(crate) struct Initiator {
    noise: HandshakeState,
    /// Inputs from which the state is rebuilt after another host than the server has answered.
    identity: Identity,
    ephemeral: Zeroizing<[u8; EPHEMERAL]>,
    open: Vec<u8>,
    retries: u8,
    suite: Suite,
    client: ConnectionId,
    message: Vec<u8>,
    token: Option<Token>,
    /// How often the datagram was sent again. After the first time it is unknown which copy was answered.
    repeated: u8,
}

impl Initiator {
    /// Starts a handshake with the core's `open`.
    pub fn new(identity: &Identity, client: ConnectionId, open: &Packet) -> Self {
        let suite = Suite::fastest();
        let mut ephemeral = Zeroizing::new([0; EPHEMERAL]);
        getrandom::fill(ephemeral.as_mut_slice()).expect("the system has random numbers");
        let open = in_bytes(open);
        let (noise, message) = Self::first(suite, client, identity, &ephemeral, &open);
        let identity = identity.clone();
        Self {
            noise,
            identity,
            ephemeral,
            open,
            retries: 0,
            suite,
            client,
            message,
            token: None,
            repeated: 0,
        }
    }

    /// The state after the first message, and that message. Equal inputs give the same result.
    fn first(
        suite: Suite,
        client: ConnectionId,
        identity: &Identity,
        ephemeral: &[u8; EPHEMERAL],
        open: &[u8],
    ) -> (HandshakeState, Vec<u8>) {
        let prologue = prologue(suite, client);
        // The name warns that an ephemeral key must not be used for two messages. Here it is used for one message,
        // which may be sent again.
        let builder = begin(suite, &prologue, identity).fixed_ephemeral_key_for_testing_only(ephemeral);
        let mut noise = builder.build_initiator().expect("XX needs no key of the server");
        let message = write(&mut noise, open);
        (noise, message)
    }

    /// Whether `key` is this client's own.
    pub fn is_own(&self, key: &PublicKey) -> bool {
        self.identity.public_key() == *key
    }

    /// Discards an answer that was not the server's: restores the state from before it.
    pub fn disregard(&mut self) {
        (self.noise, _) = Self::first(self.suite, self.client, &self.identity, &self.ephemeral, &self.open);
    }

    /// The datagrams for a retransmission, because no answer arrived.
    pub fn repeat(&mut self) -> Vec<Vec<u8>> {
        self.repeated = self.repeated.saturating_add(1);
        self.datagrams()
    }

    /// Whether short initiations leave, too: so it is unknown whether the path carries those of full length.
    pub fn tries_short(&self) -> bool {
        self.repeated >= SHORT_FROM
    }

    /// The datagrams to send. The short one is first: in one batch behind a longer one, a router that cuts no batches drops both.
    pub fn datagrams(&self) -> Vec<Vec<u8>> {
        let short = self.tries_short().then_some(SHORT_INITIATION_LEN);
        short.into_iter().chain([INITIATION_LEN]).map(|len| self.datagram(len)).collect()
    }

    fn datagram(&self, len: usize) -> Vec<u8> {
        let token = self.token.as_ref().map_or(&[][..], |token| &token.0);
        let lens = [VERSION, self.suite.code(), token.len() as u8];
        let noise_len = (self.message.len() as u16).to_be_bytes();
        let body = [&lens, token, &noise_len, &self.message].concat();
        let mut datagram = datagram(kind::INITIATION, self.client, &body);
        datagram.resize(len, 0);
        datagram
    }

    /// Handles a Retry: the server asks to try again with the token in `body`. Any host can forge a Retry, so several
    /// are followed; one of them is the server's.
    pub fn on_retry(&mut self, body: &[u8]) -> Option<Vec<Vec<u8>>> {
        let token = Some(Token(body.try_into().ok()?));
        if self.retries >= MAX_RETRIES || token == self.token {
            return None;
        }
        self.retries += 1;
        self.token = token;
        Some(self.repeat())
    }

    /// Reads the server's response: its key, its opening packet, and the reset token of the connection. `None` if the
    /// datagram is not the server's.
    pub fn on_response(&mut self, body: &[u8]) -> Option<(PublicKey, Packet, ResetToken)> {
        // A failed message changes only the remote ephemeral key in the state, which the next message replaces.
        let payload = read(&mut self.noise, body)?;
        let (reset, packet) = payload.split_first_chunk()?;
        let (mut packet, _) = wire::decode(packet).ok()?;
        let Body::Answer(hello) = &mut packet.body else { return None };
        if self.repeated > 0 {
            // All copies carry the time of the first transmission, so an answer gives no round-trip time (RFC 6298
            // section 3). The core takes no sample from an echo that lies in the future.
            hello.echo = Stamp(hello.echo.0.wrapping_add(1 << 30));
        }
        let peer = PublicKey::from_slice(self.noise.get_remote_static()?)?;
        (packet.connection == self.client).then_some((peer, packet, ResetToken(*reset)))
    }

    /// The last message, without its datagram's header, and the keys.
    pub fn finish(mut self) -> Option<(Vec<u8>, Keys)> {
        let message = write(&mut self.noise, &[]);
        Some((message, Keys::from_handshake(self.noise, self.suite)?))
    }
}

/// The server's side, until the client is authenticated.
pub(crate) struct Responder {
    noise: HandshakeState,
    suite: Suite,
}

impl Responder {
    /// Reads the first message, and returns the core's packet in it.
    pub fn new(identity: &Identity, initiation: &Initiation<'_>) -> Option<(Self, Packet)> {
        let suite = initiation.suite;
        let prologue = prologue(suite, initiation.client);
        let mut noise =
            begin(suite, &prologue, identity).build_responder().expect("XX needs no key of the client");
        let payload = read(&mut noise, initiation.noise)?;
        let (packet, _) = wire::decode(&payload).ok()?;
        let opens = matches!(&packet.body, Body::Open(hello) if hello.source == initiation.client);
        opens.then_some((Self { noise, suite }, packet))
    }

    /// The second message, with the core's `answer` and the `reset` token, which can later prove that the server has
    /// forgotten the connection.
    pub fn respond(&mut self, answer: &Packet, reset: &ResetToken) -> Vec<u8> {
        write(&mut self.noise, &[&reset.0[..], &in_bytes(answer)].concat())
    }

    /// Reads the third message. On success the client's key is known; otherwise returns false and changes nothing.
    pub fn on_finish(&mut self, body: &[u8]) -> bool {
        read(&mut self.noise, body).is_some() && self.noise.is_handshake_finished()
    }

    /// The keys after the handshake is [finished](Self::on_finish).
    pub fn keys(self) -> Option<Keys> {
        Keys::from_handshake(self.noise, self.suite)
    }
}
