//! Both directions of a channel: every packet arrives, feedback is routed, and the user's requests are carried out.

use crate::headers::{emit, pure_ack};
use tacit_rohc::header::{Header, Ip};
use tacit_rohc::{
    Channel, ChannelConfig, CidSpace, CompressError, Compressor, CompressorConfig, DecompressErrorKind,
    Decompressor, DecompressorConfig, FeedbackKind, FormatKind, ReceiveError, SendError, split_feedback,
};

fn tcp(port: u16, number: u32, payload: usize) -> Vec<u8> {
    let ip =
        Ip::V4 { source: [10, 0, 0, 1], destination: [10, 0, 0, 2], id: number as u16, dont_fragment: true };
    let mut header =
        Header { ip, source_port: port, ack: number * 2896, payload_len: payload as u16, ..pure_ack() };
    let payload = vec![number as u8; payload];
    header.checksum = header.tcp_checksum(&payload);
    let mut packet = emit(&header);
    packet.extend(payload);
    packet
}

fn udp(number: u32, len: usize) -> Vec<u8> {
    let mut packet = vec![number as u8; len];
    packet[..20].copy_from_slice(&[0x45, 0, 0, 0, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet
}

/// Sends a packet across. Returns the packets that arrive.
fn across(from: &mut Channel, to: &mut Channel, packet: &[u8]) -> (FormatKind, Vec<Vec<u8>>) {
    let mut frames = Vec::new();
    let sent = from.send(packet, |frame| frames.push(frame.to_vec())).unwrap();
    assert_eq!((sent.frames, sent.bytes), (frames.len(), frames.iter().map(Vec::len).sum()));
    let mut packets = Vec::new();
    for frame in &frames {
        to.receive(frame, |packet| packets.push(packet.to_vec())).unwrap();
    }
    (sent.format, packets)
}

#[test]
fn every_packet_gets_through_both_ways() {
    let spaces = [CidSpace::Small { max: 1 }, CidSpace::Small { max: 15 }, CidSpace::Large { max: 200 }];
    for cids in spaces {
        for frame_bytes in [usize::MAX, 100, 40] {
            let config = ChannelConfig {
                cids,
                frame_bytes,
                packet_bytes: 2000,
                reconstructed_bytes: 2100,
                ..ChannelConfig::default()
            };
            let (mut here, mut there) = (Channel::new(config), Channel::new(config));
            let mut formats = [Vec::new(), Vec::new()];
            for number in 0..300 {
                let packet = match number % 7 {
                    0 => udp(number, 30 + number as usize * 3),
                    1 => [&[0x60, 1, 2, 3][..], &[9; 60]].concat(),
                    2 => tcp(7, number, 900),
                    _ => tcp(5, number, 0),
                };
                for formats in &mut formats {
                    let (format, packets) = across(&mut here, &mut there, &packet);
                    // The next packet goes in the other direction.
                    std::mem::swap(&mut here, &mut there);
                    assert_eq!(packets, std::slice::from_ref(&packet), "{cids:?} {frame_bytes} {number}");
                    formats.push(format);
                }
            }
            for formats in formats {
                // Feedback was piggybacked on the next frame, which ended the announcements of profile 0x0000.
                let announced = formats.iter().filter(|format| **format == FormatKind::PlainIr).count();
                assert!((1..=2).contains(&announced), "{announced}");
                if cids != spaces[0] {
                    let irs = formats.iter().filter(|format| **format == FormatKind::Ir).count();
                    assert!(irs <= 4, "{irs}");
                }
            }
            assert_eq!(here.malformed_feedback() + there.malformed_feedback(), 0);
        }
    }
}

/// An end that only receives. Of the answers that wait the newest says most.
#[test]
fn answers_that_wait_fit_a_frame_and_the_newest_is_among_them() {
    for (frame_bytes, most) in [(usize::MAX, 64), (20, 20)] {
        let config = ChannelConfig { cids: CidSpace::Large { max: 120 }, ..ChannelConfig::default() };
        let mut here = Channel::new(config);
        let mut there = Channel::new(ChannelConfig { frame_bytes, ..config });
        let mut fullest = 0;
        for flow in 0..100 {
            assert_eq!(across(&mut here, &mut there, &tcp(1000 + flow, 1, 0)).0, FormatKind::Ir);
            let (mut answers, mut cids) = ([0; 200], Vec::new());
            let len = there.clone().take_feedback(&mut answers);
            assert!(len <= most, "{len} bytes of {most}");
            let mut rest = &answers[..len];
            // Each has its length in three bits, and begins with its CID.
            while let [head, tail @ ..] = rest {
                let (element, others) = tail.split_at(usize::from(head & 7));
                cids.push(element[0]);
                rest = others;
            }
            assert_eq!(cids.last(), Some(&(flow as u8)), "{cids:?}");
            fullest = fullest.max(cids.len());
        }
        assert!(fullest > 3, "{fullest} answers wait at once");
    }
}

#[test]
fn refused_headers_say_why() {
    let one = ChannelConfig { cids: CidSpace::Small { max: 0 }, packet_bytes: 1500, ..Default::default() };
    let mut channel = Channel::new(one);
    assert!(matches!(channel.send(&udp(1, 60), |_| {}), Err(SendError::Compress(CompressError::Header(_)))));
    assert_eq!(channel.send(&udp(1, 1501), |_| {}), Err(SendError::Packet));
    assert!(channel.send(&tcp(1, 1, 0), |_| {}).is_ok());
    let mut short = Channel::new(ChannelConfig { frame_bytes: 100, ..Default::default() });
    assert_eq!(short.send(&tcp(1, 1, 200), |_| {}), Err(SendError::Frame));
    assert_eq!(short.send(&[], |_| {}), Err(SendError::NoIp));
    assert_eq!(short.send(&[0x15, 0], |_| {}), Err(SendError::NoIp));
}

#[test]
fn segments_that_are_no_whole_unit_deliver_nothing() {
    let config = ChannelConfig {
        frame_bytes: 60,
        packet_bytes: 1500,
        reconstructed_bytes: 600,
        ..ChannelConfig::default()
    };
    let (mut here, mut there) = (Channel::new(config), Channel::new(config));
    let mut frames = Vec::new();
    here.send(&tcp(1, 1, 300), |frame| frames.push(frame.to_vec())).unwrap();
    assert!(frames.len() > 4 && frames.iter().all(|frame| frame.len() <= 60));
    let receive = |there: &mut Channel, frames: &[Vec<u8>]| -> Vec<bool> {
        frames.iter().map(|frame| there.receive(frame, |_| panic!("delivered")).is_ok()).collect()
    };
    // One frame is missing, one is damaged, one arrives twice, and another frame arrives in between.
    let without: Vec<_> = [&frames[..2], &frames[3..]].concat();
    assert_eq!(receive(&mut there, &without).last(), Some(&false));
    let mut damaged = frames.clone();
    damaged[1][9] ^= 1;
    assert_eq!(receive(&mut there, &damaged).last(), Some(&false));
    let twice: Vec<_> = [&frames[..2], &frames[1..]].concat();
    assert_eq!(receive(&mut there, &twice).last(), Some(&false));
    let mut between = frames.clone();
    between.insert(2, vec![0xf1, 0]);
    between.insert(3, vec![0x00, 0, 0]);
    assert!(!receive(&mut there, &between)[3] && !receive(&mut there, &frames[2..])[frames.len() - 3]);
    // A unit of endless segments is bounded.
    for _ in 0..100 {
        let _ = there.receive(&frames[1], |_| panic!("delivered"));
    }
    assert_eq!(there.receive(&frames[1], |_| {}), Err(ReceiveError::Segments));
    assert_eq!(there.receive(frames.last().unwrap(), |_| {}), Err(ReceiveError::Segments));
    let mut delivered = 0;
    for frame in &frames {
        there.receive(frame, |_| delivered += 1).unwrap();
    }
    assert_eq!(delivered, 1);
}

#[test]
fn a_flow_without_room_is_rejected_and_goes_uncompressed() {
    let config = ChannelConfig {
        decompressor: DecompressorConfig { feedback: true, max_contexts: 1, ..Default::default() },
        ..ChannelConfig::default()
    };
    let (mut here, mut there) = (Channel::new(ChannelConfig::default()), Channel::new(config));
    let mut answer = [0; 64];
    let mut formats = Vec::new();
    let mut arrived = 0;
    for number in 0..20 {
        for port in [1, 2] {
            let packet = tcp(port, number, 0);
            let mut frame = Vec::new();
            let sent = here.send(&packet, |bytes| frame = bytes.to_vec()).unwrap();
            let result = there.receive(&frame, |back| arrived += u32::from(back == packet));
            formats.push((port, sent.format));
            if let Err(ReceiveError::Decompress(error)) = result {
                assert_eq!((error.kind, number), (DecompressErrorKind::NoRoom, 0));
            }
            let len = there.take_feedback(&mut answer);
            here.receive(&answer[..len], |_| unreachable!()).unwrap();
        }
    }
    assert_eq!(arrived, 39);
    assert!(
        formats[2..].iter().all(|(port, format)| {
            (*port == 2) == matches!(format, FormatKind::Plain | FormatKind::PlainIr)
        })
    );
}

/// Feedback and a packet each fit in a frame, but not together in one.
#[test]
fn feedback_that_leaves_no_room_goes_before_the_packet() {
    let config = ChannelConfig { frame_bytes: 100, ..ChannelConfig::default() };
    let (mut here, mut there) = (Channel::new(config), Channel::new(config));
    across(&mut here, &mut there, &tcp(1, 1, 0));
    let mut frames = Vec::new();
    let sent = there.send(&udp(1, 96), |frame| frames.push(frame.to_vec())).unwrap();
    assert_eq!((sent.frames, frames.len(), there.has_feedback()), (2, 2, false));
    assert!(frames.iter().all(|frame| frame.len() <= 100) && split_feedback(&frames[0]).1.is_empty());
}

#[test]
fn feedback_rides_alone_or_on_a_packet() {
    let config = ChannelConfig::default();
    let (mut here, mut there) = (Channel::new(config), Channel::new(config));
    across(&mut here, &mut there, &tcp(1, 1, 0));
    assert!(there.has_feedback() && !here.has_feedback());
    let mut on_packet = there.clone();
    assert_eq!(there.take_feedback(&mut [0; 1]), 0, "no room");
    let mut alone = [0; 64];
    let len = there.take_feedback(&mut alone);
    assert_eq!(split_feedback(&alone[..len]), (&alone[..len], &[][..]));
    let mut frame = Vec::new();
    on_packet.send(&tcp(9, 1, 0), |bytes| frame = bytes.to_vec()).unwrap();
    assert_eq!(split_feedback(&frame).0, &alone[..len]);
    assert!(!on_packet.has_feedback());
    here.receive(&frame, |packet| assert_eq!(packet, tcp(9, 1, 0))).unwrap();
    assert_eq!(here.compressor().counts(0).unwrap().acks, 1);
}

#[test]
fn a_repair_that_is_asked_for_comes() {
    let config = ChannelConfig::default();
    let (mut here, mut there) = (Channel::new(config), Channel::new(config));
    let mut last = FormatKind::Ir;
    for number in 0..10 {
        last = across(&mut here, &mut there, &tcp(1, number, 0)).0;
        across(&mut there, &mut here, &udp(number, 40));
    }
    assert!(last > FormatKind::CoCommon);
    for (forget, expected) in [(false, FormatKind::IrDyn), (true, FormatKind::Ir)] {
        if forget {
            assert!(there.remove_received(0) && !there.remove_received(0));
        }
        there.request_repair(0);
        across(&mut there, &mut here, &udp(1, 40));
        assert_eq!(across(&mut here, &mut there, &tcp(1, 50, 0)).0, expected);
        across(&mut there, &mut here, &udp(1, 40));
    }
}

#[test]
fn contexts_are_kept_removed_begun_anew_and_counted() {
    let cids = CidSpace::Small { max: 1 };
    let mut compressor = Compressor::new(CompressorConfig { cids, ..CompressorConfig::default() });
    let mut decompressor = Decompressor::new(DecompressorConfig { cids, ..Default::default() });
    let mut send = |compressor: &mut Compressor, port, number| -> Result<_, CompressError> {
        let (mut rohc, mut out) = ([0; 300], [0; 300]);
        let packet = tcp(port, number, 0);
        let compressed = compressor.compress(&packet, &mut rohc)?;
        let done = decompressor.decompress(&rohc[..compressed.len], &mut out).unwrap();
        assert_eq!(&out[..done.len], packet);
        Ok(compressed)
    };
    for number in 0..9 {
        send(&mut compressor, 1, number).unwrap();
    }
    let counts = compressor.counts(0).unwrap();
    assert_eq!((counts.packets, counts.ip_bytes, counts.initialisations), (9, 9 * 52, 2));
    assert_eq!(compressor.cid_of(&tcp(1, 5, 0)), Some(0));
    assert_eq!((compressor.cid_of(&tcp(2, 5, 0)), compressor.counts(1)), (None, None));
    // A pinned CID is kept while other flows start and end.
    assert!(compressor.pin(0, true) && !compressor.pin(1, true));
    for port in 2..6 {
        assert_eq!(send(&mut compressor, port, 0).unwrap().cid, 1);
    }
    assert!(send(&mut compressor, 1, 9).unwrap().format > FormatKind::CoCommon);
    assert!(compressor.pin(1, true));
    assert_eq!(send(&mut compressor, 9, 0).unwrap_err(), CompressError::NoContext);
    // A removed flow's CID goes to the next flow.
    assert!(compressor.remove(1) && !compressor.remove(1));
    let compressed = send(&mut compressor, 9, 0).unwrap();
    assert_eq!((compressed.cid, compressed.format), (1, FormatKind::Ir));
    // Re-initialised.
    assert!(compressor.reinitialise(0) && !compressor.reinitialise(7));
    assert_eq!(send(&mut compressor, 1, 10).unwrap().format, FormatKind::Ir);
    compressor.reinitialise_all();
    assert_eq!(send(&mut compressor, 9, 1).unwrap().format, FormatKind::Ir);
}

/// An IR of profile 0x0000 may arrive without a packet; it takes the CID from TCP, and TCP can take it back.
#[test]
fn a_cid_goes_from_one_profile_to_the_other() {
    let feedback = DecompressorConfig { feedback: true, ..Default::default() };
    let mut decompressor = Decompressor::new(feedback);
    let mut compressor = Compressor::new(CompressorConfig::default());
    let (mut rohc, mut out) = ([0; 300], [0; 300]);
    let compressed = compressor.compress(&tcp(1, 1, 0), &mut rohc).unwrap();
    decompressor.decompress(&rohc[..compressed.len], &mut out).unwrap();
    let check = tacit_rohc::crc::CRC8.check(&[0xfc, 0]);
    let done = decompressor.decompress(&[0xfc, 0, check], &mut out).unwrap();
    assert_eq!((done.len, done.format), (0, FormatKind::PlainIr));
    assert_eq!(done.feedback.unwrap().kind(), FeedbackKind::Ack);
    assert_eq!(done.feedback.unwrap().as_bytes(), [0xf1, 0]);
    let done = decompressor.decompress(&udp(1, 33), &mut out).unwrap();
    assert_eq!((&out[..done.len], done.format), (&udp(1, 33)[..], FormatKind::Plain));
    assert_eq!(
        decompressor.decompress(&[0x15, 0], &mut out).unwrap_err().kind,
        DecompressErrorKind::Malformed
    );
    assert_eq!(
        decompressor.decompress(&[0xfc, 0, check ^ 1], &mut out).unwrap_err().kind,
        DecompressErrorKind::Crc
    );
    let compressed = compressor.compress(&tcp(1, 2, 0), &mut rohc).unwrap();
    decompressor.decompress(&rohc[..compressed.len], &mut out).unwrap();
    let error = decompressor.decompress(&udp(1, 33), &mut out).unwrap_err().kind;
    assert_ne!(error, DecompressErrorKind::NoContext);
}
