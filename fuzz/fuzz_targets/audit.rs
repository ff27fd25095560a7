//! Arbitrary files: the audit must terminate in bounded memory with consistent numbers.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tacit_captures::audit::{Report, audit_reader};
use tacit_packet::units::Duration;
use tacit_theory::hop::usual;

fuzz_target!(|bytes: &[u8]| {
    let Ok(audit) = audit_reader(bytes, "fuzz") else { return };
    assert!(audit.total.data_packets + audit.total.ack_packets <= audit.tcp_packets);
    // For the hop in the capture's radio headers, and for the default.
    for hop in [audit.hop(), usual()] {
        let prediction = audit.predict(&hop, Duration::from_millis(20));
        for scheme in prediction.iter().flat_map(|prediction| &prediction.schemes) {
            assert!(scheme.goodput_mbps.is_finite() && scheme.acks_per_second.is_finite(), "{scheme:?}");
        }
    }
    let prediction = audit.predict(&audit.hop(), Duration::from_millis(20));
    Report { audit, prediction }.to_text();
});
