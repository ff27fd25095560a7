//! The time of a codec in units of one copy of the header, which depends less on the machine than nanoseconds do.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Number of passes. The fastest one counts, because it was disturbed least.
const PASSES: usize = 60;

/// An implementation to measure: its name, and a function that times one pass.
pub type Way<'a> = (String, Box<dyn FnMut() -> Duration + 'a>);

/// Number of packets that are copied repeatedly. They stay in the first-level cache even when the machine is loaded.
const HOT: usize = 256;

/// Prints, for every implementation, the nanoseconds per packet and the number of header copies that take as long.
///
/// Each call of an implementation processes all packets once and returns the time for that, preparation excluded.
pub fn report(name: &str, packets: &[&[u8]], ways: &mut [Way<'_>]) {
    let mut out = [0; 2048];
    let mut copy = || {
        timed(|| {
            for packet in packets.iter().take(HOT).cycle().take(packets.len()) {
                let packet = black_box(*packet);
                out[..packet.len()].copy_from_slice(packet);
                black_box(&mut out);
            }
        })
    };
    let best = |way: &mut dyn FnMut() -> Duration| {
        let least = (0..PASSES).map(|_| way()).min().unwrap_or_default();
        least.as_secs_f64() * 1e9 / packets.len() as f64
    };
    let copy_ns = best(&mut copy);
    println!("{name}: a copy of the header takes {copy_ns:.1} ns");
    for (what, way) in ways {
        let ns = best(way);
        println!("{name}: {what:<20} {ns:6.1} ns = {:5.1} copies", ns / copy_ns);
    }
}

/// Measures the run time of `work`.
#[allow(clippy::disallowed_methods, reason = "a benchmark measures time")]
pub fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}
