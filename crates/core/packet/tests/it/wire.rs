//! Encoding and decoding of packets.

use proptest::prelude::*;
use tacit_packet::tcp::{Flags, SackBlocks, SackRange, Segment, Timestamps};
use tacit_packet::udp::Datagram;
use tacit_packet::units::{FlowId, HostId, SeqNumber};
use tacit_packet::wire::{
    DecodeError, EncodeError, decode, decode_foreign, encode, encode_foreign, encode_headers,
    segment as read_segment,
};
use tacit_packet::{Ecn, IpHeader, IpVersion, Packet, Transport};

fn packet(transport: Transport) -> Packet {
    Packet {
        flow: FlowId(7),
        source: HostId(1),
        destination: HostId(0x0001_0203),
        ip: IpHeader { version: IpVersion::V4, ecn: Ecn::NotEct, identification: 0x1234 },
        transport,
    }
}

fn syn() -> Packet {
    packet(Transport::Tcp(Segment {
        seq: SeqNumber(1),
        window: 65_535,
        flags: Flags::SYN,
        timestamps: Some(Timestamps { value: 2, echo_reply: 0 }),
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        ..Segment::default()
    }))
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .chunks(4)
        .map(|word| word.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        .collect::<Vec<_>>()
        .join(" ")
}

/// To be read together with RFC 791 section 3.1, RFC 9293 section 3.1 and RFC 7323: one word per field.
#[test]
fn a_syn_looks_like_one_from_linux() {
    let bytes = encode(&syn()).unwrap();
    insta::assert_snapshot!(hex(&bytes), @"4500003c 12344000 40061284 0a000001 0a010203 3cb71389 00000001 00000000 a002ffff e1b80000 020405b4 0402080a 00000002 00000000 01030307");
}

#[test]
fn a_datagram_starts_with_its_number() {
    let bytes = encode(&packet(Transport::Udp(Datagram { number: 258, payload_len: 12 }))).unwrap();
    insta::assert_snapshot!(hex(&bytes), @"45000028 12344000 4011128d 0a000001 0a010203 3cb71389 0014ac2c 00000000 00000102 d98012d2");
}

#[test]
fn a_payload_of_somebody_elses_goes_there_and_back() {
    let segment = Segment { flags: Flags::ACK, payload_len: 5, ..Segment::default() };
    for transport in [Transport::Tcp(segment), Transport::Udp(Datagram { number: 0, payload_len: 9 })] {
        let content: &[u8] = if matches!(transport, Transport::Tcp(_)) { b"hello" } else { &[0; 9] };
        let mut bytes = b"before".to_vec();
        let packet = packet(transport);
        encode_foreign(&packet, content, &mut bytes).unwrap();
        let short = encode_foreign(&packet, &content[1..], &mut Vec::new());
        assert_eq!(decode_foreign(&bytes[6..]), Ok((packet, content)));
        assert!(matches!(short, Err(EncodeError::Content(..))), "{short:?}");
    }
}

#[test]
fn packets_without_a_wire_form_are_refused() {
    let far = Packet { source: HostId(1 << 24), ..syn() };
    assert_eq!(encode(&far), Err(EncodeError::Host(HostId(1 << 24))));
    let many = Packet { flow: FlowId(50_000), ..syn() };
    assert_eq!(encode(&many), Err(EncodeError::Flow(FlowId(50_000))));
    let long = packet(Transport::Udp(Datagram { number: 0, payload_len: 65_508 }));
    assert_eq!(encode(&long), Err(EncodeError::TooLong(65_536)));
    let short = packet(Transport::Udp(Datagram { number: 0, payload_len: 7 }));
    assert_eq!(encode(&short), Err(EncodeError::ShortDatagram(7)));
}

#[test]
fn captures_may_be_cut() {
    let data = packet(Transport::Tcp(Segment { payload_len: 1000, flags: Flags::ACK, ..Segment::default() }));
    assert_eq!(encode_headers(&data, 64).unwrap(), encode(&data).unwrap()[..64]);
}

#[test]
fn every_flipped_bit_is_noticed_or_harmless() {
    let data = packet(Transport::Tcp(Segment {
        payload_len: 20,
        flags: Flags::ACK,
        timestamps: Some(Timestamps { value: 1, echo_reply: 2 }),
        ..Segment::default()
    }));
    let bytes = encode(&data).unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(decode(&damaged).is_err(), "bit {bit}");
    }
    assert_eq!(decode(&bytes[..30]), Err(DecodeError::Length("IP")));
    assert_eq!(decode(&[]), Err(DecodeError::Truncated("IP")));
}

/// Payload is checked, too, so that misplaced data is detected.
#[test]
fn payload_of_another_place_is_refused() {
    let data = packet(Transport::Tcp(Segment {
        seq: SeqNumber(1000),
        payload_len: 8,
        flags: Flags::ACK,
        ..Segment::default()
    }));
    let mut bytes = encode(&data).unwrap();
    // Eight more in the sequence number, eight less in the checksum: TCP does not detect it.
    bytes[27] += 8;
    bytes[37] -= 8;
    assert_eq!(decode(&bytes), Err(DecodeError::Payload(0)));
}

