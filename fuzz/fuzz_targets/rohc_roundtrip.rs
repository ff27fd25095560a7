//! All packets of any legal flow are restored, even if fewer consecutive ones are lost than each change is repeated.
//!
//! The first byte selects IP version, repetition and CID space, and whether there are tunnels or extension headers,
//! which are then selected by four bytes. Each packet is one byte (its low three bits are the number of changes before
//! it, its high bit whether it is lost), followed by five bytes per change.
#![no_main]

#[path = "../../crates/core/rohc/tests/common/flow.rs"]
mod flow;
#[path = "../../crates/core/rohc/tests/common/tunnel.rs"]
mod tunnel;

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use tacit_rohc::{CidSpace, Compressor, CompressorConfig, Decompressor, DecompressorConfig};

fn script(mut bytes: &[u8]) -> (flow::Script, Vec<bool>) {
    let (mut script, mut losses) = (Vec::new(), Vec::new());
    while let Some((&head, rest)) = bytes.split_first() {
        let (changes, rest) = rest.split_at(rest.len().min(usize::from(head & 7) * 5));
        bytes = rest;
        losses.push(head & 0x80 != 0);
        let change =
            |bytes: &[u8]| (bytes[0] % 26, u32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]));
        script.push(changes.chunks_exact(5).map(change).collect());
    }
    (script, losses)
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, mut rest)) = data.split_first() else { return };
    let (mut outer, mut behind) = (vec![], vec![]);
    let v6 = choice & 2 != 0;
    if choice & 0x20 != 0 {
        let Some((stack, more)) = rest.split_first_chunk() else { return };
        (outer, behind) = tunnel::stack(u32::from_le_bytes(*stack), v6);
        rest = more;
    }
    let (script, losses) = script(rest);
    let cids = if choice & 1 == 0 { CidSpace::Small { max: 15 } } else { CidSpace::Large { max: 200 } };
    let repeat = 1 + (choice >> 2 & 7);
    let mut compressor =
        Compressor::new(CompressorConfig { cids, repeat, refresh_ir_dyn: 40, ..CompressorConfig::default() });
    // Its checksums are arbitrary, so a repairing decompressor would refuse packets in case of doubt.
    let mut decompressor =
        Decompressor::new(DecompressorConfig { cids, repair: false, ..DecompressorConfig::default() });
    let (mut rohc, mut back) = ([0; 3000], [0; 3000]);
    // Counted per context, because other tunnels are other flows.
    let mut lost = BTreeMap::new();
    for ((packet, changes), loss) in flow::packets(&script, v6).iter().zip(&script).zip(losses) {
        for parts in [&mut outer, &mut behind] {
            tunnel::next(parts);
            if let Some(&(kind, amount)) = changes.first() {
                tunnel::change(parts, kind, amount);
            }
        }
        let packet = tunnel::wrap(packet, &outer, &behind);
        let Ok(compressed) = compressor.compress(&packet, &mut rohc) else { continue };
        let lost = lost.entry(compressed.cid).or_insert(0);
        *lost = if loss && *lost + 1 < repeat { *lost + 1 } else { 0 };
        if *lost > 0 {
            continue;
        }
        let done = decompressor.decompress(&rohc[..compressed.len], &mut back).expect("a packet in order");
        assert_eq!(&back[..done.len], &packet[..], "{}", compressed.format.name());
    }
});
