//! The peer's address: a client that moves keeps its connection (RFC 9000 section 9).

use std::net::SocketAddr;

use tacit_proto::units::{Duration, Instant};

/// How long to wait for a path response before the next packet from that address triggers another challenge. Ours.
const ASK_AGAIN: Duration = Duration::from_millis(300);

/// State of path validation.
#[derive(Default)]
pub(crate) struct Path {
    candidate: Option<Candidate>,
}

/// An address from which the client may be sending.
struct Candidate {
    address: SocketAddr,
    token: [u8; 8],
    asked_at: Instant,
    /// Bytes received from it, and sent to it: at most three times as many (RFC 9000 section 9.3.1).
    received: u64,
    sent: u64,
}

impl Path {
    /// Handles a packet of `len` bytes from an unvalidated address. Returns the token of the path challenge to send
    /// there (`token` if the address is new), and the number of bytes that may be sent.
    pub fn on_packet(
        &mut self,
        now: Instant,
        from: SocketAddr,
        len: usize,
        token: [u8; 8],
    ) -> Option<([u8; 8], u32)> {
        let known = self.candidate.as_mut().filter(|candidate| candidate.address == from);
        let candidate = match known {
            Some(candidate) => {
                candidate.received += len as u64;
                if now.saturating_since(candidate.asked_at) < ASK_AGAIN {
                    return None;
                }
                candidate.asked_at = now;
                candidate
            }
            None => {
                let fresh = Candidate { address: from, token, asked_at: now, received: len as u64, sent: 0 };
                self.candidate.insert(fresh)
            }
        };
        let room = (3 * candidate.received).saturating_sub(candidate.sent).min(1200);
        candidate.sent += room;
        Some((candidate.token, room as u32))
    }

    /// True if `token`, received from `from`, is that of the path challenge sent there.
    pub fn is_proved(&mut self, from: SocketAddr, token: [u8; 8]) -> bool {
        let proved = |candidate: &mut Candidate| candidate.address == from && candidate.token == token;
        self.candidate.take_if(proved).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_asked_seldom_and_believed_once_it_answers() {
        let (here, there): (SocketAddr, SocketAddr) =
            (([192, 0, 2, 1], 1).into(), ([192, 0, 2, 2], 1).into());
        let mut path = Path::default();
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let (token, room) = path.on_packet(at(0), here, 100, *b"no guess").unwrap();
        assert_eq!(room, 300, "three times the bytes received");
        assert_eq!(path.on_packet(at(299), here, 1000, [1; 8]), None);
        assert_eq!(path.on_packet(at(300), here, 1000, [1; 8]), Some((token, 1200)));
        assert!(!path.is_proved(there, token) && !path.is_proved(here, [0; 8]));
        assert!(path.is_proved(here, token));
        assert!(!path.is_proved(here, token), "an answer counts once");
    }
}
