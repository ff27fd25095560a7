//! Nanoseconds per packet for compression and decompression. Each is also given relative to a copy of the header,
//! because that ratio depends less on the machine.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "copies/copies.rs"]
mod copies;

use criterion::{
    BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime,
};
use std::hint::black_box;
use tacit_rohc::{Compressor, CompressorConfig, Decompressor, DecompressorConfig};

fn flow(group: &mut BenchmarkGroup<'_, WallTime>, packets: &[Vec<u8>], repeat: u8) {
    let config = CompressorConfig { repeat, ..CompressorConfig::default() };
    group.throughput(Throughput::Elements(packets.len() as u64));
    group.bench_function(format!("compress/repeat{repeat}"), |bencher| {
        let mut out = [0; 2048];
        bencher.iter_batched_ref(
            || Compressor::new(config),
            |compressor| {
                for packet in packets {
                    let _ = black_box(compressor.compress(black_box(packet), &mut out));
                }
            },
            criterion::BatchSize::LargeInput,
        );
    });
    let mut compressor = Compressor::new(config);
    let mut out = [0; 2048];
    let compressed: Vec<Vec<u8>> = packets
        .iter()
        .map(|packet| compressor.compress(packet, &mut out).map(|done| out[..done.len].to_vec()).unwrap())
        .collect();
    group.bench_function(format!("decompress/repeat{repeat}"), |bencher| {
        bencher.iter_batched_ref(
            || Decompressor::new(DecompressorConfig::default()),
            |decompressor| {
                for packet in &compressed {
                    let _ = black_box(decompressor.decompress(black_box(packet), &mut out));
                }
            },
            criterion::BatchSize::LargeInput,
        );
    });
}

/// The ratio to a copy, with the default repetition.
fn ratio(name: &str, packets: &[Vec<u8>]) {
    let (mut out, mut back) = ([0; 2048], [0; 2048]);
    let mut compressor = Compressor::new(CompressorConfig::default());
    let rohc: Vec<Vec<u8>> = packets
        .iter()
        .map(|packet| compressor.compress(packet, &mut out).map(|done| out[..done.len].to_vec()).unwrap())
        .collect();
    let compress = move || {
        let mut compressor = Compressor::new(CompressorConfig::default());
        copies::timed(|| {
            for packet in packets {
                let _ = black_box(compressor.compress(black_box(packet), &mut out));
            }
        })
    };
    let decompress = move || {
        let mut decompressor = Decompressor::new(DecompressorConfig::default());
        copies::timed(|| {
            for packet in &rohc {
                let _ = black_box(decompressor.decompress(black_box(packet), &mut back));
            }
        })
    };
    let bytes: Vec<&[u8]> = packets.iter().map(Vec::as_slice).collect();
    copies::report(
        name,
        &bytes,
        &mut [("compress".into(), Box::new(compress)), ("decompress".into(), Box::new(decompress))],
    );
}

fn memcpy(group: &mut BenchmarkGroup<'_, WallTime>, packets: &[Vec<u8>]) {
    group.throughput(Throughput::Elements(packets.len() as u64));
    group.bench_function("memcpy", |bencher| {
        let mut out = [0; 2048];
        bencher.iter(|| {
            for packet in packets {
                let packet = black_box(&packet[..]);
                out[..packet.len()].copy_from_slice(packet);
                black_box(&mut out);
            }
        });
    });
}

fn codec(criterion: &mut Criterion) {
    let mut flows = vec![
        ("synthetic_v4".to_owned(), common::synthetic(20_000, false)),
        ("synthetic_v6".to_owned(), common::synthetic(20_000, true)),
    ];
    flows.extend(common::ACKS.iter().filter_map(|name| Some((name.to_string(), common::capture(name)?))));
    for (name, packets) in flows {
        ratio(&name, &packets);
        let mut group = criterion.benchmark_group(name);
        group.sample_size(20).warm_up_time(core::time::Duration::from_millis(300));
        group.measurement_time(core::time::Duration::from_millis(1500));
        memcpy(&mut group, &packets);
        flow(&mut group, &packets, 2);
        flow(&mut group, &packets, 4);
        group.finish();
    }
}

criterion_group!(benches, codec);
criterion_main!(benches);
