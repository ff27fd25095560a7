//! Wall time per simulated second of the worlds that `tacit bench` measures as a whole.
#![allow(missing_docs, reason = "criterion's macros make functions without documentation")]

#[path = "../tests/common/mod.rs"]
mod common;

use common::{bulk, saturating, wlan};
use criterion::{Criterion, criterion_group, criterion_main};
use tacit_link::wifi::phy::Standard;
use tacit_packet::units::{Duration, Instant};
use tacit_sim::Setup;
use tacit_tcp as tcp;

/// One second after a warm-up of two, so that windows are open and queues full.
fn three_seconds(setup: Setup) -> Setup {
    Setup { duration: Duration::from_secs(3), measure_from: Instant::ZERO + Duration::from_secs(2), ..setup }
}

fn worlds(criterion: &mut Criterion) {
    let download = bulk(tcp::Config::default());
    let worlds = [
        ("11n-150-tcp-1", wlan(Standard::N, 150, 1, &download)),
        ("11n-150-tcp-10", wlan(Standard::N, 150, 10, &download)),
        ("11a-54-tcp-2", wlan(Standard::A, 54, 2, &download)),
        ("11n-150-udp-20", wlan(Standard::N, 150, 20, &saturating(1500))),
    ];
    let mut group = criterion.benchmark_group("three simulated seconds");
    group.sample_size(20);
    for (name, setup) in worlds {
        let setup = three_seconds(setup);
        group.bench_function(name, |bencher| bencher.iter(|| tacit_sim::run(&setup)));
    }
    group.finish();
}

criterion_group!(benches, worlds);
criterion_main!(benches);
