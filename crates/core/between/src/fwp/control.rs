//! Messages between the reader of a flow and the shim below its TCP: one message per packet of a connection that
//! preserves packet boundaries (`SOCK_SEQPACKET`), one connection per flow.
//!
//! A flow has placeholders only after [`ToReader::Registered`], and only while its connection exists. Every hole is
//! announced before its placeholder reaches TCP. A reader that reads bytes from TCP and then all messages therefore
//! knows which bytes are original.
//!
//! A message is a byte for its kind, then its fields in big-endian order. Positions count bytes of the stream that the
//! reader receives, from 0. Ranges are not empty, and end before the last position.

use std::net::{IpAddr, SocketAddr};

/// Name of the shim's abstract socket, reachable inside its network namespace only.
pub const SOCKET_NAME: &[u8] = b"tacit-fwp";

/// Version of this protocol. A shim refuses a reader of another version.
pub const VERSION: u8 = 1;

/// Most bytes in one [`ToReader::Late`]: the payload of an Ethernet jumbo frame is not longer. Longer data is split.
pub const MAX_LATE_LEN: usize = 9000;

/// Bytes of the longest message.
pub const MAX_MESSAGE_LEN: usize = 9 + MAX_LATE_LEN;

/// Bytes of a flow's nonce.
pub const NONCE_LEN: usize = 16;

/// Message kinds.
mod kind {
    pub const REGISTER: u8 = 1;
    pub const ALLOW: u8 = 2;
    pub const STOP: u8 = 3;
    pub const REPAIRED: u8 = 4;
    pub const REGISTERED: u8 = 0x81;
    pub const REFUSED: u8 = 0x82;
    pub const HOLE: u8 = 0x83;
    pub const LATE: u8 = 0x84;
    pub const SWITCHED: u8 = 0x85;
}

/// A message from a reader to the shim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToShim {
    /// First message: identifies the flow of this connection by the addresses of the reader's TCP socket.
    Register {
        /// The reader's [`VERSION`].
        version: u8,
        /// The reader's own address.
        local: SocketAddr,
        /// The server.
        remote: SocketAddr,
    },
    /// Placeholders are allowed in `start..end`. Ranges accumulate; holes outside all of them are not filled.
    Allow {
        /// The first byte.
        start: u64,
        /// The byte after the last.
        end: u64,
    },
    /// The reader has the original bytes of `start..end`, or no longer needs them: a hole there no longer counts
    /// towards the shim's limit of outstanding holes. If a reader never sends this, its holes are forgotten after a
    /// while.
    Repaired {
        /// The first byte.
        start: u64,
        /// The byte after the last.
        end: u64,
    },
    /// Stop placeholders. Announced holes remain announced, and late data is still reported.
    Stop,
}

/// A message from the shim to a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToReader<'a> {
    /// The flow is registered from now on.
    Registered {
        /// The nonce from which its placeholders are generated (the paper's marker).
        nonce: [u8; NONCE_LEN],
        /// Frame loss of the link in parts per million ([`Shim::link_loss_ppm`](super::Shim::link_loss_ppm)).
        expected_fer_ppm: u32,
    },
    /// The flow is not registered, and the connection ends.
    Refused(Refusal),
    /// A placeholder is about to be put in `start..end`. Holes do not overlap, but are announced in any order: one that
    /// was left to TCP may be filled after later ones.
    Hole {
        /// The first byte.
        start: u64,
        /// The byte after the last.
        end: u64,
    },
    /// The original bytes from `start` on arrived after their placeholder, which TCP has delivered or will deliver.
    Late {
        /// The first byte.
        start: u64,
        /// The bytes, at most [`MAX_LATE_LEN`].
        bytes: &'a [u8],
    },
    /// Losses exceeded what the link's errors explain, so TCP sees holes again (`on: false`); or they no longer do.
    Switched {
        /// Whether holes are filled.
        on: bool,
    },
}

