//! Arbitrary IP packets in both directions of a host whose ACKs are thinned. No packet is lost or kept for ever, none passes
//! twice, and what passes leaves in order.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tacit_between::ack_hold::{AckHold, HoldLaw, Offered, QueueCounts};
use tacit_packet::units::{Bytes, Duration, Instant};
use tacit_packet::wire;
use tacit_packet::wire::headers::Headers;

/// Longer than any ACK waits.
const LONGEST: Duration = Duration::from_millis(100);

fuzz_target!(|bytes: &[u8]| {
    let mut hold = AckHold::new(HoldLaw::Thin);
    let (mut now, mut rest, mut number) = (Instant::ZERO, bytes, 0_u32);
    let mut passed = Vec::new();
    let mut counts = QueueCounts::default();
    // What happens, for how long nothing did, and the length of the packet.
    while let [what, later, len, behind @ ..] = rest {
        let (packet, next) = behind.split_at(behind.len().min(usize::from(*len)));
        rest = next;
        now += Duration::from_micros(u64::from(*later) * 100);
        let parsed = wire::segment(packet);
        let headers = parsed.map(|(headers, _)| headers).or_else(|| Headers::read(packet));
        match what % 4 {
            0 => {
                if let Some((headers, segment)) = parsed {
                    hold.on_reverse_segment(now, headers.reverse_key(), &segment);
                }
            }
            1 => {
                counts.waiting = Bytes(u64::from(*later) * 64);
                counts.sent.0 += u64::from(*len) * 16;
                hold.observe(now, counts);
            }
            _ => {
                let key = headers.map(|headers| headers.flow_key()).unwrap_or_default();
                let segment = parsed.map(|(_, segment)| segment);
                let offered = Offered { key, segment, len: packet.len() as u32 };
                let replaced = hold.offer(now, offered, number, &mut |number| passed.push(number));
                assert!(replaced.is_none_or(|replaced| replaced < number));
                number += 1;
            }
        }
        hold.handle_timeout(now, &mut |number| passed.push(number));
        assert!(hold.poll_timeout().is_none_or(|due| due > now && due <= now + LONGEST));
        assert_eq!(passed.len() as u64 + hold.dropped() + hold.iter().count() as u64, u64::from(number));
    }
    hold.handle_timeout(now + LONGEST, &mut |number| passed.push(number));
    assert_eq!(hold.iter().count(), 0);
    let all = passed.len();
    passed.sort_unstable();
    passed.dedup();
    assert_eq!(passed.len(), all, "a packet passed twice");
});
