//! Arbitrary bytes: no panic, bounded output, and an unchanged context.

use crate::{flow, scripts, tunnel};
use proptest::prelude::*;
use tacit_rohc::{
    CidSpace, Compressor, CompressorConfig, DecompressErrorKind, Decompressor, DecompressorConfig,
    split_feedback,
};

/// A decompressor that never treats a context as damaged, so that only the contexts themselves are tested.
fn patient(cids: CidSpace) -> Decompressor {
    Decompressor::new(DecompressorConfig {
        cids,
        feedback: true,
        damaged_after: u32::MAX,
        ..Default::default()
    })
}

fn compressed(packets: &[Vec<u8>], config: CompressorConfig) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut compressor = Compressor::new(config);
    let mut out = [0; 2000];
    packets
        .iter()
        .filter_map(|packet| {
            let compressed = compressor.compress(packet, &mut out).ok()?;
            Some((packet.clone(), out[..compressed.len].to_vec()))
        })
        .collect()
}

/// The packets of a script, half of them in a tunnel or with extension headers.
fn packets(script: &flow::Script, v6: bool, choice: u32) -> Vec<Vec<u8>> {
    let (mut outer, mut behind) =
        if choice & 1 == 0 { (vec![], vec![]) } else { tunnel::stack(choice >> 1, v6) };
    let wrapped = flow::packets(script, v6).into_iter().map(|packet| {
        tunnel::next(&mut outer);
        tunnel::next(&mut behind);
        tunnel::wrap(&packet, &outer, &behind)
    });
    wrapped.collect()
}

/// Cuts, flips or replaces bytes.
fn damage(bytes: &mut Vec<u8>, how: u32) {
    let at = (how >> 4) as usize % bytes.len().max(1);
    match how % 4 {
        0 => bytes.truncate(at),
        1 if !bytes.is_empty() => bytes[at] ^= 1 << (how >> 20 & 7),
        2 if !bytes.is_empty() => bytes[at] = (how >> 20) as u8,
        _ => bytes.insert(at, (how >> 20) as u8),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_are_survived(
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 1..40),
        large: bool, room in 0usize..200,
    ) {
        let cids = if large { CidSpace::Large { max: 20 } } else { CidSpace::Small { max: 3 } };
        let mut decompressor = Decompressor::new(DecompressorConfig { cids, feedback: true, ..Default::default() });
        let mut compressor = Compressor::new(CompressorConfig { cids, ..CompressorConfig::default() });
        let mut out = vec![0; room];
        for packet in &packets {
            if let Ok(done) = decompressor.decompress(packet, &mut out) {
                prop_assert!(done.len <= room);
            }
            let (feedback, rest) = split_feedback(packet);
            prop_assert_eq!(feedback.len() + rest.len(), packet.len());
            compressor.feedback(packet);
            let _ = compressor.compress(packet, &mut out);
        }
    }

    /// Sends a damaged copy before each packet. A copy refused by its CRC must leave the context unchanged.
    #[test]
    fn a_failed_decompression_changes_nothing(script in scripts::scripts(60), v6: bool, choice: u32, hows in prop::collection::vec(any::<u32>(), 60)) {
        let config = CompressorConfig::default();
        let pairs = compressed(&packets(&script, v6, choice), config);
        let mut decompressor = patient(config.cids);
        let mut out = [0; 2000];
        for ((original, rohc), how) in pairs.iter().zip(hows) {
            let mut bad = rohc.clone();
            damage(&mut bad, how);
            let accepted = bad != *rohc && decompressor.decompress(&bad, &mut out).is_ok();
            if accepted {
                // One in eight damaged packets passes a 3-bit CRC. The context is then corrupt, as expected.
                return Ok(());
            }
            let done = decompressor.decompress(rohc, &mut out);
            prop_assert!(done.is_ok(), "{:?} after {:02x?}", done, bad);
            prop_assert_eq!(&out[..done.unwrap().len], &original[..]);
        }
    }

    /// Too little room is an error, never a truncated packet, and the next attempt succeeds.
    #[test]
    fn short_output_is_refused(script in scripts::scripts(40), v6: bool, choice: u32, rooms in prop::collection::vec(0usize..1500, 40)) {
        let mut compressor = Compressor::new(CompressorConfig::default());
        let mut decompressor = patient(CompressorConfig::default().cids);
        let (mut rohc, mut out) = ([0; 2000], [0; 2000]);
        for (packet, room) in packets(&script, v6, choice).iter().zip(rooms) {
            let len = match compressor.compress(packet, &mut rohc[..room]) {
                Ok(compressed) => compressed.len,
                Err(_) => match compressor.compress(packet, &mut rohc) {
                    Ok(compressed) => compressed.len,
                    Err(_) => continue,
                },
            };
            let short = decompressor.decompress(&rohc[..len], &mut out[..room.min(packet.len() - 1)]);
            prop_assert_eq!(short.unwrap_err().kind, DecompressErrorKind::OutputTooSmall);
            let done = decompressor.decompress(&rohc[..len], &mut out).unwrap();
            prop_assert_eq!(&out[..done.len], &packet[..]);
        }
    }
}
