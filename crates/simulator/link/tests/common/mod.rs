//! Set-ups shared by the tests.
#![allow(dead_code, reason = "each test binary uses its own part")]
#![allow(clippy::unwrap_used, reason = "set-ups for tests")]

use std::ops::{Deref, DerefMut};

use tacit_link::queue::{QueueConfig, QueueLimit};
use tacit_link::wifi::{AirFrame, Bss, BssConfig, FunctionId};
use tacit_link::{Holders, PacketRef, PayloadClass};
use tacit_packet::units::{Bytes, Duration, Instant};

/// Bytes of a full packet.
pub const FULL_LEN: u64 = 1500;
/// Bytes of a pure ACK.
const ACK_LEN: u64 = 52;
/// A full-size packet whose number does not matter.
pub const FULL: TestPacket = TestPacket::full(0);

/// A test packet; one of 52 bytes is a pure ACK.
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

    pub const fn len(&self) -> Bytes {
        Bytes(self.bytes)
    }
}

/// A channel, and the packets in it. When it is dropped, it verifies that each packet has just the holders there are.
pub struct Channel {
    bss: Bss,
    holders: Holders,
    packets: Vec<TestPacket>,
}

/// A packet that is passed up.
pub struct Delivery {
    pub to: FunctionId,
    pub from: FunctionId,
    pub missing: u16,
    pub payload: TestPacket,
}

impl Channel {
    pub fn new(
        config: BssConfig,
        seed: u64,
        name: &str,
        station_names: &[&str],
        measure: (Instant, Instant),
    ) -> Self {
        let bss = Bss::new(config, seed, name, station_names, measure);
        Self { bss, holders: Holders::default(), packets: Vec::new() }
    }

    pub fn enqueue(&mut self, now: Instant, from: FunctionId, to: FunctionId, packet: TestPacket) -> bool {
        let id = self.holders.insert();
        match self.packets.get_mut(id as usize) {
            Some(place) => *place = packet,
            None => self.packets.push(packet),
        }
        let class = if packet.bytes == ACK_LEN { PayloadClass::Ack } else { PayloadClass::Data };
        let handle = PacketRef { id, len: packet.bytes as u32, class, ..PacketRef::default() };
        self.bss.enqueue(now, from, to, handle, &mut self.holders)
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        self.bss.handle_timeout(now, &mut self.holders);
    }

    /// The packet out of the hands of one holder.
    pub fn take(&mut self, packet: PacketRef) -> TestPacket {
        self.holders.release(packet);
        self.packets[packet.id as usize]
    }

    pub fn poll_deliver(&mut self) -> Option<Delivery> {
        let tacit_link::wifi::Delivery { to, from, missing, payload } = self.bss.poll_deliver()?;
        Some(Delivery { to, from, missing, payload: self.take(payload) })
    }

    pub fn poll_air(&mut self) -> Option<AirFrame<TestPacket>> {
        let frame = self.bss.poll_air()?;
        Some(frame.map(|packet| self.take(packet)))
    }
}

impl Deref for Channel {
    type Target = Bss;

    fn deref(&self) -> &Bss {
        &self.bss
    }
}

impl DerefMut for Channel {
    fn deref_mut(&mut self) -> &mut Bss {
        &mut self.bss
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.holders.check(|see| self.bss.each_held(see)).unwrap();
        }
    }
}

/// Room for the packet on the air and one more.
pub fn short_queue() -> QueueConfig {
    QueueLimit { packets: Some(2), bytes: None }.into()
}

/// A channel with random draws from `label` and `seed`, measured over `span` from the start.
pub fn channel(config: BssConfig, seed: u64, label: &str, span: Duration) -> Channel {
    let names: Vec<_> = (0..=config.stations.len()).map(|n| format!("station {n}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    Channel::new(config, seed, label, &names, (Instant::ZERO, Instant::ZERO + span))
}

/// Runs a channel for `span`, measured from the start, with queues that `fill` keeps full; returns the number of
/// packets that arrive.
pub fn saturate(bss: &mut Channel, span: Duration, mut fill: impl FnMut(&mut Channel, Instant)) -> u64 {
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
