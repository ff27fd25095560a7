//! The ACKs of any legal receiver are restored bit for bit.

use crate::hack_support;
use crate::hack_support::packets::{Change, Receiver, change};
use proptest::prelude::*;
use tacit_rohc::hack::{Coding, Compressor, Decompressor, Limits, List, Refusal, Report, Room};

fn both_ends(coding: Coding) -> (Compressor, Decompressor) {
    (Compressor::new(coding, Limits::default()), Decompressor::new(Limits::default()))
}

/// Sends the first packet natively and the others in frames of these sizes, and expects all of them to be restored.
fn check(coding: Coding, packets: &[Vec<u8>], sizes: &[usize]) -> Result<usize, TestCaseError> {
    let (mut compressor, mut decompressor) = both_ends(coding);
    compressor.note_native(&packets[0]);
    decompressor.note_native(&packets[0]);
    let mut rest = &packets[1..];
    let mut bytes = 0;
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (now, later) = rest.split_at((*size).min(rest.len()));
        rest = later;
        for packet in now {
            prop_assert!(compressor.has_context(packet));
            prop_assert_eq!(compressor.push(packet), Ok(()));
        }
        let mut frame = Vec::new();
        prop_assert_eq!(compressor.finish_frame(&mut frame), now.len());
        bytes += frame.len();
        let mut got = Vec::new();
        let report = decompressor.receive(&frame, &mut |packet| got.push(packet.to_vec()));
        prop_assert_eq!(report, Report { frames: 1, acks: now.len(), ..Report::default() });
        prop_assert_eq!(&got[..], now);
    }
    Ok(bytes)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_acks_come_back(
        changes in prop::collection::vec(change(), 1..120),
        sizes in prop::collection::vec(1usize..=64, 1..6),
        v6 in any::<bool>(),
        random_id in any::<bool>(),
        start in prop_oneof![any::<u32>(), Just(u32::MAX - 3000), Just(65530), Just(0)],
        batch in any::<bool>(),
    ) {
        let mut receiver = Receiver::new(v6, 40000, start);
        if random_id {
            receiver.randomise_id(start);
        }
        let mut packets = vec![receiver.packet()];
        for change in &changes {
            receiver.apply(change);
            packets.push(receiver.packet());
        }
        let coding = if batch { Coding::Batch } else { Coding::PerAck };
        check(coding, &packets, &sizes)?;
    }
}

/// More than 500 ACKs, so that the MSN, the IP-ID, the acknowledgment number and the timestamps all wrap.
#[test]
fn every_counter_wraps() {
    for v6 in [false, true] {
        for coding in [Coding::PerAck, Coding::Batch] {
            let mut receiver = Receiver::new(v6, 40000, u32::MAX - 200);
            let usual = Change::Usual { units: 2, value: 1, echo: 1, window: 0 };
            let packets: Vec<_> = (0..1000)
                .map(|_| {
                    receiver.apply(&usual);
                    receiver.packet()
                })
                .collect();
            for sizes in [&[1][..], &[3], &[64], &[21, 5]] {
                check(coding, &packets, sizes).unwrap();
            }
        }
    }
}

#[test]
fn the_commonest_ack_is_four_bytes_alone_and_two_in_company() {
    let mut receiver = Receiver::new(false, 40000, 1);
    let usual = Change::Usual { units: 2, value: 1, echo: 1, window: 0 };
    let packets: Vec<_> = (0..66)
        .map(|_| {
            receiver.apply(&usual);
            receiver.packet()
        })
        .collect();
    // The first frame of an incarnation has two bytes of CRC-16 and one for the ACK itself.
    assert_eq!(check(Coding::PerAck, &packets[..2], &[1]).unwrap(), 4 + 2 + 1);
    assert_eq!(check(Coding::PerAck, &packets[..3], &[1]).unwrap(), 7 + 4);
    assert_eq!(check(Coding::PerAck, &packets[..5], &[2]).unwrap(), 9 + 6);
    assert_eq!(check(Coding::Batch, &packets[..3], &[1]).unwrap(), 8 + 4);
    let run = check(Coding::Batch, &packets[..66], &[1, 64]).unwrap();
    assert!(run <= 8 + 4 + 16, "{run} bytes for 64 ACKs all alike");
}

#[test]
fn acks_that_must_go_natively_are_refused() {
    let mut receiver = Receiver::new(false, 40000, 1);
    let good = receiver.packet();
    let (mut compressor, _) = both_ends(Coding::PerAck);
    assert_eq!(compressor.push(&good), Err(Refusal::NoContext));
    compressor.note_native(&good);
    let edit = |f: &dyn Fn(&mut tacit_rohc::header::Header)| {
        let mut header = tacit_rohc::header::Header::parse(&good).unwrap();
        f(&mut header);
        header.checksum = header.tcp_checksum(&[]);
        hack_support::bytes_of(&header)
    };
    for flag in [0x01, 0x02, 0x04, 0x20, 0x80] {
        assert_eq!(compressor.push(&edit(&|h| h.flags |= flag)), Err(Refusal::NotPureAck));
    }
    assert_eq!(compressor.push(&edit(&|h| h.flags = 0)), Err(Refusal::NotPureAck));
    let mut wrong = good.clone();
    wrong[36] ^= 1;
    assert_eq!(compressor.push(&wrong), Err(Refusal::Checksum));
    let mut padded = good.clone();
    padded.push(0);
    assert_eq!(compressor.push(&padded), Err(Refusal::Trailer));
    assert!(matches!(compressor.push(&good[..30]), Err(Refusal::Header(_))));
    assert_eq!(compressor.push(&edit(&|h| h.source_port = 1)), Err(Refusal::NoContext));
    assert_eq!(compressor.pending(), 0);
    assert_eq!(compressor.finish_frame(&mut Vec::new()), 0);
    for _ in 0..64 {
        assert_eq!(compressor.push(&good), Ok(()));
    }
    assert_eq!(compressor.push(&good), Err(Refusal::FrameFull));
    compressor.invalidate(&good);
    assert_eq!((compressor.pending(), compressor.push(&good)), (0, Err(Refusal::NoContext)));
}

