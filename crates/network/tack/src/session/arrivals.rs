//! Received datagrams: the handshake, sealed packets, and resets.

use std::net::SocketAddr;

use bytes::Bytes;
use tacit_packet::Ecn;
use tacit_packet::tack::wire::{DecodeError, Prefix, decode_sealed};
use tacit_packet::tack::{self, Body};
use tacit_packet::units::Instant;
use tacit_tack_proto::Received;

use super::{Established, Expect, Finish, Session, Stage};
use crate::datagram::{Route, datagram, kind};
use crate::error::{Busy, ConnectionError};
use crate::handshake::{Initiation, OTHER_VERSION};
use crate::reset::ResetToken;
use crate::seal::Sealed;

/// Most datagrams that wait for their reader; beyond that the oldest is dropped. Ours, the same number as the core
/// queues for sending.
const MAX_DATAGRAMS: usize = 256;

impl Session {
    /// The client has repeated its first datagram, because our answer was lost.
    pub fn on_initiation(&mut self, initiation: &Initiation<'_>) {
        if let Stage::Responding { response: Some(response), .. } = &self.stage
            && self.outbox.has_room()
        {
            let again = datagram(kind::RESPONSE, initiation.client, response);
            // The client has sent enough bytes again to allow the repeated answer.
            self.outbox.push(self.remote, again);
        }
    }

    /// Handles a handshake datagram that is not an initiation. A client's third message proves who sent it, so it counts from any
    /// address; data still goes to that of the first message, until sealed packets have proved another one.
    pub fn on_handshake(&mut self, now: Instant, kind: u8, from: SocketAddr, body: &[u8]) {
        self.observer.now = now;
        if from != self.remote.peer && kind != kind::FINISH {
            return;
        }
        match (kind, &mut self.stage) {
            (kind::RETRY, Stage::Initiating(initiator)) => {
                if let Some(again) = initiator.on_retry(body) {
                    self.observer.on_retry();
                    let to = self.remote;
                    again.into_iter().for_each(|datagram| self.outbox.push(to, datagram));
                }
            }
            (kind::RESPONSE, Stage::Initiating(_)) => self.on_response(now, body),
            // The response was repeated, so our third message was lost. It leaves again before a probe.
            (kind::RESPONSE, Stage::Established(established)) if established.finish.is_some() => {
                self.core.ping();
            }
            (kind::FINISH, Stage::Responding { .. }) => self.on_finish(body),
            (kind::BUSY, Stage::Initiating(_)) => {
                let why = match body.first() {
                    Some(&OTHER_VERSION) => Some(ConnectionError::OtherVersion),
                    byte => byte.copied().and_then(Busy::from_byte).map(ConnectionError::Busy),
                };
                if let Some(why) = why {
                    self.on_unverified(now, why);
                }
            }
            _ => {}
        }
        self.pump();
    }

    fn on_response(&mut self, now: Instant, body: &[u8]) {
        let Stage::Initiating(initiator) = &mut self.stage else { return };
        let Some((found, answer, reset)) = initiator.on_response(body) else { return };
        match self.expect {
            Some(Expect::Key(expected)) if expected == found => {}
            Some(Expect::Key(expected)) => {
                // An attacker on the path may answer faster than the server.
                initiator.disregard();
                return self.on_unverified(now, ConnectionError::WrongPeer { expected, found });
            }
            Some(Expect::Own) if initiator.is_own(&found) => {}
            _ => {
                self.peer = Some(found);
                return self.finish(ConnectionError::LocallyClosed);
            }
        }
        self.peer = Some(found);
        self.unverified = None;
        let Stage::Initiating(initiator) = std::mem::replace(&mut self.stage, Stage::Closed) else { return };
        if initiator.tries_short() {
            self.core.begin_at_min_mtu();
        }
        let Some((message, keys)) = initiator.finish() else { return };
        let Body::Answer(hello) = &answer.body else { return };
        let finish = datagram(kind::FINISH, hello.source, &message);
        let finish = Some(Finish { datagram: finish, has_left: false });
        self.stage =
            Stage::Established(Box::new(Established { keys, finish, reset: Some(reset), moved: None }));
        self.observer.begin(now, self.remote.peer, hello.source);
        self.observer.on_received(now, &answer, self.core.whole_number(answer.number, false), None);
        self.core.receive(now, &answer, Ecn::NotEct);
    }

