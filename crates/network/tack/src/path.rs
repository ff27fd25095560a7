//! The peer's address: a client that moves keeps its connection (RFC 9000 section 9).

use tacit_packet::units::{Duration, Instant};

use crate::datagram::Route;
use crate::handshake::{INITIATION_LEN, SHORT_INITIATION_LEN};

/// How long to wait for a path response before the next packet from that address triggers another challenge. Ours.
const ASK_AGAIN: Duration = Duration::from_millis(300);

/// State of path validation.
#[derive(Default)]
pub(crate) struct Path {
    candidate: Option<Candidate>,
}

/// An address from which the client may be sending.
struct Candidate {
    address: Route,
    token: [u8; 8],
    asked_at: Instant,
    /// The next challenge is short.
    short_next: bool,
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
        from: Route,
        [len, answered]: [usize; 2],
        token: [u8; 8],
    ) -> Option<([u8; 8], u32)> {
        let (len, answered) = (len as u64, answered as u64);
        let known = self.candidate.as_mut().filter(|candidate| candidate.address == from);
        let candidate = match known {
            Some(candidate) => {
                candidate.received += len;
                candidate.sent += answered;
                if now.saturating_since(candidate.asked_at) < ASK_AGAIN {
                    return None;
                }
                candidate.asked_at = now;
                candidate
            }
            None => {
                let (received, sent) = (len, answered);
                let fresh =
                    Candidate { address: from, token, asked_at: now, short_next: false, received, sent };
                self.candidate.insert(fresh)
            }
        };
        // Every second challenge is short: the path may carry none of full length.
        let most = if candidate.short_next { SHORT_INITIATION_LEN } else { INITIATION_LEN };
        candidate.short_next = !candidate.short_next;
        let room = (3 * candidate.received).saturating_sub(candidate.sent).min(most as u64);
        candidate.sent += room;
        Some((candidate.token, room as u32))
    }

    /// True if `token`, received from `from`, is that of the path challenge sent there.
    pub fn is_proved(&mut self, from: Route, token: [u8; 8]) -> bool {
        let proved = |candidate: &mut Candidate| candidate.address == from && candidate.token == token;
        self.candidate.take_if(proved).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn ends() -> [Route; 2] {
        [1, 2].map(|host| std::net::SocketAddr::from(([192, 0, 2, host], 1)).into())
    }

    #[test]
    fn an_address_is_asked_seldom_and_believed_once_it_answers() {
        let [here, there] = ends();
        let mut path = Path::default();
        let (token, room) = path.on_packet(at(0), here, [100, 0], *b"no guess").unwrap();
        assert_eq!(room, 300, "three times the bytes received");
        assert_eq!(path.on_packet(at(299), here, [1000, 0], [1; 8]), None);
        assert_eq!(
            path.on_packet(at(300), here, [1000, 0], [1; 8]),
            Some((token, 548)),
            "each second is short"
        );
        assert_eq!(path.on_packet(at(600), here, [1000, 0], [1; 8]), Some((token, 1200)));
        assert!(!path.is_proved(there, token) && !path.is_proved(here, [0; 8]));
        assert!(path.is_proved(here, token));
        assert!(!path.is_proved(here, token), "an answer counts once");
    }

    /// RFC 9000 section 9.3.1: of all packets together, not of each.
    #[test]
    fn an_unproved_address_gets_three_times_its_bytes_in_sum() {
        let [here, there] = ends();
        let mut path = Path::default();
        let mut room =
            |millis, from, bytes| path.on_packet(at(millis), from, bytes, [1; 8]).map(|(_, room)| room);
        assert_eq!(room(0, here, [500, 0]), Some(1200), "300 are left");
        assert_eq!(room(300, here, [50, 0]), Some(450));
        assert_eq!(room(600, here, [50, 0]), Some(150), "all that were left were used");
        // Packets that are not asked after pay, too.
        assert_eq!(room(700, here, [100, 0]), None);
        assert_eq!(room(900, here, [50, 0]), Some(450));
        // Each address pays its own challenges.
        assert_eq!(room(1200, there, [40, 0]), Some(120));
        assert_eq!(room(1300, here, [50, 0]), Some(150));
    }

    #[test]
    fn answers_to_an_unproved_address_count_among_its_bytes() {
        let [here, _] = ends();
        let mut path = Path::default();
        let mut room = |millis, bytes| path.on_packet(at(millis), here, bytes, [1; 8]).map(|(_, room)| room);
        assert_eq!(room(0, [100, 100]), Some(200));
        assert_eq!(room(100, [100, 100]), None);
        assert_eq!(room(300, [100, 100]), Some(400));
    }
}
