//! Strategies that generate scripts for `flow`.

use crate::flow::Script;
use proptest::prelude::*;

/// Scripts of up to `packets` packets in which every field may change, often or rarely.
pub fn scripts(packets: usize) -> impl Strategy<Value = Script> {
    let amount = prop_oneof![any::<u32>(), 0u32..200, Just(0xffff_ffff), Just(0x8000_0000)];
    let change = (0u8..26, amount);
    let quiet = prop::collection::vec(change.clone(), 0..2);
    let busy = prop::collection::vec(change, 0..6);
    prop::collection::vec(prop_oneof![4 => Just(vec![(0, 2)]), 3 => quiet, 1 => busy], 1..packets)
}
