//! Stateless resets (RFC 9000 section 10.3): a restarted server has forgotten its connections, and tells so the clients
//! that still use them.
//!
//! In the handshake the client gets a token. The server derives it from inputs that survive a restart: its private key,
//! its port, the connection number, and the client's address. Without the private key no token can be computed. If an
//! attacker on the path asks another server with the same key about a connection number it has seen, it gets a token
//! for another port or for its own address (RFC 9000 section 21.11).

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;
use tacit_packet::tack::packet::ConnectionId;
use tacit_packet::units::{Duration, Instant};

use crate::datagram::{datagram, kind};
use crate::identity::Identity;

/// Bytes of a token (RFC 9000 section 10.3).
pub(crate) const LEN: usize = 16;

/// Bytes of the token part that a client gets after it has moved: the size of a path challenge's token.
pub(crate) const MOVED_LEN: usize = 8;

/// Average time per answer, and the time for which answers may be sent in one burst. Ours: 10,000 clients of a
/// restarted server send probes within the 10 s of their probe interval and get their answers in that time; answers
/// take less than 0.2 Mb/s.
const EVERY: Duration = Duration::from_millis(1);
const AT_ONCE: Duration = Duration::from_millis(100);

/// Token that proves to a client that its server has forgotten the connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResetToken(pub [u8; LEN]);

impl ResetToken {
    /// True if `token` is this token. Constant time.
    pub fn is(&self, token: &[u8]) -> bool {
        verify_slices_are_equal(&self.0, token).is_ok()
    }

    /// The first half, which a client gets after it has moved.
    pub fn moved(&self) -> [u8; MOVED_LEN] {
        let mut first = [0; MOVED_LEN];
        first.copy_from_slice(&self.0[..MOVED_LEN]);
        first
    }

    /// True if `token` is a token that begins with `moved`.
    pub fn begins(moved: &[u8; MOVED_LEN], token: &[u8]) -> bool {
        token.len() == LEN && verify_slices_are_equal(moved, &token[..MOVED_LEN]).is_ok()
    }
}

/// Derives the tokens of a server.
pub(crate) struct ResetKey {
    key: hmac::Key,
    port: u16,
}

impl ResetKey {
    /// The token of the server's connection `number` with a client at `address`.
    pub fn token(&self, number: ConnectionId, address: IpAddr) -> ResetToken {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(&self.port.to_be_bytes());
        context.update(&number.0.to_be_bytes());
        // A dual-stack socket has IPv4 addresses mapped to IPv6.
        match address.to_canonical() {
            IpAddr::V4(address) => context.update(&address.octets()),
            IpAddr::V6(address) => context.update(&address.octets()),
        }
        let mut token = [0; LEN];
        token.copy_from_slice(&context.sign().as_ref()[..LEN]);
        ResetToken(token)
    }
}

/// Limits the rate of a server's resets.
pub(crate) struct Resets {
    pub key: Arc<ResetKey>,
    /// When the answers sent so far are within the rate.
    paid_at: Instant,
}

impl Resets {
    /// For a server with this identity at this `port`.
    pub fn new(identity: &Identity, port: u16) -> Self {
        let private = hmac::Key::new(hmac::HMAC_SHA256, identity.private());
        let key = hmac::sign(&private, b"tacit-tack stateless reset");
        let key = ResetKey { key: hmac::Key::new(hmac::HMAC_SHA256, key.as_ref()), port };
        Self { key: Arc::new(key), paid_at: Instant::ZERO }
    }

    /// As [`ResetKey::token`].
    pub fn token(&self, number: ConnectionId, address: IpAddr) -> ResetToken {
        self.key.token(number, address)
    }

    /// The reset for `from`, which sent a packet of `len` bytes for the unknown connection `number`. `None` if too many
    /// resets were sent recently, or if the reset would not be shorter than the packet, because two servers could then
    /// answer each other forever.
    pub fn answer(
        &mut self,
        now: Instant,
        from: SocketAddr,
        number: ConnectionId,
        len: usize,
    ) -> Option<Vec<u8>> {
        let paid_at = self.paid_at.max(now);
        if paid_at.saturating_since(now) >= AT_ONCE {
            return None;
        }
        let answer = datagram(kind::RESET, number, &self.token(number, from.ip()).0);
        if answer.len() >= len {
            return None;
        }
        self.paid_at = paid_at + EVERY;
        Some(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_token_is_of_one_server_port_connection_and_client() {
        let identity = Identity::generate();
        let client = IpAddr::from([192, 0, 2, 1]);
        let token = |identity: &Identity, port, number, client: IpAddr| {
            Resets::new(identity, port).token(ConnectionId(number), client).0
        };
        let right = token(&identity, 4433, 7, client);
        assert_eq!(token(&identity, 4433, 7, client), right, "after a restart too");
        let IpAddr::V4(v4) = client else { panic!() };
        assert_eq!(token(&identity, 4433, 7, v4.to_ipv6_mapped().into()), right);
        assert_ne!(token(&Identity::generate(), 4433, 7, client), right);
        assert_ne!(token(&identity, 4434, 7, client), right);
        assert_ne!(token(&identity, 4433, 8, client), right);
        assert_ne!(token(&identity, 4433, 7, [192, 0, 2, 2].into()), right);
        assert!(ResetToken(right).is(&right));
        for bit in 0..LEN * 8 {
            let mut wrong = right;
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(!ResetToken(right).is(&wrong), "bit {bit}");
        }
        assert!(!ResetToken(right).is(&right[1..]) && !ResetToken(right).is(&[]));
    }

    #[test]
    fn answers_are_shorter_than_questions_and_seldom() {
        let mut resets = Resets::new(&Identity::generate(), 1);
        let from = ([192, 0, 2, 1], 1).into();
        let len = resets.answer(at(0), from, ConnectionId(1), 1200).unwrap().len();
        assert_eq!(len, 5 + LEN);
        assert!(resets.answer(at(0), from, ConnectionId(1), len).is_none());
        let mut given = |millis| {
            (0..1_000).filter(|_| resets.answer(at(millis), from, ConnectionId(1), len + 1).is_some()).count()
        };
        assert_eq!((given(0), given(0), given(10), given(1_000)), (99, 0, 10, 100));
    }
}
