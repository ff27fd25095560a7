//! Compresses the acknowledgments of one download and decompresses them again.
//!
//! `cargo run -p tacit-rohc --example roundtrip`

use tacit_rohc::header::{Header, Ip, Options, flags};
use tacit_rohc::{Compressor, CompressorConfig, Decompressor, DecompressorConfig};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut compressor = Compressor::new(CompressorConfig::default());
    let mut decompressor =
        Decompressor::new(DecompressorConfig { feedback: true, ..DecompressorConfig::default() });
    let (mut packet, mut rohc, mut back) = ([0; 100], [0; 200], [0; 1500]);
    println!("packet  bytes  as         ROHC");
    for number in 0..12 {
        let header = acknowledgment(number);
        let len = header.emit(&mut packet).ok_or("no room for the header")?;
        let compressed = compressor.compress(&packet[..len], &mut rohc)?;
        println!(
            "{number:>6}  {:>2}->{:<2}  {:<9}  {:02x?}",
            len,
            compressed.len,
            compressed.format.name(),
            &rohc[..compressed.len]
        );

        // The other end of the link.
        let done = decompressor.decompress(&rohc[..compressed.len], &mut back)?;
        assert_eq!(back[..done.len], packet[..len]);
        if let Some(feedback) = done.feedback {
            // Send the feedback back. A compressor also works without it, but then repeats its updates.
            compressor.feedback(feedback.as_bytes());
        }
    }
    Ok(())
}

/// One acknowledgment per two segments of 1448 bytes, with a timestamp clock of 1 ms.
fn acknowledgment(number: u16) -> Header {
    let now = 1_000_000 + u32::from(number / 2);
    let mut area = [1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0];
    area[4..8].copy_from_slice(&now.to_be_bytes());
    area[8..12].copy_from_slice(&(now - 3).to_be_bytes());
    let mut header = Header {
        ip: Ip::V4 {
            source: [192, 0, 2, 2],
            destination: [192, 0, 2, 1],
            id: 500 + number,
            dont_fragment: true,
        },
        dscp: 0,
        ip_ecn: 0,
        ttl: 64,
        source_port: 50_000,
        destination_port: 443,
        seq: 1000,
        ack: 1_000_000 + 2896 * u32::from(number),
        reserved: 0,
        flags: flags::ACK,
        window: 2048,
        checksum: 0,
        urgent: 0,
        options: Options::new(&area).unwrap_or_default(),
        payload_len: 0,
    };
    header.checksum = header.tcp_checksum(&[]);
    header
}
