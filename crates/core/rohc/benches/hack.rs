//! Nanoseconds per ACK for both directions of the HACK variant. Frames end at the gaps between packets in the captures.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "copies/copies.rs"]
mod copies;
#[path = "../tests/it/hack_support/mod.rs"]
mod hack_support;

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use hack_support::{Seen, capture};
use tacit_rohc::hack::{Coding, Compressor, Decompressor, Limits};

/// Groups the packets into frames: at most 21 packets, and no gap longer than 1 ms within a frame.
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

/// One coding applied to a capture: its frames as packets and as bytes, and a fresh compressor and decompressor.
struct Case<'a> {
    coding: Coding,
    native: &'a [u8],
    frames: &'a [Vec<&'a [u8]>],
    coded: Vec<Vec<u8>>,
}

impl<'a> Case<'a> {
    fn new(coding: Coding, native: &'a [u8], frames: &'a [Vec<&'a [u8]>]) -> Self {
        let mut case = Self { coding, native, frames, coded: Vec::new() };
        let mut compressor = case.compressor();
        case.coded = frames.iter().map(|frame| compress(&mut compressor, frame, &mut Vec::new())).collect();
        case
    }

    fn compressor(&self) -> Compressor {
        let mut compressor = Compressor::new(self.coding, Limits::default());
        compressor.note_native(self.native);
        compressor
    }

    fn decompressor(&self) -> Decompressor {
        let mut decompressor = Decompressor::new(Limits::default());
        decompressor.note_native(self.native);
        decompressor
    }

    fn compress_all(&self, compressor: &mut Compressor, out: &mut Vec<u8>) {
        for frame in self.frames {
            for packet in frame {
                compressor.push(black_box(packet)).unwrap();
            }
            out.clear();
            black_box(compressor.finish_frame(out));
        }
    }

    fn decompress_all(&self, decompressor: &mut Decompressor) {
        for frame in &self.coded {
            black_box(decompressor.receive(black_box(frame), &mut |packet| {
                black_box(packet);
            }));
        }
    }
}

fn compress(compressor: &mut Compressor, frame: &[&[u8]], out: &mut Vec<u8>) -> Vec<u8> {
    for packet in frame {
        compressor.push(packet).unwrap();
    }
    compressor.finish_frame(out);
    std::mem::take(out)
}

fn ratio(name: &str, packets: &[&[u8]], cases: &[Case<'_>]) {
    let mut ways: Vec<copies::Way<'_>> = Vec::new();
    for case in cases {
        let mut out = Vec::new();
        let compress = move || {
            let mut compressor = case.compressor();
            copies::timed(|| case.compress_all(&mut compressor, &mut out))
        };
        let decompress = move || {
            let mut decompressor = case.decompressor();
            copies::timed(|| case.decompress_all(&mut decompressor))
        };
        ways.push((format!("compress/{:?}", case.coding), Box::new(compress)));
        ways.push((format!("decompress/{:?}", case.coding), Box::new(decompress)));
    }
    copies::report(name, packets, &mut ways);
}

fn both_ways(criterion: &mut Criterion) {
    for name in ["veth_clean_v4", "tun_11n_aggr_v4", "tun_11a_25MB_v4", "veth_clean_v6"] {
        let Some(packets) = capture(name) else { continue };
        let frames = frames(&packets);
        let cases =
            [Coding::PerAck, Coding::Batch].map(|coding| Case::new(coding, &packets[0].packet, &frames));
        let bytes: Vec<&[u8]> = packets[1..].iter().map(|seen| seen.packet.as_slice()).collect();
        ratio(name, &bytes, &cases);
        let mut group = criterion.benchmark_group(format!("hack/{name}"));
        group.throughput(Throughput::Elements(bytes.len() as u64));
        for case in &cases {
            group.bench_function(format!("compress/{:?}", case.coding), |bencher| {
                let mut out = Vec::new();
                bencher.iter_batched_ref(
                    || case.compressor(),
                    |compressor| case.compress_all(compressor, &mut out),
                    BatchSize::LargeInput,
                );
            });
            group.bench_function(format!("decompress/{:?}", case.coding), |bencher| {
                bencher.iter_batched_ref(
                    || case.decompressor(),
                    |decompressor| case.decompress_all(decompressor),
                    BatchSize::LargeInput,
                );
            });
        }
        group.finish();
    }
}

criterion_group!(benches, both_ways);
criterion_main!(benches);
