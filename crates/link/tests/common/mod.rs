//! Set-ups shared by the tests.
#![allow(dead_code, reason = "each test binary uses its own part")]
#![allow(clippy::unwrap_used, reason = "set-ups for tests")]

use tacit_link::payload::{Payload, PayloadClass};
use tacit_link::queue::{QueueConfig, QueueLimit};
use tacit_link::wifi::{Bss, BssConfig};
use tacit_proto::units::{Bytes, Duration, Instant};

/// Bytes of a full packet.
pub const FULL_LEN: u64 = 1500;
/// Bytes of a pure ACK.
const ACK_LEN: u64 = 52;
/// A full-size packet whose number does not matter.
pub const FULL: TestPacket = TestPacket::full(0);

/// A test packet; one of 52 bytes is a pure ACK. All tests share this type, because the compiler instantiates the MAC
/// per packet type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestPacket {
    pub number: u32,
    pub bytes: u64,
}

impl TestPacket {
    /// A full-size data packet.
    pub const fn full(number: u32) -> Self {
        Self::of_len(number, FULL_LEN)
    }

    pub const fn ack(number: u32) -> Self {
        Self::of_len(number, ACK_LEN)
    }

    pub const fn of_len(number: u32, bytes: u64) -> Self {
        Self { number, bytes }
    }
}

impl Payload for TestPacket {
    fn len(&self) -> Bytes {
        Bytes(self.bytes)
    }
    fn class(&self) -> PayloadClass {
        if self.bytes == ACK_LEN { PayloadClass::Ack } else { PayloadClass::Data }
    }
}

/// Room for the packet on the air and one more.
pub fn short_queue() -> QueueConfig {
    QueueLimit { packets: Some(2), bytes: None }.into()
}

/// A channel with random draws from `label` and `seed`, measured over `span` from the start.
pub fn channel(config: BssConfig, seed: u64, label: &str, span: Duration) -> Bss<TestPacket> {
    let names: Vec<_> = (0..=config.stations.len()).map(|n| format!("station {n}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    Bss::new(config, seed, label, &names, (Instant::ZERO, Instant::ZERO + span))
}

/// Runs a channel for `span`, measured from the start, with queues that `fill` keeps full; returns the number of
/// packets that arrive.
pub fn saturate(
    bss: &mut Bss<TestPacket>,
    span: Duration,
    mut fill: impl FnMut(&mut Bss<TestPacket>, Instant),
) -> u64 {
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
