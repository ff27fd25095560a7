use std::io::Write as _;
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::*;
use crate::audit::{Audit, audit_reader};

/// A seed of the fuzz target. Those that are compressed are what `gzip -9n`, `zstd -19` and `xz -6` made of
/// `hsr`.
fn seed(name: &str) -> Vec<u8> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/audit");
    std::fs::read(directory.join(name)).unwrap()
}

const FORMATS: [(&str, &str); 3] = [("gzip", "hsr.gz"), ("zstd", "hsr.zst"), ("xz", "hsr.xz")];

fn audit(file: &[u8]) -> Audit {
    audit_reader(file, "x").unwrap()
}

fn message(file: &[u8]) -> String {
    audit_reader(file, "x").unwrap_err().to_string()
}

fn decompressed(file: &[u8]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Decompressed::new(file)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[test]
fn a_compressed_capture_counts_as_the_capture() {
    let plain = audit(&seed("hsr"));
    assert!(plain.tcp_packets > 0);
    for (_, name) in FORMATS {
        assert_eq!(audit(&seed(name)), plain, "{name}");
    }
}

/// Programs that rotate or join files append members, frames and streams.
#[test]
fn parts_follow_each_other() {
    let plain = seed("hsr");
    for (_, name) in FORMATS {
        let twice = seed(name).repeat(2);
        assert_eq!(decompressed(&twice).unwrap(), plain.repeat(2), "{name}");
    }
    // A skippable frame, as pzstd writes them, between two frames.
    let frame = seed("hsr.zst");
    let skippable = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    assert_eq!(decompressed(&[&frame[..], &skippable, &frame].concat()).unwrap(), plain.repeat(2));
    // Padding of a tape after the last member.
    let padded = [&seed("hsr.gz")[..], &[0; 512]].concat();
    assert_eq!(decompressed(&padded).unwrap(), plain);
}

#[test]
fn a_cut_is_one_error_or_one_warning() {
    for (format, name) in FORMATS {
        let whole = seed(name);
        for len in 6..whole.len() {
            let ends = format!("its {format} data end too early");
            match audit_reader(&whole[..len], "x") {
                Err(error) => assert!(error.to_string().ends_with(&ends), "{name} {len}: {error}"),
                // Some packets were readable.
                Ok(audit) => {
                    let expected = format!("reading failed: {ends}");
                    assert!(audit.warnings[0].contains(&expected), "{name} {len}: {:?}", audit.warnings);
                }
            }
        }
    }
}

#[test]
fn a_changed_byte_is_found() {
    for (format, name) in FORMATS {
        let mut file = seed(name);
        let at = file.len() / 2;
        file[at] ^= 0x10;
        let error = decompressed(&file).unwrap_err().to_string();
        assert_eq!(error, format!("its {format} data are corrupt"));
        // No change of one byte makes a decoder panic.
        for at in 0..file.len() {
            let mut file = seed(name);
            file[at] ^= 0x55;
            let _ = decompressed(&file);
        }
    }
    // The last byte of the frame is the checksum's.
    let mut file = seed("hsr.zst");
    *file.last_mut().unwrap() ^= 1;
    assert_eq!(decompressed(&file).unwrap_err().to_string(), "its zstd data are corrupt");
}

/// A file of 20 bytes must not claim gigabytes.
#[test]
fn large_windows_are_refused() {
    // A frame header with a window of 2^(10 + 18) bytes (RFC 8878 section 3.1.1.1.2).
    let zstd = [&ZSTD_MAGIC[..], &[0, 18 << 3], &[1, 0, 0]].concat();
    assert_eq!(
        message(&zstd),
        "x: cannot read at byte 0: its zstd window is larger than 128 MiB; decompress it first"
    );
    // Dictionary size 2^28 in the LZMA2 filter's flags; the header's size stays.
    let mut xz = seed("hsr.xz");
    assert_eq!(xz[14..16], [0x21, 1], "the filter's number and the length of its flags");
    xz[16] = 32;
    let crc = crc32fast::hash(&xz[12..20]).to_le_bytes();
    xz[20..24].copy_from_slice(&crc);
    assert_eq!(
        message(&xz),
        "x: cannot read at byte 0: its xz window is larger than 128 MiB; decompress it first"
    );
}

#[test]
fn a_dictionary_is_named() {
    // Dictionary 7 in one byte, a window of 1 KiB.
    let frame = [&ZSTD_MAGIC[..], &[1, 0, 7], &[1, 0, 0]].concat();
    assert!(message(&frame).ends_with("it needs the zstd dictionary 7; decompress it first"));
}

#[test]
fn what_is_compressed_may_be_no_capture() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&[0; 100_000]).unwrap();
    let zeros = encoder.finish().unwrap();
    assert_eq!(message(&zeros), "x: is neither pcap nor pcapng: it starts with 00 00 00 00");
    let empty = GzEncoder::new(Vec::new(), Compression::best()).finish().unwrap();
    assert_eq!(message(&empty), "x: is empty; a pcap or pcapng file is needed");
}

proptest! {
    /// Decoders of others meet hostile files: they end, in bounded memory, without a panic.
    #[test]
    fn damaged_files_do_no_harm(
        format in 0..FORMATS.len(),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<proptest::sample::Index>(),
    ) {
        let mut file = seed(FORMATS[format].1);
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        file.truncate(6 + cut.index(file.len()));
        let _ = audit_reader(&file[..], "x");
    }
}
