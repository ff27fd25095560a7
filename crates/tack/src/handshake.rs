//! The handshake: Noise XX (revision 34, section 7.5) in three datagrams, each of one packet.
//!
//! The core's opening packets travel inside the Noise messages: the [`Open`](tacit_proto::tack::Body::Open) in the clear in the
//! first, the [`Answer`](tacit_proto::tack::Body::Answer) encrypted in the second. The third authenticates the client to a server
//! that has authenticated itself. `docs/references/tack-wire.md` lays the datagrams out.

use snow::{Builder, HandshakeState};
use tacit_proto::tack::packet::{ConnectionId, Packet, Stamp};
use tacit_proto::tack::{Body, wire};
use zeroize::{Zeroize, Zeroizing};

use crate::datagram::{addressed, datagram, kind, take};
use crate::identity::{Identity, PublicKey};
use crate::reset::ResetToken;
use crate::seal::{EPOCH, Opener, Sealer};
use crate::suite::Suite;
use crate::token::{self, Token};

/// Version of the handshake and of the packets after it. The first had no token for resets, the second no short data.
const VERSION: u8 = 4;

/// The byte of a [`kind::BUSY`] that says that the server speaks another version.
pub(crate) const OTHER_VERSION: u8 = 3;

/// Bytes of an initiation: the least that a path carries (RFC 9000 section 14.1), and more than a third of a server's answers
/// before it has validated the client's address.
pub(crate) const INITIATION_LEN: usize = 1200;

/// Bytes of an ephemeral key, with which a Noise XX message begins.
const EPHEMERAL: usize = 32;

/// Retries that one attempt follows at most: the server's own, and those that others forge. Ours.
const MAX_RETRIES: u8 = 8;

/// Bytes of a handshake's Noise message at most: keys, tags and an opening packet. Ours.
const MAX_NOISE: usize = 512;

/// The prologue, which both ends hash before anything else, so that neither can be talked into another version or suite.
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
    noise: &'a [u8],
}

impl<'a> Initiation<'a> {
    /// `None` where the datagram is something else, or too short.
    pub fn of(datagram: &'a [u8]) -> Option<Self> {
        if datagram.len() < INITIATION_LEN {
            return None;
        }
        let mut rest = datagram.strip_prefix(&[kind::INITIATION])?;
        let client = ConnectionId(u32::from_be_bytes(take(&mut rest)?));
        let [version, suite, token_len] = take(&mut rest)?;
        let suite = Suite::of(suite).filter(|_| version == VERSION && client.0 != 0)?;
        let token = match usize::from(token_len) {
            0 => None,
            token::LEN => Some(Token(take(&mut rest)?)),
            _ => return None,
        };
        let len = usize::from(u16::from_be_bytes(take(&mut rest)?));
        let noise = rest.get(..len).filter(|noise| (EPHEMERAL..=MAX_NOISE).contains(&noise.len()))?;
        Some(Self { client, suite, token, noise })
    }

    /// The client's number, where the datagram is that of a client of another version.
    pub fn of_other_version(datagram: &[u8]) -> Option<ConnectionId> {
        let (kind, client, rest) = addressed(datagram).filter(|_| datagram.len() >= INITIATION_LEN)?;
        let is_other = kind == kind::INITIATION && rest.first() != Some(&VERSION);
        (is_other && client.0 != 0).then_some(client)
    }

    /// Ephemeral key, which distinguishes one attempt of a client from another.
    pub fn ephemeral(&self) -> [u8; EPHEMERAL] {
        let mut key = [0; EPHEMERAL];
        key.copy_from_slice(&self.noise[..EPHEMERAL]);
        key
    }
}

/// Keys and identities that both ends have when the handshake is over.
pub(crate) struct Keys {
    pub sealer: Sealer,
    pub opener: Opener,
    pub peer: PublicKey,
}

