//! The keys of a connection: encryption, decryption, and replay protection.
//!
//! Each direction has a key for every [`EPOCH`] of packet numbers, derived from the previous one by Noise's REKEY
//! (Noise section 4.2). The packet number selects the key, so key updates need no negotiation. Keys are in AWS-LC,
//! which overwrites them when they are freed.

use aws_lc_rs::aead::{Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use tacit_packet::tack::{Forged, Protector, Tag};
use zeroize::Zeroizing;

use crate::suite::Suite;

/// Packet numbers per key, as a power of 2: half of AES-GCM's confidentiality limit in RFC 9001 section 6.6.
pub(crate) const EPOCH: u32 = 22;

/// Forged packets after which a key is no longer used: the smallest limit in RFC 9001 section 6.6, that of
/// ChaCha20-Poly1305.
const MAX_FORGED: u64 = 1 << 36;

/// Bytes of a key.
pub(crate) type Secret = Zeroizing<[u8; 32]>;

/// Outcome of decrypting a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sealed {
    /// It is authentic.
    Taken,
    /// It is malformed, or there are no keys yet.
    Strange,
    /// It does not come from the server's address.
    Misplaced,
    /// It was received before, or is too old to check.
    Repeated,
    /// Its authentication failed.
    Forged,
}

/// The key of an epoch.
struct Key {
    suite: Suite,
    epoch: u64,
    key: LessSafeKey,
}

impl Key {
    fn new(suite: Suite, epoch: u64, secret: &Secret) -> Self {
        let key = UnboundKey::new(suite.algorithm(), secret.as_slice())
            .expect("both ciphers have keys of 32 bytes");
        Self { suite, epoch, key: LessSafeKey::new(key) }
    }

    /// The key of the next epoch: REKEY encrypts 32 zeros with the highest nonce, which no packet uses.
    fn next(&self) -> Self {
        let mut secret = Zeroizing::new([0; 32]);
        // The tag of REKEY's ciphertext is not part of the key.
        let _ = self
            .key
            .seal_in_place_separate_tag(self.nonce(u64::MAX), Aad::empty(), secret.as_mut_slice())
            .expect("32 bytes are not too long for a cipher");
        Self::new(self.suite, self.epoch + 1, &secret)
    }

    fn nonce(&self, number: u64) -> Nonce {
        let mut nonce = [0; NONCE_LEN];
        nonce[4..].copy_from_slice(&match self.suite {
            // Nonce formats of Noise sections 12.3 and 12.4.
            Suite::ChaChaPoly => number.to_le_bytes(),
            Suite::Aes256Gcm => number.to_be_bytes(),
        });
        Nonce::assume_unique_for_key(nonce)
    }
}

impl Protector for Key {
    fn seal(&self, number: u64, header: &[u8], body: &mut [u8]) -> Tag {
        let tag = self
            .key
            .seal_in_place_separate_tag(self.nonce(number), Aad::from(header), body)
            .expect("a packet is not too long for a cipher");
        tag.as_ref().try_into().expect("both ciphers have tags of 16 bytes")
    }

    fn open(&self, number: u64, header: &[u8], body: &mut [u8], tag: &Tag) -> Result<(), Forged> {
        let opened = self.key.open_in_place_separate_tag(self.nonce(number), Aad::from(header), tag, body);
        opened.map(|_| ()).map_err(|_| Forged)
    }
}

/// Encrypts outgoing packets.
pub(crate) struct Sealer {
    key: Key,
    bits: u32,
}

impl Sealer {
    pub fn new(suite: Suite, secret: &Secret, bits: u32) -> Self {
        Self { key: Key::new(suite, 0, secret), bits }
    }

    /// The key for packet `number`. Numbers must not decrease.
    pub fn key(&mut self, number: u64) -> &impl Protector {
        while self.key.epoch < number >> self.bits {
            self.key = self.key.next();
        }
        &self.key
    }
}

/// Decrypts incoming packets, each of them once.
pub(crate) struct Opener {
    /// The key before the current one; the newest key that has opened a packet; and the next one.
    previous: Option<Key>,
    current: Key,
    next: Key,
    bits: u32,
    window: Window,
    forged: u64,
}

impl Opener {
    pub fn new(suite: Suite, secret: &Secret, bits: u32) -> Self {
        let current = Key::new(suite, 0, secret);
        let next = current.next();
        Self { previous: None, current, next, bits, window: Window::default(), forged: 0 }
    }

    /// The key for packet `number`; `None` if the packet was opened before, or its epoch is too far away.
    pub fn key(&self, number: u64) -> Option<&impl Protector> {
        if self.forged >= MAX_FORGED || !self.window.is_new(number) {
            return None;
        }
        let keys = [Some(&self.current), self.previous.as_ref(), Some(&self.next)];
        keys.into_iter().flatten().find(|key| key.epoch == number >> self.bits)
    }

    /// Records that packet `number` was opened. Returns true if it is the highest number so far.
    pub fn on_opened(&mut self, number: u64) -> bool {
        if number >> self.bits > self.current.epoch {
            let after = self.next.next();
            let current = std::mem::replace(&mut self.next, after);
            self.previous = Some(std::mem::replace(&mut self.current, current));
        }
        self.window.insert(number)
    }

    /// Records a packet that failed authentication.
    pub fn on_forged(&mut self) {
        self.forged += 1;
    }
}

/// Number of packet numbers below the highest one for which duplicates can be detected. Ours: 90 ms of packets at 1
/// Gb/s.
const WINDOW: u64 = 8192;