    fn on_finish(&mut self, body: &[u8]) {
        let Stage::Responding { responder, .. } = &mut self.stage else { return };
        if !responder.on_finish(body) {
            return;
        }
        let Stage::Responding { responder, .. } = std::mem::replace(&mut self.stage, Stage::Closed) else {
            return;
        };
        if let Some(keys) = responder.keys() {
            self.peer = Some(keys.peer);
            self.stage =
                Stage::Established(Box::new(Established { keys, finish: None, reset: None, moved: None }));
        }
    }

    /// For a client with a reset token: the server that may reset this connection, and the server's number for it.
    pub fn reset_source(&self) -> Option<(SocketAddr, u32)> {
        let Stage::Established(established) = &self.stage else { return None };
        established.reset.is_some().then(|| (self.remote.peer, self.core.peer_id().0))
    }

    /// Handles a reset from the server's address, which says that the connection is forgotten. Returns false if it is
    /// not from the server: only the server knows the token.
    pub fn on_reset(&mut self, now: Instant, token: &[u8]) -> bool {
        let Stage::Established(established) = &self.stage else { return false };
        let is_right = established.reset.is_some_and(|known| known.is(token))
            || established.moved.is_some_and(|moved| ResetToken::begins(&moved, token));
        if self.end.is_some() || !is_right {
            return false;
        }
        self.observer.now = now;
        self.finish(ConnectionError::ServerRestarted);
        // The server has forgotten the connection, so nothing more is sent (RFC 9000 section 10.3.1).
        self.core.abort();
        self.pump();
        self.stage = Stage::Closed;
        true
    }

    /// Handles an ICMP error for a datagram of this client to `to`: no program listens at the port (`refused`), or
    /// there is no route to the host. The latter may be temporary, and an established connection survives it.
    pub fn on_unreachable(&mut self, now: Instant, to: SocketAddr, refused: bool) {
        match self.stage {
            _ if to != self.remote.peer => {}
            Stage::Initiating(_) => self.on_unverified(now, ConnectionError::Unreachable),
            Stage::Established(_) if refused && self.unverified.is_none() => {
                self.on_unverified(now, ConnectionError::Unreachable);
                // If the server is still there, it answers.
                self.core.ping();
            }
            _ => {}
        }
    }

    /// Handles a sealed packet. A packet that fails authentication is neither used nor answered.
    pub fn on_sealed(&mut self, now: Instant, from: Route, ecn: Ecn, bytes: &mut [u8]) -> Sealed {
        let Stage::Established(established) = &mut self.stage else { return Sealed::Strange };
        // A server does not change its address (RFC 9000 section 9).
        if self.expect.is_some() && from.peer != self.remote.peer {
            return Sealed::Misplaced;
        }
        let len = bytes.len();
        let Ok(prefix) = Prefix::parse(bytes) else { return Sealed::Strange };
        let number = self.core.whole_number(prefix.number, prefix.short);
        let Some(key) = established.keys.opener.key(number) else { return Sealed::Repeated };
        let (packet, content) = match decode_sealed(bytes, number, key) {
            Ok(opened) => opened,
            Err(DecodeError::Forged(_)) => {
                established.keys.opener.on_forged();
                return Sealed::Forged;
            }
            // The packet is authentic, but violates the protocol.
            Err(_) => {
                self.core.abort();
                self.observer.now = now;
                self.pump();
                return Sealed::Taken;
            }
        };
        let newest = established.keys.opener.on_opened(number);
        established.finish = None;
        self.unverified = None;
        self.take(now, from, ecn, &packet, content, newest.then_some(len));
        Sealed::Taken
    }