/// Removing one of two flows keeps the other's ACKs in the frame, and the bytes over which their CRC is computed.
#[test]
fn a_flow_forgotten_takes_only_its_own_acks_along() {
    for coding in [Coding::PerAck, Coding::Batch] {
        let (mut compressor, mut decompressor) = both_ends(coding);
        let mut flows = [1, 2, 3].map(|port| Receiver::new(false, port, u32::from(port)));
        for flow in &mut flows {
            let native = flow.packet();
            compressor.note_native(&native);
            decompressor.note_native(&native);
        }
        let mut kept = Vec::new();
        for round in 0..4 {
            for (i, flow) in flows.iter_mut().enumerate() {
                flow.apply(&Change::Usual { units: round, value: 1, echo: 0, window: 1 });
                let ack = flow.packet();
                assert_eq!(compressor.push(&ack), Ok(()));
                if i != 1 {
                    kept.push(ack);
                }
            }
        }
        compressor.invalidate(&flows[1].packet());
        let mut frames = Vec::new();
        assert_eq!(compressor.finish_frame(&mut frames), kept.len());
        let mut got = Vec::new();
        let report = decompressor.receive(&frames, &mut |packet| got.push(packet.to_vec()));
        assert_eq!(report, Report { frames: 2, acks: kept.len(), ..Report::default() });
        kept.sort_by_key(|ack| ack[21]);
        assert_eq!(got, kept, "flow by flow, in order within each");
    }
}

/// The format, byte by byte: a first frame, the next one, and one with a SACK block.
#[test]
fn the_bytes_on_the_air_stay_what_they_are() {
    let golden = [
        (
            Coding::PerAck,
            "7a9d002b40e524250d2417 439d03f92526242d f99d069702a410110402a43811110404a44710110406",
        ),
        (Coding::Batch, "5c9d002b40e562c8f1 2b9d03f96779 7b9d069725a8bb756422c0"),
    ];
    for (coding, expected) in golden {
        let mut receiver = Receiver::new(false, 40000, 1);
        let (mut compressor, _) = both_ends(coding);
        compressor.note_native(&receiver.packet());
        let mut all = String::new();
        let mut out = Vec::new();
        for round in 0..3u16 {
            for i in 0..3 {
                receiver.apply(&Change::Usual { units: 2, value: 1, echo: i & 1, window: 0 });
                if round == 2 {
                    receiver.apply(&Change::Sack(vec![(4, i as u16 + 1, 0)]));
                }
                compressor.push(&receiver.packet()).unwrap();
            }
            out.clear();
            compressor.finish_frame(&mut out);
            all += &out.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            all += " ";
        }
        assert_eq!(all.trim(), expected, "{coding:?}");
    }
}

/// Frames that do not fit are not written at all, and their ACKs go natively. Then both ends agree again.
#[test]
fn frames_without_room_give_their_flows_up() {
    for coding in [Coding::PerAck, Coding::Batch] {
        let mut whole = 0;
        for room in (0..=200).rev() {
            let (mut compressor, mut decompressor) = both_ends(coding);
            let mut flows = [1, 2].map(|port| Receiver::new(false, port, 7));
            let mut round = |compressor: &mut Compressor, decompressor: &mut Decompressor, room: usize| {
                for flow in &mut flows {
                    flow.apply(&Change::Ack(1448));
                    let native = flow.packet();
                    compressor.note_native(&native);
                    decompressor.note_native(&native);
                }
                let mut sent = Vec::new();
                for flow in &mut flows {
                    for step in 1..12u16 {
                        flow.apply(&Change::Ack(u32::from(step) * 1001));
                        let ack = flow.packet();
                        compressor.push(&ack).unwrap();
                        sent.push(ack);
                    }
                }
                let mut bytes = [0xa5; 200];
                let mut frames = Room::new(&mut bytes[..room]);
                let acks = compressor.finish_frame(&mut frames);
                let (len, is_cut) = (frames.len(), frames.is_cut());
                assert!(bytes[room..].iter().all(|byte| *byte == 0xa5));
                let mut got = Vec::new();
                decompressor.receive(&bytes[..len], &mut |packet| got.push(packet.to_vec()));
                if is_cut {
                    assert_eq!((acks, len, compressor.pending()), (0, 0, 0));
                    assert!(flows.iter_mut().all(|flow| !compressor.has_context(&flow.packet())));
                } else {
                    assert_eq!((acks, &got), (22, &sent));
                }
                len
            };
            let len = round(&mut compressor, &mut decompressor, room);
            if room == 200 {
                whole = len;
            }
            assert_eq!(len, if room < whole { 0 } else { whole }, "room for {room}");
            assert!(round(&mut compressor, &mut decompressor, 200) > 0, "after the next native ACKs");
        }
        assert!((30..100).contains(&whole), "{whole}");
    }
}
