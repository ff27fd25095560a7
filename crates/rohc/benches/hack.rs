//! Nanoseconds per ACK each way in the HACK variant, with frames as the captures' gaps make them.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../tests/hack_support/mod.rs"]
mod hack_support;

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use hack_support::{Seen, capture};
use tacit_rohc::hack::{Coding, Compressor, Decompressor, Limits};

/// The packets of each frame: at most 21, none across a gap of more than a millisecond.
fn frames(packets: &[Seen]) -> Vec<Vec<&[u8]>> {
    let mut frames: Vec<Vec<&[u8]>> = vec![Vec::new()];
    let mut last_us = packets[0].at_us;
    for seen in &packets[1..] {
        if seen.at_us - last_us > 1000 || frames.last().is_some_and(|frame| frame.len() == 21) {
            frames.push(Vec::new());
        }
        last_us = seen.at_us;
        frames.last_mut().unwrap().push(&seen.packet);
    }
    frames
}

fn both_ways(criterion: &mut Criterion) {
    for name in ["veth_clean_v4", "tun_11n_aggr_v4", "tun_11a_25MB_v4", "veth_clean_v6"] {
        let Some(packets) = capture(name) else { continue };
        let frames = frames(&packets);
        let native = &packets[0].packet;
        let mut group = criterion.benchmark_group(format!("hack/{name}"));
        group.throughput(Throughput::Elements(packets.len() as u64 - 1));
        for coding in [Coding::PerAck, Coding::Batch] {
            let mut compressor = Compressor::new(coding, Limits::default());
            compressor.note_native(native);
            let compress = |compressor: &mut Compressor, frame: &[&[u8]], out: &mut Vec<u8>| {
                for packet in frame {
                    compressor.push(black_box(packet)).unwrap();
                }
                out.clear();
                compressor.finish_frame(out)
            };
            let coded: Vec<Vec<u8>> = frames
                .iter()
                .map(|frame| {
                    let mut out = Vec::new();
                    compress(&mut compressor, frame, &mut out);
                    out
                })
                .collect();
            group.bench_function(format!("compress/{coding:?}"), |bencher| {
                let mut out = Vec::new();
                let fresh = || {
                    let mut compressor = Compressor::new(coding, Limits::default());
                    compressor.note_native(native);
                    compressor
                };
                bencher.iter_batched_ref(
                    fresh,
                    |compressor| {
                        for frame in &frames {
                            black_box(compress(compressor, frame, &mut out));
                        }
                    },
                    BatchSize::LargeInput,
                );
            });
            group.bench_function(format!("decompress/{coding:?}"), |bencher| {
                let fresh = || {
                    let mut decompressor = Decompressor::new(Limits::default());
                    decompressor.note_native(native);
                    decompressor
                };
                bencher.iter_batched_ref(
                    fresh,
                    |decompressor| {
                        for frame in &coded {
                            black_box(decompressor.receive(black_box(frame), &mut |packet| {
                                black_box(packet);
                            }));
                        }
                    },
                    BatchSize::LargeInput,
                );
            });
        }
        group.finish();
    }
}

criterion_group!(benches, both_ways);
criterion_main!(benches);
