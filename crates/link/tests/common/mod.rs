//! Set-ups the tests share.
#![allow(dead_code, reason = "each test binary uses its own part")]
#![allow(clippy::unwrap_used, reason = "set-ups for tests")]

use tacit_link::payload::{Payload, PayloadClass};
use tacit_link::queue::{QueueConfig, QueueLimit};
use tacit_link::wifi::{Bss, BssConfig};
use tacit_proto::units::{Bytes, Duration, Instant};

/// Bytes of a [`Blob`].
pub const BLOB: u64 = 1500;

/// A full packet of data that cannot be told from another.
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

/// A full packet of data with a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbered(pub u32);

impl Payload for Numbered {
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

/// Runs a channel for `span`, measured from the start, with queues that `fill` keeps full; how many packets arrive.
pub fn saturate(bss: &mut Bss<Blob>, span: Duration, mut fill: impl FnMut(&mut Bss<Blob>, Instant)) -> u64 {
    let end = Instant::ZERO + span;
    fill(bss, Instant::ZERO);
    let (mut delivered, mut last) = (0, Instant::ZERO);
    while let Some(now) = bss.poll_timeout().filter(|now| *now < end) {
        assert!(now >= last, "time runs forward");
        last = now;
        bss.handle_timeout(now);
        while bss.poll_deliver().is_some() {
            delivered += 1;
        }
        while bss.poll_drained().is_some() {}
        fill(bss, now);
    }
    bss.check().unwrap();
    assert_eq!(bss.airtime(end).total(), span);
    delivered
}
