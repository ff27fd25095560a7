//! ACKs of real receivers: bit-exact round trip, and the resulting number of bytes.

use crate::hack_support::{FrameRule, capture, round_trip};
use tacit_rohc::hack::Coding;

/// Capture, frame rule, and the maximum of bytes per ACK including frame overhead: coded per ACK, and batched.
const GOALS: [(&str, FrameRule, f64, f64); 5] = [
    ("tun_11a_25MB_v4", FrameRule { gap_us: 1000, acks: 21, frames: usize::MAX }, 4.49, 4.49),
    ("tun_11n_aggr_v4", FrameRule { gap_us: 1000, acks: 21, frames: usize::MAX }, 4.49, 2.24),
    ("veth_clean_v4", FrameRule { gap_us: 1000, acks: 21, frames: usize::MAX }, 2.25, 1.12),
    ("veth_loss1_v4", FrameRule { gap_us: 1000, acks: 21, frames: usize::MAX }, 3.15, 1.57),
    ("veth_clean_v6", FrameRule { gap_us: 1000, acks: 21, frames: usize::MAX }, 2.25, 1.12),
];

#[test]
fn captures_come_back_bit_for_bit_within_the_goals() {
    for (name, rule, per_ack_goal, batch_goal) in GOALS {
        let Some(packets) = capture(name) else { continue };
        for (coding, goal) in [(Coding::PerAck, per_ack_goal), (Coding::Batch, batch_goal)] {
            let cut = round_trip(&packets, coding, rule);
            let long =
                round_trip(&packets, coding, FrameRule { gap_us: u64::MAX, acks: 64, frames: usize::MAX });
            let alone = round_trip(&packets, coding, FrameRule { gap_us: 0, acks: 1, frames: usize::MAX });
            let afresh = round_trip(&packets, coding, FrameRule { frames: 20, ..rule });
            println!(
                "{name} {coding:?}: {:.3} B/ACK ({:.2} ACKs/frame); frames of 64: {:.3}; of 1: {:.3}; a native ACK every 20 frames: {:.3}",
                cut.per_ack(),
                cut.acks as f64 / cut.frames as f64,
                long.per_ack(),
                alone.per_ack(),
                afresh.per_ack(),
            );
            assert!(cut.per_ack() <= goal, "{name} {coding:?}: {} B/ACK", cut.per_ack());
        }
    }
}
