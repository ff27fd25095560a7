//! The guarantee of [`CompressorConfig::repeat`], with feedback that arrives late or never.

use crate::flow;
use std::collections::VecDeque;

use tacit_rohc::{CidSpace, Compressor, CompressorConfig, Decompressor, DecompressorConfig};

/// Packets of each flow.
const LENGTH: usize = 60;

/// xorshift64.
struct Draws(u64);

impl Draws {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as u32
    }

    fn below(&mut self, end: u32) -> u32 {
        self.next() % end
    }

    /// The packets of a flow whose headers change rarely or often.
    fn flow(&mut self, number: u32) -> Vec<Vec<u8>> {
        let calm = self.below(3);
        let script: flow::Script = (0..LENGTH)
            .map(|_| {
                let changes = if self.below(3) < calm { 0 } else { self.below(4) };
                (0..changes)
                    .map(|_| {
                        let (what, width) = (self.below(25) as u8, self.below(30));
                        (what, self.next() >> width)
                    })
                    .collect()
            })
            .collect();
        let v6 = self.below(4) == 0;
        let mut packets = flow::packets(&script, v6);
        // A different source port makes it another flow.
        packets.iter_mut().for_each(|packet| packet[if v6 { 41 } else { 21 }] = number as u8 + 1);
        packets
    }
}

/// Flows that share up to three contexts. In each flow, fewer consecutive packets are lost than `repeat` allows.
/// Returns an error description.
fn run(seed: u64) -> Result<(), String> {
    let mut draws = Draws::new(seed);
    let repeat = 1 + draws.below(4) as u8;
    let cids = CidSpace::Small { max: draws.below(3) as u8 };
    let refresh_ir_dyn = [0, 20][draws.below(2) as usize];
    let replicate = draws.below(2) == 0;
    let mut compressor = Compressor::new(CompressorConfig {
        cids,
        repeat,
        replicate,
        refresh_ir: 0,
        refresh_ir_dyn,
        seed,
        ..CompressorConfig::default()
    });
    let feedback = draws.below(2) == 0;
    let mut decompressor =
        Decompressor::new(DecompressorConfig { cids, feedback, ..DecompressorConfig::default() });
    let mut flows: Vec<_> = (0..=draws.below(3)).map(|number| (draws.flow(number).into_iter(), 0)).collect();
    let mut late: VecDeque<(u32, Vec<u8>)> = VecDeque::new();
    let (mut rohc, mut restored) = ([0; 2000], [0; 2000]);
    for now in 0.. {
        flows.retain(|(packets, _)| packets.len() > 0);
        if flows.is_empty() {
            break;
        }
        let chosen = draws.below(flows.len() as u32) as usize;
        let (packets, lost_in_a_row) = &mut flows[chosen];
        let packet = packets.next().unwrap();
        while late.front().is_some_and(|(due, _)| *due <= now) {
            compressor.feedback(&late.pop_front().unwrap().1);
        }
        let Ok(compressed) = compressor.compress(&packet, &mut rohc) else { continue };
        if *lost_in_a_row + 1 < repeat && draws.below(3) == 0 {
            *lost_in_a_row += 1;
            continue;
        }
        *lost_in_a_row = 0;
        let failure = |what| format!("seed {seed}, packet {now}, {}: {what}", compressed.format.name());
        let got = decompressor
            .decompress(&rohc[..compressed.len], &mut restored)
            .map_err(|error| failure(format!("{:?}", error.kind)))?;
        if restored[..got.len] != packet {
            return Err(failure("another packet".to_owned()));
        }
        if let Some(feedback) = got.feedback.filter(|_| draws.below(3) != 0) {
            let due = (now + draws.below(6)).max(late.back().map_or(0, |(due, _)| *due));
            late.push_back((due, feedback.as_bytes().to_vec()));
        }
    }
    Ok(())
}

#[test]
fn fewer_losses_in_a_row_than_repetitions_do_no_harm() {
    let wrong: Vec<String> = (1..=4_000).filter_map(|seed| run(seed).err()).collect();
    assert!(wrong.is_empty(), "{} of them, such as {:#?}", wrong.len(), &wrong[..wrong.len().min(9)]);
}
