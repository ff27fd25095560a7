//! Arbitrary text as the trace of a cellular link: refused with a line number, or delivered as the trace says.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use tacit_link::cellular::{OPPORTUNITY, Trace};
use tacit_link::queue::QueueLimit;
use tacit_link::wired::{Pipe, PipeConfig, Service};
use tacit_link::{Holders, PacketRef};
use tacit_packet::units::{BitRate, Duration, Instant};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let trace = match Trace::parse(&text) {
        Ok(trace) => trace,
        Err(error) => {
            assert!((1..=text.lines().count() + 1).contains(&error.line), "{error}");
            return;
        }
    };
    // Full packets from the start: one per opportunity except those at time zero, and again in the next period.
    let at_zero =
        text.lines().take_while(|line| line.trim_end_matches('\r').bytes().all(|b| b == b'0')).count();
    let count = 2 * trace.opportunities() - at_zero;
    let config = PipeConfig {
        service: Service::Trace(Arc::new(trace.clone())),
        ..PipeConfig::new(BitRate::from_mbps(1), Duration::ZERO, QueueLimit::default().into())
    };
    let mut pipe = Pipe::new(config, 1, "fuzz");
    let mut holders = Holders::default();
    for _ in 0..count {
        let packet = PacketRef { id: holders.insert(), len: OPPORTUNITY.0 as u32, ..PacketRef::default() };
        assert!(pipe.enqueue(Instant::ZERO, packet, &mut holders));
    }
    let (mut delivered, mut last) = (0, Instant::ZERO);
    while let Some(now) = pipe.poll_timeout() {
        assert!(now >= last, "time goes on");
        last = now;
        while let Some(packet) = pipe.poll_deliver(now, &mut holders) {
            holders.release(packet);
            delivered += 1;
        }
    }
    assert_eq!(delivered, count);
    let two_periods = Duration::from_millis(2 * u64::from(trace.period_millis()));
    assert_eq!(last, Instant::ZERO + two_periods);
});
