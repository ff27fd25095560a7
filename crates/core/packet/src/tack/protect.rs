//! The seam for encryption: makes and verifies the tag of a packet.

use super::packet::TAG_LEN;

/// Proof that a packet is whole and of the peer.
pub type Tag = [u8; TAG_LEN as usize];

/// The tag is not that of the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the tag is not that of the packet")]
pub struct Forged;

/// Authenticated encryption with associated data (RFC 5116 section 2) as TACK uses it.
///
/// The header, which is associated data, is the front of each packet: type and flags, connection, packet number. It stays
/// readable: the receiver finds the connection, and with it the key, by it. All behind it is the body. The nonce is
/// the whole packet number; packets carry its low 32 bits: no number, and so no nonce, is used twice with a
/// key.
pub trait Protector {
    /// Encrypts `body` in place.
    fn seal(&self, number: u64, header: &[u8], body: &mut [u8]) -> Tag;

    /// Decrypts `body` in place. Its content after an error is of no use.
    ///
    /// # Errors
    ///
    /// [`Forged`] where `tag` is not the one that [`seal`](Self::seal) gave for these bytes.
    fn open(&self, number: u64, header: &[u8], body: &mut [u8], tag: &Tag) -> Result<(), Forged>;
}

/// No protection: a tag of zeros. The simulator has no eavesdropper, and only lengths count there.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unprotected;

impl Unprotected {
    const TAG: Tag = [0; TAG_LEN as usize];

    /// Looks at a tag, for which an unprotected packet need not be changed.
    pub(super) fn check(tag: &Tag) -> Result<(), Forged> {
        if *tag == Self::TAG { Ok(()) } else { Err(Forged) }
    }
}

impl Protector for Unprotected {
    fn seal(&self, _: u64, _: &[u8], _: &mut [u8]) -> Tag {
        Self::TAG
    }

    fn open(&self, _: u64, _: &[u8], _: &mut [u8], tag: &Tag) -> Result<(), Forged> {
        Self::check(tag)
    }
}
