//! temp
#[path = "../tests/common/mod.rs"]
mod common;
use std::hint::black_box;
use tacit_rohc::*;
fn main() {
    let which = std::env::args().nth(1).unwrap();
    let name = std::env::args().nth(2).unwrap();
    let n: u32 = std::env::args().nth(3).unwrap().parse().unwrap();
    let packets =
        if name == "synthetic" { common::synthetic(20000, false) } else { common::capture(&name).unwrap() };
    let config = Config { repeat: 2, ..Config::default() };
    let mut out = [0; 2048];
    let mut c = Compressor::new(config);
    let comp: Vec<Vec<u8>> = packets
        .iter()
        .map(|p| {
            let m = c.compress(p, &mut out).unwrap();
            out[..m.len].to_vec()
        })
        .collect();
    let mut best = f64::MAX;
    for _ in 0..n {
        #[allow(clippy::disallowed_methods)]
        let t = std::time::Instant::now();
        if which == "c" {
            let mut c = Compressor::new(config);
            for p in &packets {
                let _ = black_box(c.compress(black_box(p), &mut out));
            }
        } else if which == "d" {
            let mut d = Decompressor::new(DecompressorConfig::default());
            for p in &comp {
                let _ = black_box(d.decompress(black_box(p), &mut out));
            }
        } else if which == "p" {
            for p in &packets {
                let _ = black_box(header::Header::parse(black_box(p)));
            }
        } else if which == "e" {
            for p in &packets {
                let h = header::Header::parse(black_box(p)).unwrap();
                let _ = black_box(h.emit(&mut out));
            }
        } else {
            for p in &packets {
                let _ = black_box(crc::CRC3.check(black_box(p)));
            }
        }
        best = best.min(t.elapsed().as_nanos() as f64 / packets.len() as f64);
    }
    println!("{which} {name}: best {best:.1} ns/packet");
}