fn segment() -> impl Strategy<Value = Segment> {
    let options = (
        prop::option::of((any::<u32>(), any::<u32>())),
        prop::collection::vec((any::<u32>(), any::<u32>()), 0..4),
        prop::option::of(any::<u16>()),
        prop::option::of(any::<u8>()),
        any::<bool>(),
    );
    (any::<(u32, u32, u16, u8)>(), 0u32..3000, options).prop_filter_map(
        "options that fit",
        |((seq, ack, window, flags), payload_len, (stamps, blocks, mss, window_scale, sack_permitted))| {
            let mut sack = SackBlocks::EMPTY;
            for (start, end) in blocks {
                sack.push(SackRange { start: SeqNumber(start), end: SeqNumber(end) });
            }
            let segment = Segment {
                seq: SeqNumber(seq),
                ack: SeqNumber(ack),
                payload_len,
                window,
                flags: Flags(flags),
                timestamps: stamps.map(|(value, echo_reply)| Timestamps { value, echo_reply }),
                sack,
                mss,
                window_scale,
                sack_permitted,
                placeholder: false,
            };
            (segment.header_len() <= 60).then_some(segment)
        },
    )
}

fn any_packet() -> impl Strategy<Value = Packet> {
    let datagram = (any::<u64>(), 8u32..3000)
        .prop_map(|(number, payload_len)| Transport::Udp(Datagram { number, payload_len }));
    let transport = prop_oneof![segment().prop_map(Transport::Tcp), datagram];
    let ecn = prop::sample::select(vec![Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce]);
    (0u32..50_000, 0u32..1 << 24, 0u32..1 << 24, any::<bool>(), ecn, any::<u16>(), transport).prop_map(
        |(flow, source, destination, v6, ecn, identification, transport)| Packet {
            flow: FlowId(flow),
            source: HostId(source),
            destination: HostId(destination),
            ip: if v6 {
                IpHeader { version: IpVersion::V6, ecn, identification: 0 }
            } else {
                IpHeader { version: IpVersion::V4, ecn, identification }
            },
            transport,
        },
    )
}

proptest! {
    /// Options of a SYN are not understood elsewhere, and anything may have happened to a byte.
    #[test]
    fn a_segment_of_others_is_read_whole_or_not_at_all(
        packet in any_packet(),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = encode(&packet).unwrap();
        let read = |bytes: &[u8]| read_segment(bytes).map(|(_, segment)| segment);
        let expected = match packet.transport {
            Transport::Tcp(segment) => {
                let opens = segment.mss.is_some() || segment.window_scale.is_some() || segment.sack_permitted;
                (!opens || segment.flags.contains(Flags::SYN)).then_some(segment)
            }
            _ => None,
        };
        prop_assert_eq!(read(&bytes), expected);
        let place = place.index(bytes.len());
        prop_assert_eq!(read(&bytes[..place]), None);
        bytes[place] = byte;
        prop_assert!(read(&bytes).is_none_or(|segment| segment.payload_len as usize <= bytes.len()));
    }

    #[test]
    fn packets_survive_the_wire(packet in any_packet()) {
        let bytes = encode(&packet).unwrap();
        prop_assert_eq!(bytes.len() as u64, packet.len().0);
        prop_assert_eq!(decode(&bytes), Ok(packet));
    }

    #[test]
    fn noise_is_refused_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(decode(&bytes).is_err());
    }

    /// Valid headers with damaged content reach deeper code than random bytes.
    #[test]
    fn damaged_packets_never_panic(packet in any_packet(), damage in prop::collection::vec((any::<usize>(), any::<u8>()), 1..4)) {
        let mut bytes = encode(&packet).unwrap();
        for (at, value) in damage {
            let at = at % bytes.len().min(100);
            bytes[at] = value;
        }
        let _ = decode(&bytes);
    }
}

/// An ACK sent by Linux 6.18: its checksum is zero, which has two forms.
#[test]
fn linux_writes_a_checksum_of_zero_as_all_ones() {
    let ack = [
        0x45, 0x00, 0x00, 0x34, 0x1f, 0x6d, 0x40, 0x00, 0x3f, 0x06, 0x08, 0x55, 0x0a, 0x00, 0x00, 0x01, 0x0a,
        0x00, 0x00, 0x02, 0x3c, 0xb0, 0x13, 0x89, 0xc7, 0x45, 0xb8, 0x08, 0x01, 0x56, 0xd0, 0x70, 0x80, 0x10,
        0x06, 0xc6, 0xff, 0xff, 0x00, 0x00, 0x01, 0x01, 0x08, 0x0a, 0xa8, 0xf6, 0x6e, 0x81, 0x00, 0xbd, 0xa2,
        0x71,
    ];
    let packet = decode(&ack).unwrap();
    assert!(packet.is_pure_ack());
    let again = encode(&packet).unwrap();
    assert_eq!(again[36..38], [0, 0], "as we write it");
    let mut wrong = ack;
    wrong[37] = 0xfe;
    assert_eq!(decode(&wrong), Err(DecodeError::Checksum("TCP")));
}

#[test]
fn the_payload_of_others_may_be_anything() {
    let packet = packet(Transport::Tcp(Segment { payload_len: 3, flags: Flags::ACK, ..Segment::default() }));
    let mut bytes = encode(&packet).unwrap();
    assert_eq!(decode_foreign(&bytes), Ok((packet.clone(), &bytes[bytes.len() - 3..])));
    // Both bytes are high halves of words, so the checksum is unchanged.
    let [.., first, _, last] = &mut bytes[..] else { unreachable!("it has headers") };
    (*first, *last) = (*last, *first);
    let swapped = decode_foreign(&bytes).map(|(packet, _)| packet);
    assert_eq!(swapped, Ok(packet));
    assert_eq!(decode(&bytes), Err(DecodeError::Payload(0)));
}
