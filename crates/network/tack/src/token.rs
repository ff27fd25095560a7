//! Address validation tokens (RFC 9000 section 8.1.2): a busy server verifies with them that a client receives packets
//! at its source address, before it stores any state for that client.

use std::net::SocketAddr;

use aws_lc_rs::hmac;
use tacit_packet::tack::packet::ConnectionId;
use tacit_packet::units::{Duration, Instant};

/// Bytes of a token: its time of issue and its authentication code.
pub(crate) const LEN: usize = 24;

/// How long a token is valid. A client returns it within a round trip.
const LIFETIME: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token(pub [u8; LEN]);

/// Issues and verifies tokens. The key lives as long as the server.
pub(crate) struct TokenIssuer {
    key: hmac::Key,
}

impl TokenIssuer {
    pub fn new(secret: &[u8; 32]) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, secret) }
    }

    fn code(&self, issued_at: [u8; 8], client: SocketAddr, connection: ConnectionId) -> [u8; 16] {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(&issued_at);
        match client.ip() {
            std::net::IpAddr::V4(address) => context.update(&address.octets()),
            std::net::IpAddr::V6(address) => context.update(&address.octets()),
        }
        context.update(&client.port().to_be_bytes());
        context.update(&connection.0.to_be_bytes());
        let code = context.sign();
        let mut half = [0; 16];
        half.copy_from_slice(&code.as_ref()[..16]);
        half
    }

    /// Issues a token for `client` and its `connection`.
    pub fn make(&self, now: Instant, client: SocketAddr, connection: ConnectionId) -> Token {
        let issued_at = now.as_nanos().to_be_bytes();
        let mut token = [0; LEN];
        token[..8].copy_from_slice(&issued_at);
        token[8..].copy_from_slice(&self.code(issued_at, client, connection));
        Token(token)
    }

    /// True if the token was issued for this client and connection within the last 10 s ([`LIFETIME`]).
    pub fn is_valid(
        &self,
        now: Instant,
        token: &Token,
        client: SocketAddr,
        connection: ConnectionId,
    ) -> bool {
        let (issued_at, code) = token.0.split_at(8);
        let issued_at: [u8; 8] = issued_at.try_into().expect("eight bytes were split off");
        let age = now.as_nanos().checked_sub(u64::from_be_bytes(issued_at));
        let right = self.code(issued_at, client, connection);
        age.is_some_and(|age| age <= LIFETIME.as_nanos())
            && aws_lc_rs::constant_time::verify_slices_are_equal(&right, code).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_for_one_client_and_a_while() {
        let tokens = TokenIssuer::new(&[3; 32]);
        let client: SocketAddr = ([192, 0, 2, 1], 1000).into();
        let other: SocketAddr = ([192, 0, 2, 1], 1001).into();
        let (at, later) = (Instant::ZERO + Duration::from_secs(100), Duration::from_secs(10));
        let token = tokens.make(at, client, ConnectionId(7));
        assert!(tokens.is_valid(at + later, &token, client, ConnectionId(7)));
        assert!(!tokens.is_valid(at + later + Duration::from_nanos(1), &token, client, ConnectionId(7)));
        assert!(!tokens.is_valid(Instant::ZERO, &token, client, ConnectionId(7)), "made in the future");
        assert!(!tokens.is_valid(at, &token, other, ConnectionId(7)));
        assert!(!tokens.is_valid(at, &token, client, ConnectionId(8)));
        assert!(!TokenIssuer::new(&[4; 32]).is_valid(at, &token, client, ConnectionId(7)));
        for bit in 0..LEN * 8 {
            let mut wrong = token;
            wrong.0[bit / 8] ^= 1 << (bit % 8);
            assert!(!tokens.is_valid(at, &wrong, client, ConnectionId(7)), "bit {bit}");
        }
    }
}
