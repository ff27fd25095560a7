//! Untrusted ROHC packets and feedback: no panic, and no output beyond the given room.
//!
//! The first byte selects the CID space and the room. Packets follow, each preceded by its length.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tacit_rohc::{
    Channel, ChannelConfig, CidSpace, Compressor, CompressorConfig, Decompressor, DecompressorConfig, Layers,
};

/// Parsed headers must be written back unchanged.
fn restore(packet: &[u8]) {
    if let Ok((layers, header)) = Layers::parse(packet) {
        let len = layers.len() + header.len();
        let mut back = vec![0; len];
        assert_eq!(layers.emit(&header, &mut back), Some(len));
        assert_eq!(back, packet[..len]);
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, mut rest)) = data.split_first() else { return };
    let cids = if choice & 1 == 0 { CidSpace::Small { max: 15 } } else { CidSpace::Large { max: 200 } };
    let verify_tcp_checksum = choice & 2 != 0;
    let config =
        DecompressorConfig { cids, feedback: true, verify_tcp_checksum, ..DecompressorConfig::default() };
    let mut decompressor = Decompressor::new(config);
    let mut compressor = Compressor::new(CompressorConfig { cids, ..CompressorConfig::default() });
    let mut channel = Channel::new(ChannelConfig {
        cids,
        decompressor: config,
        packet_bytes: 1500,
        frame_bytes: 200,
        reconstructed_bytes: 600,
        ..ChannelConfig::default()
    });
    let mut out = [0; 1500];
    let room = out.len() - usize::from(choice >> 2) * 20;
    while let Some((&len, more)) = rest.split_first() {
        let (packet, more) = more.split_at(more.len().min(usize::from(len)));
        rest = more;
        compressor.feedback(packet);
        restore(packet);
        // What a channel delivers it can also send, in frames of at most the link's length, unless it is too long for
        // segmentation.
        let mut delivered = Vec::new();
        let _ = channel.receive(packet, |packet| delivered = packet.to_vec());
        let _ = channel.send(&delivered, |frame| assert!(frame.len() <= 200));
        let answer = match decompressor.decompress(packet, &mut out[..room]) {
            Ok(done) => {
                assert!(done.len <= room);
                // A decompressed packet can be compressed, unless its options cannot be listed.
                let _ = compressor.compress(&out[..done.len], &mut [0; 2000]);
                restore(&out[..done.len]);
                done.feedback
            }
            Err(error) => error.feedback,
        };
        if let Some(feedback) = answer {
            assert_eq!(compressor.feedback(feedback.as_bytes()), 0);
        }
    }
});