/// Replay window: which packets were opened (RFC 4303 section 3.4.3).
struct Window {
    /// The highest opened number plus one.
    end: u64,
    seen: Box<[u64; (WINDOW / 64) as usize]>,
}

impl Default for Window {
    fn default() -> Self {
        Self { end: 0, seen: Box::new([0; (WINDOW / 64) as usize]) }
    }
}

impl Window {
    fn place(number: u64) -> (usize, u64) {
        let place = number % WINDOW;
        ((place / 64) as usize, 1 << (place % 64))
    }

    fn is_new(&self, number: u64) -> bool {
        let (word, bit) = Self::place(number);
        number >= self.end || (self.end - number <= WINDOW && self.seen[word] & bit == 0)
    }

    fn insert(&mut self, number: u64) -> bool {
        let newest = number >= self.end;
        if newest {
            // The bits of skipped numbers still belong to numbers that are now too old.
            let first = self.end.max((number + 1).saturating_sub(WINDOW));
            for skipped in first..=number {
                let (word, bit) = Self::place(skipped);
                self.seen[word] &= !bit;
            }
            self.end = number + 1;
        }
        let (word, bit) = Self::place(number);
        self.seen[word] |= bit;
        newest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn secret() -> Secret {
        Zeroizing::new([7; 32])
    }

    fn exchange(sealer: &mut Sealer, opener: &mut Opener, number: u64) -> bool {
        let mut body = *b"bytes";
        let tag = sealer.key(number).seal(number, b"header", &mut body);
        assert_ne!(&body, b"bytes");
        let Some(key) = opener.key(number) else { return false };
        let opened = key.open(number, b"header", &mut body, &tag).is_ok();
        assert!(!opened || &body == b"bytes");
        if opened {
            opener.on_opened(number);
        }
        opened
    }

    #[test]
    fn keys_change_with_numbers_and_late_packets_still_open() {
        for suite in [Suite::Aes256Gcm, Suite::ChaChaPoly] {
            let mut opener = Opener::new(suite, &secret(), 4);
            // A sealer only moves forward, so late packets need another one.
            let mut sealer = Sealer::new(suite, &secret(), 4);
            for number in (0..200).filter(|number| number % 16 != 15) {
                assert!(exchange(&mut sealer, &mut opener, number), "{number}");
            }
            assert_eq!(opener.current.epoch, 12);
            let mut late = Sealer::new(suite, &secret(), 4);
            assert!(!exchange(&mut late, &mut opener, 175), "two epochs ago");
            assert!(exchange(&mut late, &mut opener, 191), "one epoch ago");
            assert!(!exchange(&mut late, &mut opener, 191), "again");
            assert!(!exchange(&mut late, &mut opener, 230), "two epochs ahead");
        }
    }

    #[test]
    fn a_bit_that_differs_is_noticed_wherever_it_is() {
        let mut sealer = Sealer::new(Suite::Aes256Gcm, &secret(), EPOCH);
        let opener = Opener::new(Suite::Aes256Gcm, &secret(), EPOCH);
        let mut sealed = *b"bytes";
        let tag = sealer.key(9).seal(9, b"header", &mut sealed);
        let open = |number, header: &[u8], body: &mut [u8], tag: &Tag| {
            opener.key(number).unwrap().open(number, header, body, tag)
        };
        assert_eq!(open(9, b"header", &mut sealed.clone(), &tag), Ok(()));
        assert_eq!(open(8, b"header", &mut sealed.clone(), &tag), Err(Forged));
        assert_eq!(open(9, b"headex", &mut sealed.clone(), &tag), Err(Forged));
        for bit in 0..8 * sealed.len() {
            let mut body = sealed;
            body[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(open(9, b"header", &mut body, &tag), Err(Forged));
        }
        for bit in 0..128 {
            let mut tag = tag;
            tag[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(open(9, b"header", &mut sealed.clone(), &tag), Err(Forged));
        }
    }

    /// RFC 9001 section 6.6: what passes authentication after that may be forged, too.
    #[test]
    fn after_2_to_the_36_forged_packets_a_key_opens_none() {
        for (forged, opens) in [((1 << 36) - 2, true), ((1 << 36) - 1, false)] {
            let mut opener = Opener { forged, ..Opener::new(Suite::ChaChaPoly, &secret(), EPOCH) };
            let mut sealer = Sealer::new(Suite::ChaChaPoly, &secret(), EPOCH);
            assert!(exchange(&mut sealer, &mut opener, 0), "before the last of them");
            opener.on_forged();
            assert_eq!(exchange(&mut sealer, &mut opener, 1), opens, "{} forged", forged + 1);
        }
    }

    proptest! {
        /// Compares the window with a set: no number is accepted twice, and every number that is not too old is
        /// accepted once.
        #[test]
        fn a_number_is_new_once(steps in prop::collection::vec((any::<bool>(), 0..3 * WINDOW), 1..200)) {
            let mut window = Window::default();
            let mut seen = BTreeSet::new();
            let mut end = 0u64;
            for (ahead, step) in steps {
                let number = if ahead { end + step } else { end.saturating_sub(step) };
                let expected = !seen.contains(&number) && (number >= end || end - number <= WINDOW);
                prop_assert_eq!(window.is_new(number), expected);
                if expected {
                    prop_assert_eq!(window.insert(number), number >= end);
                    seen.insert(number);
                    end = end.max(number + 1);
                }
            }
        }
    }
}
