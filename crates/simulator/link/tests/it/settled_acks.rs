//! Reports to a TCP/HACK driver about the ACKs that it sent as packets. "Arrived" means passed up, not only
//! acknowledged, because both ends start a compression context from the ACK.

use crate::common::{Channel, Delivery, TestPacket};
use proptest::prelude::*;
use tacit_link::loss::Loss;
use tacit_link::wifi::phy::{Mode, Standard};
use tacit_link::wifi::{BssConfig, Interrupt, StationConfig, StationId};
use tacit_packet::units::{BitRate, Duration, Instant};

const AP: StationId = StationId::AP;
const CLIENT: StationId = StationId(1);

/// An access point that sends ACKs to its client, with scripted losses.
struct Harness {
    bss: Channel,
    now: Instant,
    sent: u32,
    /// ACKs that reached the client's driver.
    passed_up: Vec<u32>,
    /// Reports to the access point's driver, in order: the ACK, and whether it arrived.
    told: Vec<(u32, bool)>,
}

impl Harness {
    fn new(data: impl IntoIterator<Item = u64>, link_acks: impl IntoIterator<Item = u64>) -> Self {
        let mut client = StationConfig::new(Mode::for_rate(Standard::N, BitRate::from_mbps(150)).unwrap());
        client.downlink_loss = Loss::Scripted(data.into_iter().collect());
        client.link_ack_loss = Loss::Scripted(link_acks.into_iter().collect());
        let config =
            BssConfig { beacon_interval: None, retry_limit: 2, ..BssConfig::new(Standard::N, vec![client]) };
        let end = Instant::ZERO + Duration::from_secs(10);
        let mut bss = Channel::new(config, 1, "test", &["ap", "client"], (Instant::ZERO, end));
        bss.enable_hack(AP.first_function(), None);
        Self { bss, now: Instant::ZERO, sent: 0, passed_up: Vec::new(), told: Vec::new() }
    }

    fn send(&mut self, count: u32) {
        for _ in 0..count {
            assert!(self.bss.enqueue(
                self.now,
                AP.first_function(),
                CLIENT.first_function(),
                TestPacket::ack(self.sent)
            ));
            self.sent += 1;
        }
    }

    /// Runs for `millis`; every ACK reported as arrived must have reached the other end by then.
    fn run(&mut self, millis: u64) {
        let until = self.now + Duration::from_millis(millis);
        while let Some(at) = self.bss.poll_timeout().filter(|at| *at <= until) {
            self.bss.handle_timeout(at);
            while let Some(Delivery { payload: TestPacket { number, .. }, .. }) = self.bss.poll_deliver() {
                self.passed_up.push(number);
            }
            while let Some(interrupt) = self.bss.poll_interrupt() {
                let Interrupt::Settled { payload, delivered, .. } = interrupt else { continue };
                let number = self.bss.take(payload).number;
                assert!(!delivered || self.passed_up.contains(&number), "{number} is not passed up at {at}");
                self.told.push((number, delivered));
            }
        }
        self.now = until;
    }

    fn told_since(&self, first: u32) -> Vec<(u32, bool)> {
        self.told.iter().copied().filter(|(number, _)| *number >= first).collect()
    }
}

#[test]
fn mpdus_held_behind_a_gap_have_not_arrived() {
    // Two ACKs are lost, and so is every response to the requests that follow: the window advances without the client
    // knowing.
    let mut h = Harness::new(0..2, 0..3);
    h.send(2);
    h.run(20);
    assert_eq!(h.told, [(0, false), (1, false)]);
    // The next two are acknowledged at once, but the client waits for the first two until its reorder timeout.
    h.send(2);
    h.run(20);
    assert_eq!((h.passed_up.as_slice(), h.told_since(2)), (&[][..], vec![(2, false), (3, false)]));
    h.run(200);
    assert_eq!(h.passed_up, [2, 3]);
}

#[test]
fn a_number_beyond_the_recipients_window_ends_the_doubt() {
    let mut h = Harness::new(0..2, 0..3);
    h.send(2);
    h.run(20);
    for _ in 0..35 {
        h.send(2);
        h.run(1);
    }
    h.run(20);
    // Number 1 was the last that was given up, and number 65 moves the window past it.
    let arrived = (2..72).map(|number| (number, number >= 65)).collect::<Vec<_>>();
    assert_eq!(h.told_since(2), arrived);
}

#[test]
fn an_answered_request_ends_the_doubt() {
    // As above, but the next two get no Block Ack at first: the request for it announces the start of the window.
    let mut h = Harness::new(0..2, 0..4);
    h.send(2);
    h.run(20);
    h.send(2);
    h.run(20);
    assert_eq!((h.passed_up.as_slice(), h.told_since(2)), (&[2, 3][..], vec![(2, true), (3, true)]));
}

proptest! {
    /// Under any losses, an ACK is reported as arrived only if it is.
    #[test]
    fn arrived_mpdus_were_passed_up(
        data in prop::collection::btree_set(0_u64..300, 0..200),
        link_acks in prop::collection::btree_set(0_u64..200, 0..120),
        batches in prop::collection::vec((1_u32..8, 0_u64..30), 1..40),
    ) {
        let mut h = Harness::new(data, link_acks);
        for (count, pause) in batches {
            h.send(count);
            h.run(pause);
        }
        h.run(1_000);
        prop_assert_eq!(h.told.len(), h.sent as usize);
    }
}
