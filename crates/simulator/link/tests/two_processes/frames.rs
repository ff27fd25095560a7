//! Frames between the two processes: encoding of PPDUs as bytes.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use tacit_packet::units::Duration;

/// Sequence numbers have 12 bits.
pub const NUMBERS: u64 = 1 << 12;

/// A PPDU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ppdu {
    /// Data; each MPDU is lost or received on its own.
    Ampdu(Vec<Mpdu>),
    /// Requests a Block Ack that did not arrive; names the oldest MPDU in question.
    BlockAckReq { start: u16 },
    /// Which of the 64 MPDUs from `start` arrived, and the appended bytes.
    BlockAck { start: u16, bitmap: u64, appended: Vec<u8> },
    /// The sender has no data and passes the medium to the other station.
    CfEnd,
}

/// A data MPDU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mpdu {
    pub sequence: u16,
    pub retry: bool,
    /// More packets wait for the same station than this PPDU holds.
    pub more_data: bool,
    /// The IP packet.
    pub packet: Vec<u8>,
}

/// The first byte of a PPDU, by type.
const AMPDU: u8 = 1;
const BLOCK_ACK_REQ: u8 = 2;
const BLOCK_ACK: u8 = 3;
const CF_END: u8 = 4;

/// Flags of an MPDU.
const RETRY: u8 = 1;
const MORE_DATA: u8 = 2;

impl Ppdu {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Self::Ampdu(mpdus) => {
                bytes.push(AMPDU);
                for mpdu in mpdus {
                    let flags = (u8::from(mpdu.retry) * RETRY) | (u8::from(mpdu.more_data) * MORE_DATA);
                    bytes.extend((mpdu.packet.len() as u16).to_be_bytes());
                    bytes.extend(mpdu.sequence.to_be_bytes());
                    bytes.push(flags);
                    bytes.extend(&mpdu.packet);
                }
            }
            Self::BlockAckReq { start } => {
                bytes.push(BLOCK_ACK_REQ);
                bytes.extend(start.to_be_bytes());
            }
            Self::BlockAck { start, bitmap, appended } => {
                bytes.push(BLOCK_ACK);
                bytes.extend(start.to_be_bytes());
                bytes.extend(bitmap.to_be_bytes());
                bytes.extend(appended);
            }
            Self::CfEnd => bytes.push(CF_END),
        }
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (kind, mut rest) = bytes.split_first()?;
        Some(match *kind {
            AMPDU => {
                let mut mpdus = Vec::new();
                while let Some(([l0, l1, s0, s1, flags], behind)) = rest.split_first_chunk() {
                    let (packet, behind) = behind.split_at_checked(u16::from_be_bytes([*l0, *l1]).into())?;
                    mpdus.push(Mpdu {
                        sequence: u16::from_be_bytes([*s0, *s1]),
                        retry: flags & RETRY != 0,
                        more_data: flags & MORE_DATA != 0,
                        packet: packet.to_vec(),
                    });
                    rest = behind;
                }
                Self::Ampdu(mpdus)
            }
            BLOCK_ACK_REQ => Self::BlockAckReq { start: u16::from_be_bytes(rest.try_into().ok()?) },
            BLOCK_ACK => {
                let (start, rest) = rest.split_first_chunk()?;
                let (bitmap, appended) = rest.split_first_chunk()?;
                let (start, bitmap) = (u16::from_be_bytes(*start), u64::from_be_bytes(*bitmap));
                Self::BlockAck { start, bitmap, appended: appended.to_vec() }
            }
            CF_END => Self::CfEnd,
            _ => return None,
        })
    }

    /// Airtime: a preamble, then data at 150 Mb/s or other frames at 24 Mb/s.
    pub fn airtime(&self) -> Duration {
        let bits = self.to_bytes().len() as u64 * 8;
        let nanos_per_thousand_bits = if matches!(self, Self::Ampdu(_)) { 6_667 } else { 41_667 };
        Duration::from_micros(40) + Duration::from_nanos(bits * nanos_per_thousand_bits / 1_000)
    }
}

/// The medium: one end of a socket pair.
pub struct Medium(pub UnixStream);

impl Medium {
    /// Sends a PPDU preceded by its length.
    pub fn send(&mut self, ppdu: &Ppdu) {
        let bytes = ppdu.to_bytes();
        let framed = [&(bytes.len() as u32).to_be_bytes(), &bytes[..]].concat();
        // If the other process has exited, the next receive reports it.
        let _ = self.0.write_all(&framed);
    }

    /// The next PPDU from the other station; `None` if its process has exited.
    pub fn receive(&mut self) -> Option<Ppdu> {
        let mut len = [0; 4];
        self.0.read_exact(&mut len).ok()?;
        let mut bytes = vec![0; u32::from_be_bytes(len) as usize];
        self.0.read_exact(&mut bytes).ok()?;
        Some(Ppdu::from_bytes(&bytes).expect("the other end sends frames"))
    }
}
