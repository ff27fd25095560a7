//! Every packet of any legal flow is restored bit for bit, even if packets in between are lost.

use crate::{flow, scripts};
use proptest::prelude::*;
use tacit_rohc::{CidSpace, CompressError, Compressor, CompressorConfig, Decompressor, DecompressorConfig};

/// Compresses all packets and decompresses those for which `arrives` is true. Each of these must be restored unchanged.
fn check(
    packets: &[Vec<u8>],
    config: CompressorConfig,
    mut arrives: impl FnMut(usize) -> bool,
) -> Result<(), TestCaseError> {
    let mut compressor = Compressor::new(config);
    let mut decompressor = Decompressor::new(DecompressorConfig { cids: config.cids, ..Default::default() });
    let (mut rohc, mut back) = ([0; 2000], [0; 2000]);
    let mut sent = 0;
    for (at, packet) in packets.iter().enumerate() {
        let compressed = match compressor.compress(packet, &mut rohc) {
            Ok(compressed) => compressed,
            Err(CompressError::Options) => continue,
            Err(error) => return Err(TestCaseError::fail(format!("packet {at}: {error}"))),
        };
        prop_assert!(
            compressed.len <= packet.len() + 65,
            "packet {} grew by {}",
            at,
            compressed.len - packet.len()
        );
        sent += 1;
        if !arrives(sent - 1) {
            continue;
        }
        let done = decompressor.decompress(&rohc[..compressed.len], &mut back);
        let name = compressed.format.name();
        match done {
            Ok(done) => prop_assert_eq!(&back[..done.len], &packet[..], "packet {} as {}", at, name),
            Err(error) => return Err(TestCaseError::fail(format!("packet {at} as {name}: {error}"))),
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_packet_returns(script in scripts::scripts(120), v6: bool, repeat in 1u8..=8, large: bool, seed: u64) {
        let cids = if large { CidSpace::Large { max: 200 } } else { CidSpace::Small { max: 15 } };
        let packets = flow::packets(&script, v6);
        check(&packets, CompressorConfig { cids, repeat, seed, refresh_ir: 50, refresh_ir_dyn: 20, ..CompressorConfig::default() }, |_| true)?;
    }

    /// The guarantee of the optimistic approach: if fewer consecutive packets are lost than repetitions are sent, all
    /// others decompress.
    #[test]
    fn losses_shorter_than_the_repetition_harm_only_the_lost(
        script in scripts::scripts(120), v6: bool, repeat in 2u8..=8, pattern in prop::collection::vec(any::<bool>(), 7..40),
    ) {
        let packets = flow::packets(&script, v6);
        let mut lost = 0;
        check(&packets, CompressorConfig { repeat, ..CompressorConfig::default() }, |at| {
            lost = if pattern[at % pattern.len()] && lost + 1 < repeat { lost + 1 } else { 0 };
            lost == 0
        })?;
    }

    /// Two flows that alternate in one context.
    #[test]
    fn evicted_flows_return(script in scripts::scripts(40), repeat in 1u8..=4) {
        let mut packets = Vec::new();
        for (four, six) in flow::packets(&script, false).into_iter().zip(flow::packets(&script, true)) {
            packets.extend([four.clone(), four, six]);
        }
        check(&packets, CompressorConfig { cids: CidSpace::Small { max: 0 }, repeat, ..CompressorConfig::default() }, |_| true)?;
    }
}
