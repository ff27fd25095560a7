//! Arbitrary bytes as a TACK packet: refused, or re-encoded to the same bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tacit_packet::tack::packet::TAG_LEN;
use tacit_packet::tack::wire::{decode, encode};

fuzz_target!(|plain: &[u8]| {
    // A tag of zeros is appended. A tag in the input would be mutated most of the time without any benefit.
    let bytes = [plain, &[0; TAG_LEN as usize]].concat();
    let Ok((packet, content)) = decode(&bytes) else { return };
    assert_eq!(packet.len() as usize, bytes.len());
    let mut again = Vec::new();
    encode(&packet, content, &mut again).expect("a decoded packet can be encoded");
    assert_eq!(again, bytes);
});
