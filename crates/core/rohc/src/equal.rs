//! Checks that the fast paths produce the same bytes as the general ones, with captures, random flows, losses,
//! duplicates and feedback.

use proptest::prelude::*;

use crate::{CidSpace, Compressor, CompressorConfig, Decompressor, DecompressorConfig};

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/common/flow.rs"]
mod flow;

/// Two channels. The first one uses only the general path.
struct Both {
    compressors: [Compressor; 2],
    decompressors: [Decompressor; 2],
    out: [Vec<u8>; 2],
    back: [Vec<u8>; 2],
    quick: [u32; 2],
}

impl Both {
    fn new(config: CompressorConfig, other: DecompressorConfig) -> Self {
        Self {
            compressors: [0, 1].map(|_| Compressor::new(config)),
            decompressors: [0, 1]
                .map(|_| Decompressor::new(DecompressorConfig { cids: config.cids, ..other })),
            out: [0, 1].map(|_| vec![0; 70_000]),
            back: [0, 1].map(|_| vec![0; 70_000]),
            quick: [0; 2],
        }
    }

    /// Compresses on both. Returns the bytes if the packet could be compressed.
    fn compress(&mut self, packet: &[u8]) -> Option<Vec<u8>> {
        self.compressors[0].without_quick_path();
        let ready = self.compressors[1].has_quick_path();
        let [general, quick] = &mut self.compressors;
        let [out, other] = &mut self.out;
        let compressed = general.compress(packet, out);
        assert_eq!(compressed, quick.compress(packet, other));
        let compressed = compressed.ok()?;
        assert_eq!(out[..compressed.len], other[..compressed.len], "{}", compressed.format.name());
        self.quick[0] += u32::from(ready);
        Some(out[..compressed.len].to_vec())
    }

    /// Decompresses on both, and passes the feedback to the compressors.
    fn decompress(&mut self, rohc: &[u8]) {
        self.decompressors[0].without_quick_path();
        self.quick[1] += u32::from(self.decompressors[1].has_quick_path());
        let [general, quick] = &mut self.decompressors;
        let [back, other] = &mut self.back;
        let done = general.decompress(rohc, back);
        assert_eq!(done, quick.decompress(rohc, other), "{rohc:02x?}");
        let feedback = match done {
            Ok(done) => {
                assert_eq!(back[..done.len], other[..done.len]);
                done.feedback
            }
            Err(error) => error.feedback,
        };
        if let Some(feedback) = feedback {
            for compressor in &mut self.compressors {
                compressor.feedback(feedback.as_bytes());
            }
        }
    }
}

const SPACES: [CidSpace; 3] =
    [CidSpace::Small { max: 0 }, CidSpace::Small { max: 15 }, CidSpace::Large { max: 300 }];

#[test]
fn captures_come_out_equal() {
    for name in common::ACKS.iter().chain(&common::BIDIR) {
        let Some(packets) = common::capture(name) else { continue };
        for (repeat, cids, feedback) in
            [(1, SPACES[0], false), (2, SPACES[1], false), (2, SPACES[1], true), (4, SPACES[2], true)]
        {
            let config = CompressorConfig { repeat, cids, ..CompressorConfig::default() };
            let mut both = Both::new(config, DecompressorConfig { feedback, ..Default::default() });
            for (at, packet) in packets.iter().enumerate() {
                let Some(rohc) = both.compress(packet) else { continue };
                // Some packets are lost, and some arrive twice.
                match at % 97 {
                    5 | 6 => {}
                    40 => (0..2).for_each(|_| both.decompress(&rohc)),
                    _ => both.decompress(&rohc),
                }
            }
            println!("{name}, {config:?}: quick ready for {:?} of {}", both.quick, packets.len());
            let pure = common::ACKS.contains(name);
            assert!(!pure || both.quick[0] as usize * 10 >= packets.len() * 6, "{name} {:?}", both.quick);
        }
    }
}

/// Else the general path alone would pass here.
#[test]
fn pure_acknowledgments_take_the_quick_path_at_both_ends() {
    for v6 in [false, true] {
        let mut both = Both::new(CompressorConfig::default(), DecompressorConfig::default());
        for packet in &common::synthetic(2_000, v6) {
            let rohc = both.compress(packet).unwrap();
            both.decompress(&rohc);
        }
        assert!(both.quick.iter().all(|ready| *ready > 1_200), "{:?}", both.quick);
    }
}

/// Flows of acknowledgments in which other fields occasionally change.
fn script() -> impl Strategy<Value = flow::Script> {
    let usual = prop_oneof![
        6 => Just(vec![(0, 2)]),
        2 => (0u32..4).prop_map(|steps| vec![(0, steps), (16, 1)]),
        1 => (0u32..70_000).prop_map(|step| vec![(0, 1), (16, step)]),
        1 => (0u32..40).prop_map(|step| vec![(0, 1), (7, step)]),
        1 => any::<u32>().prop_map(|window| vec![(8, window)]),
        1 => any::<u32>().prop_map(|flags| vec![(13, flags)]),
        1 => (0u32..400_000).prop_map(|ack| vec![(3, 0xffff_f000u32.wrapping_add(ack))]),
        1 => ((0u8..26), any::<u32>()).prop_map(|change| vec![change]),
    ];
    prop::collection::vec(usual, 1..160)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn drawn_flows_come_out_equal(
        script in script(), v6: bool, space in 0usize..3, repeat in 1u8..9, feedback: bool, verify_tcp_checksum: bool,
        repair: bool, fate in prop::collection::vec(0u8..20, 160),
    ) {
        let config = CompressorConfig { repeat, cids: SPACES[space], refresh_ir_dyn: 50, ..CompressorConfig::default() };
        let other = DecompressorConfig { feedback, verify_tcp_checksum, repair, ..Default::default() };
        let mut both = Both::new(config, other);
        let mut late = None;
        for (packet, fate) in flow::packets(&script, v6).iter().zip(fate) {
            let Some(mut rohc) = both.compress(packet) else { continue };
            match fate {
                0 => {}
                1 => (0..2).for_each(|_| both.decompress(&rohc)),
                2 => late = Some(rohc),
                3 => {
                    let at = rohc.len() / 2;
                    rohc[at] ^= 4;
                    both.decompress(&rohc);
                }
                4 => both.decompress(&rohc[..rohc.len() - 1]),
                _ => {
                    both.decompress(&rohc);
                    if let Some(late) = late.take() {
                        both.decompress(&late);
                    }
                }
            }
        }
    }
}
