use super::*;
use tacit_packet::units::{Duration, FlowId, HostId};

/// A packet of a flow.
fn packet(flow: u64, number: u32, bytes: u64) -> PacketRef {
    let flow = FlowKey::simulated(FlowId(flow as u32), HostId(0));
    PacketRef { id: number, len: bytes as u32, flow, ..PacketRef::default() }
}

/// Its flow and its number.
fn named(packet: &PacketRef) -> (u64, u32) {
    (packet.flow.as_u64() >> 32, packet.id)
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn queue(packets: Option<u32>, quantum: u32) -> FqCoDel {
    let config = FqCoDelConfig { quantum, ..FqCoDelConfig::MAC80211 };
    FqCoDel::new(QueueLimit { packets, bytes: None }, config)
}

fn push(queue: &mut FqCoDel, flow: u64, numbers: core::ops::Range<u32>, bytes: u64) -> Vec<PacketRef> {
    let mut dropped = Vec::new();
    for number in numbers {
        assert!(queue.push(at(0), packet(flow, number, bytes), &mut |payload| dropped.push(payload)));
    }
    dropped
}

/// Flow and number of the next `count` packets.
fn take(queue: &mut FqCoDel, ms: u64, count: usize) -> Vec<(u64, u32)> {
    let mut next = || {
        queue.front(at(ms), &mut |_| panic!("nothing is dropped"))?;
        queue.pop().map(|queued| named(&queued.payload))
    };
    (0..count).map_while(|_| next()).collect()
}

#[test]
fn flows_take_turns() {
    let mut queue = queue(None, 1_500);
    push(&mut queue, 1, 0..3, 1_500);
    push(&mut queue, 2, 0..3, 1_500);
    assert_eq!(take(&mut queue, 0, 9), [(1, 0), (2, 0), (1, 1), (2, 1), (1, 2), (2, 2)]);
    assert_eq!(queue.len(), 0);
}

#[test]
fn turns_are_counted_in_bytes() {
    let mut queue = queue(None, 1_500);
    push(&mut queue, 1, 0..4, 1_500);
    push(&mut queue, 2, 0..40, 150);
    let taken = take(&mut queue, 0, 22);
    // Ten small packets have the same number of bytes as a large one.
    assert_eq!(taken.iter().filter(|(flow, _)| *flow == 1).count(), 2);
}

#[test]
fn a_sparse_flow_goes_first() {
    let mut queue = queue(None, 300);
    push(&mut queue, 1, 0..50, 1_500);
    assert_eq!(take(&mut queue, 0, 3), [(1, 0), (1, 1), (1, 2)]);
    // An ACK of an otherwise idle flow does not wait behind 47 packets.
    push(&mut queue, 2, 0..1, 52);
    assert_eq!(take(&mut queue, 0, 2), [(2, 0), (1, 3)]);
    // Neither does its next ACK, which arrives after the flow's turn has ended.
    push(&mut queue, 2, 1..2, 52);
    assert_eq!(take(&mut queue, 0, 1), [(2, 1)]);
}

#[test]
fn a_flow_that_stops_for_a_moment_is_not_new_again() {
    let mut queue = queue(None, 1_500);
    push(&mut queue, 1, 0..50, 300);
    push(&mut queue, 2, 0..1, 52);
    // Flow 1 has a turn of five packets, flow 2 has one packet; its queue becomes empty and it goes behind flow 1.
    assert_eq!(take(&mut queue, 0, 7), [(1, 0), (1, 1), (1, 2), (1, 3), (1, 4), (2, 0), (1, 5)]);
    // If it counted as a new flow its next packet would leave at once.
    push(&mut queue, 2, 1..2, 52);
    assert_eq!(take(&mut queue, 0, 5), [(1, 6), (1, 7), (1, 8), (1, 9), (2, 1)]);
}

#[test]
fn a_full_queue_takes_from_the_longest_flow() {
    let mut queue = queue(Some(10), 1_500);
    assert!(push(&mut queue, 1, 0..9, 1_500).is_empty());
    assert!(push(&mut queue, 2, 0..1, 1_500).is_empty());
    assert!(!queue.has_room(Bytes(1)));
    let dropped = push(&mut queue, 2, 1..3, 1_500);
    // Flow 1 loses its oldest packets.
    assert_eq!(dropped.iter().map(named).collect::<Vec<_>>(), [(1, 0), (1, 1)]);
    assert_eq!((queue.len(), queue.peak()), (10, 10));
}

/// No more than necessary: one arriving packet causes one drop.
#[test]
fn one_packet_too_many_costs_one() {
    let mut queue = queue(Some(10), 1_500);
    push(&mut queue, 1, 0..10, 1_500);
    assert_eq!(push(&mut queue, 2, 0..1, 1_500).len(), 1);
    assert_eq!(queue.len(), 10);
}

/// The longest flow is the one with the most bytes, not packets: a download loses packets, not the ACKs of an upload.
#[test]
fn the_longest_flow_is_that_with_most_bytes() {
    let mut queue = queue(Some(10), 1_500);
    push(&mut queue, 1, 0..8, 52);
    push(&mut queue, 2, 0..2, 1_500);
    let dropped = push(&mut queue, 1, 8..9, 52);
    assert_eq!(dropped.iter().map(named).collect::<Vec<_>>(), [(2, 0)]);
}

#[test]
fn codel_works_on_each_flow_by_itself() {
    let mut queue = queue(None, 1_500);
    let mut dropped = Vec::new();
    let mut number = 0;
    let mut arrive = |queue: &mut FqCoDel, ms, flow, count| {
        for _ in 0..count {
            queue.push(at(ms), packet(flow, number, 1_500), &mut |_| panic!("there is room"));
            number += 1;
        }
    };
    arrive(&mut queue, 0, 1, 100);
    for ms in 0..600 {
        // One packet leaves per millisecond; flow 1 has a standing queue, flow 2 sends one packet every ten
        // milliseconds.
        arrive(&mut queue, ms, 1, 1);
        if ms % 10 == 0 {
            arrive(&mut queue, ms, 2, 1);
        }
        queue.front(at(ms), &mut |payload| dropped.push(named(&payload).0)).unwrap();
        queue.pop().unwrap();
    }
    assert!(dropped.len() > 3, "{dropped:?}");
    assert!(dropped.iter().all(|flow| *flow == 1), "{dropped:?}");
}

proptest::proptest! {
    /// After any sequence of operations, each packet leaves once, each flow in order, and the counts are consistent.
    #[test]
    fn nothing_is_made_or_lost(steps in proptest::collection::vec((0_u64..5, 0_u32..4, 40_u64..1500), 1..400)) {
        let mut queue = queue(Some(20), 300);
        let (mut pushed, mut gone) = (0_u32, 0_usize);
        let mut last = [None; 5];
        for (ms, (flow, action, bytes)) in (0_u64..).zip(steps) {
            let now = at(ms * 7);
            let mut dropped = 0;
            let mut count = |_| dropped += 1;
            if action == 0 {
                if queue.front(now, &mut count).is_some() {
                    let payload = queue.pop().expect("there is a front").payload;
                    gone += 1;
                    let (flow, number) = named(&payload);
                    let last = &mut last[flow as usize];
                    proptest::prop_assert!(*last < Some(number));
                    *last = Some(number);
                }
            } else {
                queue.push(now, packet(flow, pushed, bytes), &mut count);
                pushed += 1;
            }
            gone += dropped;
            proptest::prop_assert_eq!(queue.len() + gone, pushed as usize);
            proptest::prop_assert!(queue.len() <= 20);
        }
    }
}
