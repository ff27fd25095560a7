//! How long a codec takes in copies of the header: a number that depends less on the machine than nanoseconds do.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Passes of which the best counts: the least disturbed one.
const PASSES: usize = 60;

/// Name of a way to copy, and one timed pass of it.
pub type Way<'a> = (String, Box<dyn FnMut() -> Duration + 'a>);

/// Packets that are copied over and over: few enough to stay in the nearest cache under any other load of the machine.
const HOT: usize = 256;

/// Prints nanoseconds per packet of each way, and how many copies of the packet that is.
///
/// A way does its work on all packets once and returns the time that took, without that for its preparation.
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

/// How long `work` takes.
#[allow(clippy::disallowed_methods, reason = "a benchmark measures time")]
pub fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}
