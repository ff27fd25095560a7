//! The hot path does not allocate per packet.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod common;

use std::alloc::System;

use common::{bulk, wlan};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tacit_between::fastack;
use tacit_link::wifi::phy::Standard;
use tacit_packet::units::Duration;
use tacit_sim::Setup;
use tacit_sim::setup::ApDriver;
use tacit_tcp as tcp;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Ten seconds are about 150,000 packets. Only the capacity of queues and the histogram of queueing delays grow
/// occasionally.
fn assert_no_more_in_a_longer_run(change: impl Fn(&mut Setup)) {
    let allocations = |seconds: u64| {
        let mut setup = wlan(Standard::N, 150, 2, &bulk(tcp::Config::default()));
        change(&mut setup);
        setup.duration = Duration::from_secs(seconds);
        let region = Region::new(ALLOCATOR);
        tacit_sim::run(&setup).unwrap();
        let change = region.change();
        change.allocations + change.reallocations
    };
    let (short, long) = (allocations(4), allocations(14));
    let growth = long.saturating_sub(short);
    println!("{short} allocations in 4 s, {growth} more in the next 10 s");
    assert!(growth < 200, "{growth} allocations in ten seconds");
}

// One test: two would count each other's allocations.
#[test]
fn a_longer_run_allocates_no_more() {
    assert_no_more_in_a_longer_run(|_| {});
    assert_no_more_in_a_longer_run(|setup| {
        setup.bss[0].access_point.driver = ApDriver::FastAck(fastack::Config::USUAL);
    });
}
