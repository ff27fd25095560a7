//! Loss bursts longer than any repetition, and the further losses they cause with and without feedback.

use crate::common;
use tacit_rohc::{Compressor, CompressorConfig, Decompressor, DecompressorConfig, FormatKind};

#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    bursts: u32,
    /// Number of packets that arrived but were not decompressed.
    refused: u32,
    wrong: u32,
    /// Maximum number of packets refused after one burst.
    worst: u32,
    /// Like `worst`, but only for bursts that contained no refresh.
    longest: u32,
}

/// Loses `burst` consecutive packets in every 300. Feedback is delayed by `delay` packets.
fn run(packets: &[Vec<u8>], burst: usize, feedback: Option<usize>, repair: bool) -> Outcome {
    let mut compressor = Compressor::new(CompressorConfig::default());
    let mut decompressor = Decompressor::new(DecompressorConfig {
        feedback: feedback.is_some(),
        repair,
        ..DecompressorConfig::default()
    });
    let (mut rohc, mut out) = (vec![0; 70_000], vec![0; 70_000]);
    let mut outcome = Outcome::default();
    let (mut refused, mut refresh_lost) = (0, false);
    let mut answers = std::collections::VecDeque::new();
    for (at, packet) in packets.iter().enumerate() {
        while answers.front().is_some_and(|(due, _)| *due <= at) {
            let (_, answer): (usize, tacit_rohc::Feedback) = answers.pop_front().unwrap();
            assert_eq!(compressor.feedback(answer.as_bytes()), 0);
        }
        let compressed = compressor.compress(packet, &mut rohc).unwrap();
        if at % 300 >= 300 - burst {
            refresh_lost |= matches!(compressed.format, FormatKind::Ir | FormatKind::IrDyn);
            if at % 300 == 299 {
                outcome.bursts += 1;
                (refused, refresh_lost) = (0, false);
            }
            continue;
        }
        let answer = match decompressor.decompress(&rohc[..compressed.len], &mut out) {
            Ok(done) => {
                outcome.wrong += u32::from(out[..done.len] != packet[..]);
                done.feedback
            }
            Err(error) => {
                refused += 1;
                outcome.refused += 1;
                outcome.worst = outcome.worst.max(refused);
                if !refresh_lost {
                    outcome.longest = outcome.longest.max(refused);
                }
                error.feedback
            }
        };
        if let (Some(delay), Some(answer)) = (feedback, answer) {
            answers.push_back((at + 1 + delay, answer));
        }
    }
    outcome
}

/// Limits for the cost of a burst in addition to its own losses. With feedback: four packets until the context counts
/// as damaged, the round trip, and packets that look late, which do not count as failures. Without feedback: one
/// refresh. The average is far lower.
#[test]
fn bursts_cost_little_more_than_what_was_lost() {
    let mut flows: Vec<(String, Vec<Vec<u8>>)> = vec![
        ("synthetic v4".to_owned(), common::synthetic(20_000, false)),
        ("synthetic v6".to_owned(), common::synthetic(20_000, true)),
    ];
    flows.extend(common::ACKS.iter().filter_map(|name| Some((name.to_string(), common::capture(name)?))));
    let mut wrong = 0;
    for (name, packets) in flows {
        for burst in [6, 12, 20] {
            for (what, feedback, worst, mean) in [
                ("O-mode", Some(0), 16, 3),
                ("O-mode, answers 8 packets late", Some(8), 24, 6),
                ("U-mode", None, CompressorConfig::default().refresh_ir_dyn, 60),
            ] {
                let outcome = run(&packets, burst, feedback, true);
                println!("{name}, bursts of {burst}, {what}: {outcome:?}");
                assert!(outcome.longest <= worst, "{name} {burst} {what}: {outcome:?}");
                assert!(outcome.refused <= mean * outcome.bursts, "{name} {burst} {what}: {outcome:?}");
                wrong += outcome.wrong;
            }
            let without = run(&packets, burst, None, false);
            println!("{name}, bursts of {burst}, U-mode without repairs: {without:?}");
        }
    }
    assert!(wrong <= 9, "{wrong}");
}

/// The counts of a context equal what its user observed.
#[test]
fn a_context_counts_what_it_did() {
    let packets = common::synthetic(3000, false);
    let mut compressor = Compressor::new(CompressorConfig::default());
    let mut decompressor = Decompressor::new(DecompressorConfig::default());
    let (mut rohc, mut out) = (vec![0; 2000], vec![0; 2000]);
    let (mut good, mut refused, mut bytes, mut begun) = (0, 0, [0, 0], 0);
    for (at, packet) in packets.iter().enumerate() {
        let compressed = compressor.compress(packet, &mut rohc).unwrap();
        if at % 300 >= 280 {
            continue;
        }
        match decompressor.decompress(&rohc[..compressed.len], &mut out) {
            Ok(done) => {
                good += 1;
                bytes = [bytes[0] + compressed.len as u64, bytes[1] + done.len as u64];
                begun += u64::from(matches!(compressed.format, FormatKind::Ir | FormatKind::IrDyn));
            }
            Err(_) => refused += 1,
        }
    }
    let counts = decompressor.counts(0).unwrap();
    assert_eq!((counts.packets, counts.refused), (good, refused));
    assert_eq!(([counts.rohc_bytes, counts.ip_bytes], counts.initialisations), (bytes, begun));
    assert!(counts.repaired >= 5, "{counts:?}");
    assert_eq!(decompressor.counts(1), None);
    // Another flow with this CID starts its counts from zero.
    let mut other = Compressor::new(CompressorConfig::default());
    let compressed = other.compress(&common::synthetic(1, true)[0], &mut rohc).unwrap();
    decompressor.decompress(&rohc[..compressed.len], &mut out).unwrap();
    assert_eq!(decompressor.counts(0).unwrap().packets, 1);
}