/// Why a flow is not registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[repr(u8)]
pub enum Refusal {
    /// The first message was not a valid [`ToShim::Register`].
    #[error("the reader did not register a flow")]
    Unreadable = 1,
    /// The reader speaks another [`VERSION`].
    #[error("the reader speaks another version")]
    Version = 2,
    /// The shim's limit of flows is reached.
    #[error("the shim has no room for another flow")]
    Room = 3,
    /// Another connection has registered the flow.
    #[error("the flow is registered already")]
    Taken = 4,
    /// The flow does not pass the shim.
    #[error("the flow does not pass the shim")]
    Elsewhere = 5,
    /// The flow's socket belongs to another user, or does not exist.
    #[error("the flow is another user's")]
    Foreign = 6,
}

/// Why bytes are not a valid message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misread {
    /// The first byte is no known kind.
    #[error("no message begins with {0:?}")]
    Kind(Option<u8>),
    /// The message has too few or too many bytes.
    #[error("a message of {0} bytes")]
    Length(usize),
    /// A field has an invalid value.
    #[error("{0} with a value that it cannot have")]
    Field(&'static str),
}

impl ToShim {
    /// Encodes the message into `out`, which is cleared first.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.clear();
        match *self {
            Self::Register { version, local, remote } => {
                out.extend([kind::REGISTER, version]);
                [local, remote].iter().for_each(|end| put_end(out, *end));
            }
            Self::Allow { start, end } => put_range(out, kind::ALLOW, start, end),
            Self::Repaired { start, end } => put_range(out, kind::REPAIRED, start, end),
            Self::Stop => out.push(kind::STOP),
        }
    }

    /// Decodes a message.
    ///
    /// # Errors
    /// If [`ToShim::encode`] cannot have written the bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Misread> {
        let mut fields = Fields::new(bytes)?;
        let message = match fields.kind {
            kind::REGISTER => {
                Self::Register { version: fields.byte()?, local: fields.end()?, remote: fields.end()? }
            }
            kind::ALLOW => {
                let (start, end) = fields.range()?;
                Self::Allow { start, end }
            }
            kind::REPAIRED => {
                let (start, end) = fields.range()?;
                Self::Repaired { start, end }
            }
            kind::STOP => Self::Stop,
            other => return Err(Misread::Kind(Some(other))),
        };
        fields.finish().map(|()| message)
    }
}

impl<'a> ToReader<'a> {
    /// Encodes the message into `out`, which is cleared first. Writes at most [`MAX_LATE_LEN`] bytes of a
    /// [late](ToReader::Late) message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.clear();
        match *self {
            Self::Registered { nonce, expected_fer_ppm } => {
                out.push(kind::REGISTERED);
                out.extend(nonce);
                out.extend(expected_fer_ppm.to_be_bytes());
            }
            Self::Refused(refusal) => out.extend([kind::REFUSED, refusal as u8]),
            Self::Hole { start, end } => put_range(out, kind::HOLE, start, end),
            Self::Late { start, bytes } => {
                out.push(kind::LATE);
                out.extend(start.to_be_bytes());
                out.extend_from_slice(&bytes[..bytes.len().min(MAX_LATE_LEN)]);
            }
            Self::Switched { on } => out.extend([kind::SWITCHED, u8::from(on)]),
        }
    }

    /// Decodes a message.
    ///
    /// # Errors
    /// If [`ToReader::encode`] cannot have written the bytes for a message that follows the module's rules.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Misread> {
        let mut fields = Fields::new(bytes)?;
        let message = match fields.kind {
            kind::REGISTERED => Self::Registered {
                nonce: fields.array()?,
                expected_fer_ppm: match u32::from_be_bytes(fields.array()?) {
                    ppm @ 0..=1_000_000 => ppm,
                    _ => return Err(Misread::Field("expected_fer_ppm")),
                },
            },
            kind::REFUSED => Self::Refused(refusal(fields.byte()?)?),
            kind::HOLE => {
                let (start, end) = fields.range()?;
                Self::Hole { start, end }
            }
            kind::LATE => {
                let start = u64::from_be_bytes(fields.array()?);
                let bytes = std::mem::take(&mut fields.rest);
                match bytes.len() {
                    1..=MAX_LATE_LEN if start.checked_add(bytes.len() as u64).is_some() => {
                        Self::Late { start, bytes }
                    }
                    _ => return Err(Misread::Field("late bytes")),
                }
            }
            kind::SWITCHED => match fields.byte()? {
                on @ 0..=1 => Self::Switched { on: on == 1 },
                _ => return Err(Misread::Field("on")),
            },
            other => return Err(Misread::Kind(Some(other))),
        };
        fields.finish().map(|()| message)
    }
}