impl Keys {
    fn of(mut noise: HandshakeState, suite: Suite) -> Option<Self> {
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

/// An opening packet of the core, in bytes.
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
    /// Inputs to make the state anew when another host than the server answered.
    identity: Identity,
    ephemeral: Zeroizing<[u8; EPHEMERAL]>,
    open: Vec<u8>,
    retries: u8,
    suite: Suite,
    client: ConnectionId,
    message: Vec<u8>,
    token: Option<Token>,
    /// It was sent more than once, so that it is unknown which of them was answered.
    repeated: bool,
}

impl Initiator {
    /// Begins with the core's `open`.
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
            repeated: false,
        }
    }

    /// The state after the first message, and that message: the same whenever it is made of the same.
    fn first(
        suite: Suite,
        client: ConnectionId,
        identity: &Identity,
        ephemeral: &[u8; EPHEMERAL],
        open: &[u8],
    ) -> (HandshakeState, Vec<u8>) {
        let prologue = prologue(suite, client);
        // By this name because an ephemeral key must not be used for two messages. It is not: the message is one.
        let builder = begin(suite, &prologue, identity).fixed_ephemeral_key_for_testing_only(ephemeral);
        let mut noise = builder.build_initiator().expect("XX needs no key of the server");
        let message = write(&mut noise, open);
        (noise, message)
    }

    /// The answer was not the server's: the next one is read as if it had not come.
    pub fn disregard(&mut self) {
        (self.noise, _) = Self::first(self.suite, self.client, &self.identity, &self.ephemeral, &self.open);
    }

    /// The datagram once more, for no answer came.
    pub fn repeat(&mut self) -> Vec<u8> {
        self.repeated = true;
        self.datagram()
    }

    /// The datagram to send.
    pub fn datagram(&self) -> Vec<u8> {
        let token = self.token.as_ref().map_or(&[][..], |token| &token.0);
        let lens = [VERSION, self.suite.code(), token.len() as u8];
        let noise_len = (self.message.len() as u16).to_be_bytes();
        let body = [&lens, token, &noise_len, &self.message].concat();
        let mut datagram = datagram(kind::INITIATION, self.client, &body);
        datagram.resize(INITIATION_LEN, 0);
        datagram
    }

    /// A Retry: the server asks to try again with the token in `body`. A few may ask, for any host could, and one of them is the server.
    pub fn on_retry(&mut self, body: &[u8]) -> Option<Vec<u8>> {
        let token = Some(Token(body.try_into().ok()?));
        if self.retries >= MAX_RETRIES || token == self.token {
            return None;
        }
        self.retries += 1;
        self.token = token;
        Some(self.repeat())
    }

    /// Reads the server's response: its key, its opening packet, and the reset token of the connection. `None` where the datagram is
    /// not the server's.
    pub fn on_response(&mut self, body: &[u8]) -> Option<(PublicKey, Packet, ResetToken)> {
        // Of a message that fails the state keeps nothing but an ephemeral key, which the next one replaces.
        let payload = read(&mut self.noise, body)?;
        let (reset, packet) = payload.split_first_chunk()?;
        let (mut packet, _) = wire::decode(packet).ok()?;
        let Body::Answer(hello) = &mut packet.body else { return None };
        if self.repeated {
            // All that were sent say when the first left, so they measure no round trip (RFC 6298 section 3). The core
            // takes no sample from an echo of the future.
            hello.echo = Stamp(hello.echo.0.wrapping_add(1 << 30));
        }
        let peer = PublicKey::from_slice(self.noise.get_remote_static()?)?;
        (packet.connection == self.client).then_some((peer, packet, ResetToken(*reset)))
    }

    /// The last message, behind its datagram's head, and the keys.
    pub fn finish(mut self) -> Option<(Vec<u8>, Keys)> {
        let message = write(&mut self.noise, &[]);
        Some((message, Keys::of(self.noise, self.suite)?))
    }
}

/// The server's side, until the client is authenticated.
pub(crate) struct Responder {
    noise: HandshakeState,
    suite: Suite,
}

impl Responder {
    /// Takes in the first message, and gives the core's packet in it.
    pub fn new(identity: &Identity, initiation: &Initiation<'_>) -> Option<(Self, Packet)> {
        let suite = initiation.suite;
        let prologue = prologue(suite, initiation.client);
        let mut noise =
            begin(suite, &prologue, identity).build_responder().expect("XX needs no key of the client");
        let payload = read(&mut noise, initiation.noise)?;
        let (packet, _) = wire::decode(&payload).ok()?;
        let opens = matches!(&packet.body, Body::Open(hello) if hello.own == initiation.client);
        opens.then_some((Self { noise, suite }, packet))
    }

    /// The second message, which carries the core's `answer`, and the `reset` that says some day that the connection is forgotten.
    pub fn respond(&mut self, answer: &Packet, reset: &ResetToken) -> Vec<u8> {
        write(&mut self.noise, &[&reset.0[..], &in_bytes(answer)].concat())
    }

    /// Takes in the third message. On success the keys have the client's key; where it fails, false, and nothing has changed.
    pub fn on_finish(&mut self, body: &[u8]) -> bool {
        read(&mut self.noise, body).is_some() && self.noise.is_handshake_finished()
    }

    /// The keys of a handshake that is [finished](Self::on_finish).
    pub fn keys(self) -> Option<Keys> {
        Keys::of(self.noise, self.suite)
    }
}
