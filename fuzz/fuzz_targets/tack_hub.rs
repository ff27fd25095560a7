//! Datagrams from anyone to both ends of a TACK connection during its handshake, and packets from a peer on an
//! established one.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match bytes.split_first() {
        Some((first, rest)) if first % 2 == 0 => tacit_tack::fuzzing::anybody(rest),
        Some((_, rest)) => tacit_tack::fuzzing::peer(rest),
        None => {}
    }
});
