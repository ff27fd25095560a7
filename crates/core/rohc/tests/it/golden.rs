//! Decompresses packets of an independent RFC 6846 compressor and compares the result with the original captures.

use crate::common;
use std::collections::BTreeMap;
use tacit_rohc::{Decompressor, DecompressorConfig};

#[test]
fn every_golden_packet_decodes_to_its_capture() {
    for name in common::ACKS {
        let Some(path) = common::data(&format!("rohc-golden/{name}.U.oa4.smallcid.rohc")) else { continue };
        let Some(originals) = common::capture(name) else { continue };
        let packets = common::rohc(&path);
        assert_eq!(packets.len(), originals.len(), "{name}");
        let mut decompressor = Decompressor::new(DecompressorConfig::default());
        let mut formats = BTreeMap::<_, u32>::new();
        let mut out = [0; 1500];
        for (at, (packet, original)) in packets.iter().zip(&originals).enumerate() {
            let done = decompressor
                .decompress(packet, &mut out)
                .unwrap_or_else(|error| panic!("{name} packet {at}: {error}: {packet:02x?}"));
            assert_eq!(&out[..done.len], original, "{name} packet {at} ({})", done.format.name());
            *formats.entry(done.format.name()).or_default() += 1;
        }
        println!("{name}: {formats:?}");
    }
}
