//! Set-ups the tests share.
#![allow(dead_code, reason = "each test binary uses its own part")]

use tacit_link::payload::{Payload, PayloadClass};
use tacit_link::queue::{QueueConfig, QueueLimit};
use tacit_link::wifi::{Bss, BssConfig};
use tacit_proto::units::{Bytes, Duration, Instant};

/// Octets of a [`Blob`].
pub const BLOB: u64 = 1500;

/// A full packet of data that nobody tells from another.
#[derive(Clone, Debug)]
pub struct Blob;

impl Payload for Blob {
    fn len(&self) -> Bytes {
        Bytes(BLOB)
    }
    fn class(&self) -> PayloadClass {
        PayloadClass::Data
    }
}

/// Room for the packet on the air and the one after it.
pub fn short_queue() -> QueueConfig {
    QueueLimit { packets: Some(2), bytes: None }.into()
}

/// A channel whose draws are those of `label` and `seed`, measured for `span` from the start.
pub fn channel<P: Payload>(config: BssConfig, seed: u64, label: &str, span: Duration) -> Bss<P> {
    let names: Vec<_> = (0..=config.stations.len()).map(|n| format!("station {n}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    Bss::new(config, seed, label, &names, (Instant::ZERO, Instant::ZERO + span))
}