fn refusal(byte: u8) -> Result<Refusal, Misread> {
    use Refusal::{Elsewhere, Foreign, Room, Taken, Unreadable, Version};
    [Unreadable, Version, Room, Taken, Elsewhere, Foreign]
        .into_iter()
        .find(|refusal| *refusal as u8 == byte)
        .ok_or(Misread::Field("reason"))
}

fn put_range(out: &mut Vec<u8>, kind: u8, start: u64, end: u64) {
    out.push(kind);
    out.extend(start.to_be_bytes());
    out.extend(end.to_be_bytes());
}

fn put_end(out: &mut Vec<u8>, end: SocketAddr) {
    match end.ip() {
        IpAddr::V4(address) => {
            out.push(4);
            out.extend(address.octets());
        }
        IpAddr::V6(address) => {
            out.push(6);
            out.extend(address.octets());
        }
    }
    out.extend(end.port().to_be_bytes());
}

/// The fields of a message that have not been read yet.
struct Fields<'a> {
    kind: u8,
    rest: &'a [u8],
    len: usize,
}

impl<'a> Fields<'a> {
    fn new(bytes: &'a [u8]) -> Result<Self, Misread> {
        let (kind, rest) = bytes.split_first().ok_or(Misread::Kind(None))?;
        Ok(Self { kind: *kind, rest, len: bytes.len() })
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Misread> {
        let (field, rest) = self.rest.split_first_chunk().ok_or(Misread::Length(self.len))?;
        self.rest = rest;
        Ok(*field)
    }

    fn byte(&mut self) -> Result<u8, Misread> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn range(&mut self) -> Result<(u64, u64), Misread> {
        let (start, end) = (u64::from_be_bytes(self.array()?), u64::from_be_bytes(self.array()?));
        if start < end { Ok((start, end)) } else { Err(Misread::Field("range")) }
    }

    fn end(&mut self) -> Result<SocketAddr, Misread> {
        let address = match self.byte()? {
            4 => IpAddr::from(self.array::<4>()?),
            6 => IpAddr::from(self.array::<16>()?),
            _ => return Err(Misread::Field("address")),
        };
        Ok(SocketAddr::new(address, u16::from_be_bytes(self.array()?)))
    }

    fn finish(&self) -> Result<(), Misread> {
        if self.rest.is_empty() { Ok(()) } else { Err(Misread::Length(self.len)) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn to_shim() -> impl Strategy<Value = ToShim> {
        let end =
            || (any::<IpAddr>(), any::<u16>()).prop_map(|(address, port)| SocketAddr::new(address, port));
        prop_oneof![
            (any::<u8>(), end(), end()).prop_map(|(version, local, remote)| ToShim::Register {
                version,
                local,
                remote
            }),
            (0..u64::MAX, 1..u64::MAX)
                .prop_map(|(start, len)| ToShim::Allow { start, end: start.saturating_add(len) }),
            (0..u64::MAX, 1..u64::MAX)
                .prop_map(|(start, len)| ToShim::Repaired { start, end: start.saturating_add(len) }),
            Just(ToShim::Stop),
        ]
    }

    fn known() -> Vec<(ToReader<'static>, Vec<u8>)> {
        let hole = [0x83, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 1, 0];
        let registered = [&[0x81][..], &[7; 16], &[0, 1, 0x86, 0xa0]].concat();
        vec![
            (ToReader::Registered { nonce: [7; 16], expected_fer_ppm: 100_000 }, registered),
            (ToReader::Refused(Refusal::Taken), vec![0x82, 4]),
            (ToReader::Hole { start: 5, end: 256 }, hole.to_vec()),
            (ToReader::Late { start: 1, bytes: b"ab" }, vec![0x84, 0, 0, 0, 0, 0, 0, 0, 1, b'a', b'b']),
            (ToReader::Switched { on: false }, vec![0x85, 0]),
            (ToReader::Switched { on: true }, vec![0x85, 1]),
        ]
    }

    #[test]
    fn messages_have_these_bytes() {
        let mut out = Vec::new();
        for (message, bytes) in known() {
            message.encode(&mut out);
            assert_eq!(out, bytes, "{message:?}");
            assert_eq!(ToReader::decode(&bytes), Ok(message));
        }
        let (local, remote) = ("10.0.0.1:80".parse().unwrap(), "[::1]:443".parse().unwrap());
        ToShim::Register { version: 1, local, remote }.encode(&mut out);
        let mut expected = vec![1, 1, 4, 10, 0, 0, 1, 0, 80, 6];
        expected.extend([[0; 15].as_slice(), &[1], &[1, 0xbb]].concat());
        assert_eq!(out, expected);
        ToShim::Stop.encode(&mut out);
        assert_eq!(out, [3]);
    }

    #[test]
    fn every_refusal_is_read_as_it_was_written() {
        let reasons =
            (0..=u8::MAX).filter_map(|byte| ToReader::decode(&[kind::REFUSED, byte]).ok().map(|_| byte));
        assert_eq!(reasons.collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn late_bytes_are_bounded() {
        let mut out = Vec::new();
        ToReader::Late { start: 0, bytes: &[1; MAX_LATE_LEN + 1] }.encode(&mut out);
        assert_eq!(out.len(), MAX_MESSAGE_LEN);
        out.push(1);
        assert_eq!(ToReader::decode(&out), Err(Misread::Field("late bytes")));
    }

    #[test]
    fn ranges_without_bytes_and_rates_above_one_are_refused() {
        let mut out = Vec::new();
        ToReader::Hole { start: 5, end: 5 }.encode(&mut out);
        assert_eq!(ToReader::decode(&out), Err(Misread::Field("range")));
        ToReader::Registered { nonce: [0; 16], expected_fer_ppm: 1_000_001 }.encode(&mut out);
        assert_eq!(ToReader::decode(&out), Err(Misread::Field("expected_fer_ppm")));
        assert_eq!(ToShim::decode(&[]), Err(Misread::Kind(None)));
    }

    proptest! {
        #[test]
        fn messages_to_the_shim_round_trip(message in to_shim()) {
            let mut out = Vec::new();
            message.encode(&mut out);
            prop_assert_eq!(ToShim::decode(&out), Ok(message));
            for len in 0..out.len() {
                prop_assert!(ToShim::decode(&out[..len]).is_err());
            }
            out.push(0);
            prop_assert!(ToShim::decode(&out).is_err());
        }

        #[test]
        fn every_parsed_message_is_emitted_as_it_was(
            kind in prop_oneof![any::<u8>(), 1_u8..5, 0x81_u8..0x86],
            rest in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            let bytes = [&[kind][..], &rest].concat();
            let mut out = Vec::new();
            if let Ok(message) = ToShim::decode(&bytes) {
                message.encode(&mut out);
                prop_assert_eq!(&out, &bytes);
            }
            if let Ok(message) = ToReader::decode(&bytes) {
                message.encode(&mut out);
                prop_assert_eq!(&out, &bytes);
            }
        }
    }
}
