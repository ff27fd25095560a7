//! Any file at all: the audit must end, in bounded memory, with numbers that hang together.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tacit_captures::audit::{Report, audit_reader};
use tacit_link::wifi::phy::{Mode, Standard};
use tacit_proto::units::{BitRate, Duration};
use tacit_theory::Hop;

fuzz_target!(|bytes: &[u8]| {
    let Ok(audit) = audit_reader(bytes, "fuzz") else { return };
    assert!(audit.total.data_packets + audit.total.ack_packets <= audit.tcp_packets);
    let mode = Mode::for_rate(Standard::N, BitRate::from_mbps(150)).expect("150 Mb/s is an 802.11n rate");
    let prediction = audit.predict(&Hop::new(Standard::N, mode), Duration::from_millis(20));
    for scheme in prediction.iter().flat_map(|prediction| &prediction.schemes) {
        assert!(scheme.goodput_mbps.is_finite() && scheme.acks_per_second.is_finite(), "{scheme:?}");
    }
    Report { audit, prediction }.to_text();
});
