//! Integration tests of libtacit.
#![allow(clippy::unwrap_used, reason = "a failure is a panic")]

use tacit_rohc::header::{Header, MAX_HEADER_LEN};

mod calls;
mod equal;
mod header;
mod hostile;
mod in_rust;
#[path = "../../../../core/rohc/tests/it/hack_support/packets.rs"]
mod packets;

/// The packet that consists of this header alone.
fn bytes_of(header: &Header) -> Vec<u8> {
    let mut bytes = [0; MAX_HEADER_LEN];
    let len = header.emit(&mut bytes).unwrap();
    bytes[..len].to_vec()
}
