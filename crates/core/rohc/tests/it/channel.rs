//! Loss, duplication and reordering, with and without feedback.

use crate::common;
use core::time::Duration;

use tacit_rohc::{CidSpace, Compressor, CompressorConfig, Decompressor, DecompressorConfig, FormatKind};

/// A small deterministic random number generator.
struct Chance(u64);

impl Chance {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % below
    }
}

#[derive(Clone, Copy)]
struct Channel {
    /// Percent of bursts of loss, and their length in packets.
    loss: u64,
    burst: usize,
    /// Percent duplicated, percent swapped with the next.
    duplicate: u64,
    swap: u64,
    feedback: bool,
    verify: bool,
    repair: bool,
}

#[derive(Debug, Default)]
struct Outcome {
    arrived: u32,
    right: u32,
    wrong: u32,
    /// The longest run of in-order arrivals that could not be decompressed.
    longest_gap: u32,
    bytes: usize,
}

fn run(packets: &[Vec<u8>], config: CompressorConfig, channel: Channel) -> Outcome {
    let mut compressor = Compressor::new(config);
    let mut decompressor = Decompressor::new(DecompressorConfig {
        cids: config.cids,
        feedback: channel.feedback,
        verify_tcp_checksum: channel.verify,
        repair: channel.repair,
        ..Default::default()
    });
    let mut chance = Chance(1);
    let mut outcome = Outcome::default();
    let (mut lost, mut gap) = (0, 0);
    let (mut rohc, mut out) = ([0; 2000], [0; 2000]);
    let mut held: Option<(usize, Vec<u8>)> = None;
    for (at, packet) in packets.iter().enumerate() {
        let compressed = compressor.compress(packet, &mut rohc).unwrap();
        outcome.bytes += compressed.len;
        if lost == 0 && chance.next(100) < channel.loss {
            lost = channel.burst;
        }
        if lost > 0 {
            lost -= 1;
            continue;
        }
        let mut arrivals = vec![(at, rohc[..compressed.len].to_vec())];
        if held.is_none() && chance.next(100) < channel.swap {
            held = arrivals.pop();
        } else if let Some(late) = held.take() {
            arrivals.push(late);
        }
        if chance.next(100) < channel.duplicate {
            arrivals.extend(arrivals.clone());
        }
        for (number, bytes) in arrivals {
            outcome.arrived += 1;
            let feedback = match decompressor.decompress(&bytes, &mut out) {
                Ok(done) => {
                    let right = out[..done.len] == packets[number];
                    outcome.right += u32::from(right);
                    outcome.wrong += u32::from(!right);
                    gap = if right { 0 } else { gap + 1 };
                    done.feedback
                }
                Err(error) => {
                    gap += 1;
                    error.feedback
                }
            };
            outcome.longest_gap = outcome.longest_gap.max(gap);
            if let Some(feedback) = feedback {
                assert_eq!(compressor.feedback(feedback.as_bytes()), 0);
            }
        }
    }
    outcome
}

const CLEAN: Channel =
    Channel { loss: 0, burst: 1, duplicate: 0, swap: 0, feedback: false, verify: false, repair: true };

#[test]
fn feedback_repairs_long_losses_quickly() {
    for burst in [12, 20, 40, 100] {
        for v6 in [false, true] {
            let packets = common::synthetic(20_000, v6);
            let channel = Channel { loss: 1, burst, feedback: true, ..CLEAN };
            let outcome = run(&packets, CompressorConfig::default(), channel);
            println!("burst {burst} v6 {v6}: {outcome:?}");
            assert!(outcome.longest_gap <= 64, "burst {burst}: {outcome:?}");
            assert!(outcome.right * 100 >= outcome.arrived * 60, "burst {burst}: {outcome:?}");
        }
    }
}

#[test]
fn refreshes_repair_where_there_is_no_feedback() {
    for burst in [12, 40] {
        let packets = common::synthetic(20_000, false);
        let config = CompressorConfig { refresh_ir: 200, refresh_ir_dyn: 50, ..CompressorConfig::default() };
        let outcome = run(&packets, config, Channel { loss: 1, burst, ..CLEAN });
        println!("burst {burst}: {outcome:?}");
        assert!(outcome.longest_gap <= 200, "burst {burst}: {outcome:?}");
    }
}

