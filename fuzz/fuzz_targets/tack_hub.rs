//! Datagrams of anybody to both ends of a TACK connection that is being made, and packets of a peer to one that stands.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match bytes.split_first() {
        Some((first, rest)) if first % 2 == 0 => tacit_tack::fuzzing::anybody(rest),
        Some((_, rest)) => tacit_tack::fuzzing::peer(rest),
        None => {}
    }
});
