//! Bytes that no compressor produced: no panic, no unbounded growth, and a measured pass rate of the checks.

use crate::hack_support::packets::{Change, Receiver};
use proptest::prelude::*;
use tacit_rohc::hack::{Coding, Compressor, Decompressor, Limits, MAX_FRAME_ACKS};
use tacit_rohc::header::{Header, MAX_HEADER_LEN};

/// Both ends synchronised after some ACKs, and a frame that the decompressor has not received yet.
fn in_step(coding: Coding, v6: bool, acks: usize) -> (Decompressor, Vec<u8>, Vec<Vec<u8>>) {
    let mut receiver = Receiver::new(v6, 40000, 77);
    let mut compressor = Compressor::new(coding, Limits::default());
    let mut decompressor = Decompressor::new(Limits::default());
    let native = receiver.packet();
    compressor.note_native(&native);
    decompressor.note_native(&native);
    let mut frame = Vec::new();
    let mut sent = Vec::new();
    for round in 0..8 {
        frame.clear();
        sent.clear();
        for i in 0..acks as u32 {
            let window = if i % 5 == 4 { 3 } else { 0 };
            receiver.apply(&Change::Usual {
                units: 2 - i % 2,
                value: i % 3,
                echo: u32::from(i % 4 == 0),
                window,
            });
            sent.push(receiver.packet());
            compressor.push(&sent[i as usize]).unwrap();
        }
        compressor.finish_frame(&mut frame);
        if round < 7 {
            assert_eq!(decompressor.receive(&frame, &mut |_| ()).acks, acks);
        }
    }
    (decompressor, frame, sent)
}

/// Every frame with one, two or three flipped bits. If CID and MSN are intact, only the CRC-8 detects the error, so at
/// most about 1 in 256 passes. A flipped bit in CID or MSN passes even less often.
#[test]
fn turned_bits_pass_no_more_often_than_the_check_allows() {
    for (coding, acks) in [(Coding::PerAck, 1), (Coding::PerAck, 12), (Coding::Batch, 1), (Coding::Batch, 12)]
    {
        let mut tried = 0u32;
        let mut wrong = 0u32;
        for v6 in [false, true] {
            let (_, frame, sent) = in_step(coding, v6, acks);
            let bits = 8 * frame.len();
            let masks = (0..bits).map(|a| vec![a]);
            let masks = masks.chain((0..bits).flat_map(|a| (0..a).map(move |b| vec![a, b])));
            let masks = masks.chain(
                (0..4000).map(|n: usize| vec![n * 7 % bits, n * 31 % bits, (n * 101 + n / bits) % bits]),
            );
            let (decompressor, ..) = in_step(coding, v6, acks);
            for mask in masks {
                let mut bad = frame.clone();
                for bit in mask {
                    bad[bit / 8] ^= 0x80 >> (bit % 8);
                }
                let mut decompressor = decompressor.clone();
                let mut got = Vec::new();
                let report = decompressor.receive(&bad, &mut |packet| got.push(packet.to_vec()));
                tried += 1;
                wrong += u32::from(report.acks > 0 && got != sent);
                if report.acks == 0 {
                    decompressor.receive(&frame, &mut |packet| got.push(packet.to_vec()));
                    assert_eq!(got, sent, "the context was not left as it was");
                }
            }
        }
        println!("{coding:?}, {acks} ACKs: {wrong} of {tried} altered frames passed");
        assert!(wrong * 200 <= tried, "{coding:?}: {wrong} of {tried}");
    }
}

/// Random bodies after a valid CID and MSN: the worst case of stray bytes. The CRC passes 1 in 256.
#[test]
fn of_drawn_bodies_one_in_256_passes_the_check() {
    for (coding, kind) in [(Coding::PerAck, 9), (Coding::Batch, 11)] {
        let (decompressor, frame, _) = in_step(coding, false, 3);
        let mut state = 1u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        let tried = 30_000;
        let mut passed = 0;
        for _ in 0..tried {
            let body = draw() % 14 + 1;
            let mut bytes = vec![body << 4 | kind, frame[1], frame[2], draw()];
            bytes.extend((0..body).map(|_| draw()));
            passed += u32::from(decompressor.clone().receive(&bytes, &mut |_| ()).acks > 0);
        }
        println!("{coding:?}: {passed} of {tried} drawn bodies passed");
        assert!(passed * 200 <= tried, "{coding:?}: {passed} of {tried}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_deliver_at_most_plausible_acks(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        batch in any::<bool>(),
        aim in any::<bool>(),
    ) {
        let coding = if batch { Coding::Batch } else { Coding::PerAck };
        let (mut decompressor, frame, _) = in_step(coding, false, 3);
        let mut bytes = bytes;
        if aim && bytes.len() > 4 {
            bytes[1] = frame[1];
            bytes[2] = frame[2];
        }
        let mut acks = 0;
        let report = decompressor.receive(&bytes, &mut |packet| {
            acks += 1;
            assert!(packet.len() <= MAX_HEADER_LEN);
            let header = Header::parse(packet).expect("a whole packet");
            assert!(header.is_pure_ack() && header.has_valid_checksum(&[]));
            assert_eq!(header.source_port, 40000);
        });
        prop_assert_eq!(acks, report.acks);
        prop_assert!(acks <= MAX_FRAME_ACKS * report.frames);
        prop_assert!(report.frames <= bytes.len());
    }
}