#[test]
fn refreshes_come_by_time_too() {
    let packets = common::synthetic(400, false);
    let mut compressor = Compressor::new(CompressorConfig::default());
    let mut rohc = [0; 200];
    // One packet per second, except for the first packets, which repeat the start of the flow.
    let mut formats = Vec::new();
    for (second, packet) in packets.iter().take(24).enumerate() {
        compressor.set_time(Duration::from_secs(second as u64 + 1000));
        formats.push(compressor.compress(packet, &mut rohc).unwrap().format);
    }
    let at = |format| {
        formats
            .iter()
            .enumerate()
            .filter(|(_, other)| **other == format)
            .map(|(at, _)| at)
            .collect::<Vec<_>>()
    };
    assert_eq!(at(FormatKind::Ir), [0, 1, 11, 21]);
    assert_eq!(at(FormatKind::IrDyn), [3, 5, 7, 9, 13, 15, 17, 19, 23]);
}

#[test]
fn duplicates_and_swaps_harm_no_packet_in_order() {
    for (duplicate, swap) in [(10, 0), (0, 10), (10, 10), (50, 50)] {
        for v6 in [false, true] {
            let packets = common::synthetic(20_000, v6);
            let outcome = run(&packets, CompressorConfig::default(), Channel { duplicate, swap, ..CLEAN });
            println!("duplicate {duplicate} swap {swap} v6 {v6}: {outcome:?}");
            assert!(outcome.longest_gap <= 6, "{outcome:?}");
        }
    }
}

#[test]
fn acknowledgments_shorten_the_start() {
    let packets = common::synthetic(50, false);
    let config =
        CompressorConfig { repeat: 8, cids: CidSpace::Large { max: 500 }, ..CompressorConfig::default() };
    let without = run(&packets, config, CLEAN);
    let with = run(&packets, config, Channel { feedback: true, ..CLEAN });
    assert!(with.bytes + 200 < without.bytes, "{with:?} {without:?}");
}

#[test]
fn captures_survive_losses_with_feedback() {
    for name in common::ACKS {
        let Some(packets) = common::capture(name) else { continue };
        for repeat in [1, 2, 4] {
            for burst in [1, 3, 12, 40] {
                let channel = Channel { loss: 1, burst, feedback: true, ..CLEAN };
                let outcome =
                    run(&packets, CompressorConfig { repeat, ..CompressorConfig::default() }, channel);
                println!("{name} repeat {repeat} burst {burst}: {outcome:?}");
                assert!(outcome.longest_gap <= 64, "{name} repeat {repeat} burst {burst}: {outcome:?}");
            }
        }
    }
}

/// A 3-bit CRC passes one wrong decoding in eight. The TCP checksum, which is in the packet anyway, catches it.
#[test]
fn the_tcp_checksum_stops_what_a_weak_check_lets_pass() {
    let rough = Channel { loss: 2, burst: 12, duplicate: 20, swap: 20, feedback: true, ..CLEAN };
    let bare = Channel { repair: false, ..rough };
    let (mut weak, mut strong, mut repaired) = (0, 0, 0);
    for v6 in [false, true] {
        let packets = common::synthetic(20_000, v6);
        weak += run(&packets, CompressorConfig::default(), bare).wrong;
        strong += run(&packets, CompressorConfig::default(), Channel { verify: true, ..bare }).wrong;
        repaired += run(&packets, CompressorConfig::default(), rough).wrong;
    }
    println!(
        "wrong: {weak} without, {strong} with the TCP checksum, {repaired} where it is asked only when in doubt"
    );
    assert!(weak > 10 && strong == 0 && repaired == 0, "{weak} {strong} {repaired}");
}

/// Repeats the last eight packets after every hundred, as a link layer does when its acknowledgments are lost.
#[test]
fn replays_harm_no_original() {
    for v6 in [false, true] {
        let packets = common::synthetic(20_000, v6);
        let mut compressor = Compressor::new(CompressorConfig::default());
        let mut decompressor = Decompressor::new(DecompressorConfig {
            verify_tcp_checksum: true,
            ..DecompressorConfig::default()
        });
        let (mut rohc, mut out) = ([0; 200], [0; 200]);
        let mut recent: Vec<Vec<u8>> = Vec::new();
        for (at, packet) in packets.iter().enumerate() {
            let compressed = compressor.compress(packet, &mut rohc).unwrap();
            let done = decompressor.decompress(&rohc[..compressed.len], &mut out).unwrap();
            assert_eq!(&out[..done.len], &packet[..]);
            recent.push(rohc[..compressed.len].to_vec());
            if recent.len() > 8 {
                recent.remove(0);
            }
            if at % 100 == 99 {
                for replay in &recent {
                    if let Ok(done) = decompressor.decompress(replay, &mut out) {
                        assert!(packets[at - 7..=at].iter().any(|packet| packet[..] == out[..done.len]));
                    }
                }
            }
        }
    }
}
