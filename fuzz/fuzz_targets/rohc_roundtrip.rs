//! Whatever a legal flow does, its packets return, also when fewer in a row are lost than each change is repeated.
//!
//! The first octet chooses IP version, repetition and CIDs; then come packets of one octet each (its low three bits the
//! number of changes before it, its high bit whether it is lost), followed by five octets per change.
#![no_main]

#[path = "../../crates/rohc/tests/common/flow.rs"]
mod flow;

use libfuzzer_sys::fuzz_target;
use tacit_rohc::{CidSpace, Compressor, Config, Decompressor, DecompressorConfig};

fn script(mut octets: &[u8]) -> (flow::Script, Vec<bool>) {
    let (mut script, mut losses) = (Vec::new(), Vec::new());
    while let Some((&head, rest)) = octets.split_first() {
        let (changes, rest) = rest.split_at(rest.len().min(usize::from(head & 7) * 5));
        octets = rest;
        losses.push(head & 0x80 != 0);
        let change = |octets: &[u8]| {
            (octets[0] % 26, u32::from_le_bytes([octets[1], octets[2], octets[3], octets[4]]))
        };
        script.push(changes.chunks_exact(5).map(change).collect());
    }
    (script, losses)
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, rest)) = data.split_first() else { return };
    let (script, losses) = script(rest);
    let cids = if choice & 1 == 0 { CidSpace::Small { max: 15 } } else { CidSpace::Large { max: 200 } };
    let repeat = 1 + (choice >> 2 & 7);
    let mut compressor = Compressor::new(Config { cids, repeat, refresh_ir_dyn: 40, ..Config::default() });
    // Its checksums are arbitrary: in doubt, a repairing decompressor would refuse what has a wrong one.
    let mut decompressor =
        Decompressor::new(DecompressorConfig { cids, repair: false, ..DecompressorConfig::default() });
    let (mut rohc, mut back) = ([0; 2000], [0; 2000]);
    let mut lost = 0;
    for (packet, loss) in flow::packets(&script, choice & 2 != 0).iter().zip(losses) {
        let Ok(made) = compressor.compress(packet, &mut rohc) else { continue };
        lost = if loss && lost + 1 < repeat { lost + 1 } else { 0 };
        if lost > 0 {
            continue;
        }
        let done = decompressor.decompress(&rohc[..made.len], &mut back).expect("a packet in order");
        assert_eq!(&back[..done.len], &packet[..], "{}", made.format.name());
    }
});