    /// Records that a datagram of `bytes`, which begins with `prefix`, was rejected.
    pub fn on_not_taken(&mut self, now: Instant, prefix: Prefix, bytes: usize, why: Sealed) {
        self.observer.now = now;
        let number = self.core.whole_number(prefix.number, prefix.short);
        self.observer.on_not_taken(now, number, bytes, why);
    }

    /// Handles an authentic packet with the bytes it carries. `newest` is the length of the datagram if no packet with
    /// a higher number has arrived.
    pub fn take(
        &mut self,
        now: Instant,
        from: Route,
        ecn: Ecn,
        packet: &tack::Packet,
        content: &[u8],
        newest: Option<usize>,
    ) {
        self.observer.now = now;
        let number = self.core.whole_number(packet.number, packet.is_short());
        let received = self.core.receive(now, packet, ecn);
        let start = match &received {
            Some(Received::Bytes(accepted)) => Some(accepted.start - u64::from(accepted.skip)),
            _ => None,
        };
        self.observer.on_received(now, packet, number, start);
        if packet.is_feedback() {
            self.observer.on_feedback(now, &mut self.core);
        }
        let mut answered = 0;
        match received {
            Some(Received::Bytes(accepted)) => {
                let buffers = self.streams.entry(accepted.stream).or_default();
                if !buffers.receiving.dropped {
                    let bytes = &content[accepted.skip as usize..][..accepted.len as usize];
                    buffers.receiving.place(accepted.start, bytes);
                    self.count(accepted.stream);
                }
            }
            Some(Received::Datagram(_)) => {
                if self.datagrams_in.len() == MAX_DATAGRAMS {
                    self.datagrams_in.pop_front();
                    self.datagrams_dropped[1] += 1;
                }
                self.datagrams_in.push_back(Bytes::copy_from_slice(content));
                self.notifiers.datagram.notify_waiters();
            }
            Some(Received::PathChallenge(token)) => {
                // A server's path challenge is also the first half of its reset token for this address.
                if let Stage::Established(established) = &mut self.stage {
                    established.moved = established.reset.is_some().then_some(token);
                }
                // As long as the challenge: a path that carries one carries the other, and another address gets no more
                // than it sent.
                if self.outbox.has_room()
                    && let Some(response) = self.core.path_response(now, token, packet.len())
                {
                    answered = response.packet.len() as usize;
                    self.send_aside(now, from, &response);
                }
            }
            Some(Received::PathResponse(token)) if self.path.is_proved(from, token) => {
                let before = std::mem::replace(&mut self.remote, from);
                self.observer.on_path_changed(now, before.peer, from.peer);
                if (from.peer.ip(), from.host) == (before.peer.ip(), before.host) {
                    self.core.on_port_changed();
                } else {
                    self.core.on_path_changed(now);
                }
            }
            Some(Received::PathResponse(_)) | None => {}
        }
        if let Some(len) = newest
            && from != self.remote
            && self.end.is_none()
        {
            self.try_path(now, from, [len, answered]);
        }
        self.pump();
    }

    /// The client's newest packet came from another address. That address is validated before anything is sent there but an
    /// answer to its own challenge. `bytes` are those of the packet and of that answer.
    fn try_path(&mut self, now: Instant, from: Route, bytes: [usize; 2]) {
        let Some((number, key)) = &self.reset_key else { return };
        let token = key.token(*number, from.peer.ip()).moved();
        let Some((token, room)) = self.path.on_packet(now, from, bytes, token) else { return };
        if let Some(challenge) = self.core.path_challenge(now, token, room) {
            self.send_aside(now, from, &challenge);
        }
    }
}
