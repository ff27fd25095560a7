//! Random packets, random damage to them, and random bytes.

use proptest::prelude::*;

use super::*;

fn any_hello() -> impl Strategy<Value = Hello> {
    (any::<(u16, u32, u32, u32, u32)>(), 1..=u32::MAX, any::<(u16, u8, u8, u8)>(), 0u8..16).prop_map(
        |(
            (version, departed, echo, window, stream_window),
            source,
            (max_payload, beta, every, min_interval_ms),
            streams,
        )| {
            Hello {
                streams,
                version,
                source: ConnectionId(source),
                departed: Stamp(departed),
                echo: Stamp(echo),
                window,
                stream_window,
                max_payload,
                beta,
                every,
                min_interval_ms,
            }
        },
    )
}

fn any_sync() -> impl Strategy<Value = Sync> {
    any::<(u32, u32, u8, bool, u16)>().prop_map(|(rtt_min_us, floor, blocks, startup, ack_interval_ms)| {
        Sync { rtt_min_us, floor: SeqNumber(floor), blocks, startup, ack_interval_ms }
    })
}

fn any_stream() -> impl Strategy<Value = u32> {
    prop_oneof![0u32..0x8010, 0x7ff0..=StreamId::MAX]
}

fn any_data() -> impl Strategy<Value = Data> {
    let stream = prop_oneof![Just(0), any_stream()];
    (stream, any::<(u32, u32, bool, bool, bool)>(), 0u16..3000, prop::option::of(any_sync())).prop_map(
        |(stream, (offset, departed, fin, immediate_ack, short), payload_len, sync)| Data {
            stream: StreamId(stream),
            offset: SeqNumber(offset),
            payload_len,
            fin,
            immediate_ack,
            short,
            departed: if short { Stamp(departed).short() } else { Stamp(departed) },
            sync,
        },
    )
}

/// Blocks from `cumulative` on: distance from the previous block, number of packets, and whether they were received.
fn any_tack() -> impl Strategy<Value = Tack> {
    let blocks = prop::collection::vec((0u32..2_000_000, 0u32..2_000_000, any::<bool>()), 0..400);
    let streams = prop::collection::vec((any_stream(), any::<u32>()), 0..=MAX_LIST);
    let small = (any::<[u16; 3]>(), any::<u8>(), any::<prop::sample::Index>());
    (any::<[u32; 7]>(), small, blocks, streams).prop_map(
        |(numbers, (short, base_loss, repeated), blocks, streams)| {
            let [left, departed, delay_us, rate_kbps, received, window, cumulative] = numbers;
            let [loss, ce, burst] = short;
            let mut next = SeqNumber(cumulative);
            let (mut acked, mut unacked) = (Vec::new(), Vec::new());
            for (gap, more, there) in blocks {
                let block = Block { first: next + gap, last: next + gap + more };
                next = block.last + 1;
                if there { acked.push(block) } else { unacked.push(block) }
            }
            acked.truncate(MAX_LIST);
            acked.reverse();
            unacked.truncate(MAX_LIST);
            Tack {
                left: Stamp(left),
                departed: Stamp(departed),
                delay_us,
                rate_kbps,
                loss,
                received: SeqNumber(received),
                window: SeqNumber(window),
                ce,
                burst,
                base_loss,
                cumulative: SeqNumber(cumulative),
                repeated: repeated.index(unacked.len() + 1) as u8,
                acked,
                unacked,
                streams: streams.into_iter().map(|(id, limit)| (StreamId(id), SeqNumber(limit))).collect(),
            }
        },
    )
}

fn any_instant() -> impl Strategy<Value = InstantAck> {
    let numbers = any::<[u32; 4]>().prop_map(|numbers| numbers.map(SeqNumber));
    (numbers, any::<bool>(), 2u32..1 << 31).prop_map(|([largest, second, cumulative, window], loss, hole)| {
        let (cause, second) = if loss { (Cause::Loss, largest - hole) } else { (Cause::Window, second) };
        let since = second - u32::from(loss);
        InstantAck { cause, largest, second, since, cumulative, window }
    })
}

fn any_control() -> impl Strategy<Value = Control> {
    (0..4, any_stream(), any::<[u32; 2]>()).prop_map(|(kind, number, [code, end])| {
        let stream = StreamId(number);
        match kind {
            0 => Control::Reset { stream, code, end: SeqNumber(end) },
            1 => Control::Stop { stream, code },
            2 => Control::Streams { limit: code },
            _ => Control::Held { stream },
        }
    })
}

fn any_token() -> impl Strategy<Value = Token> {
    (any::<[u8; 8]>(), 0u16..3000).prop_map(|(token, padding)| Token { token, padding })
}

fn any_packet() -> impl Strategy<Value = Packet> {
    let codes = [
        CloseCode::Done,
        CloseCode::Aborted,
        CloseCode::Refused,
        CloseCode::Violation,
        CloseCode::PathTooNarrow,
    ];
    let body = prop_oneof![
        any_hello().prop_map(|hello| Body::Open(Hello { echo: Stamp(0), ..hello })),
        any_hello().prop_map(Body::Answer),
        any_data().prop_map(Body::Data),
        any_tack().prop_map(|tack| Body::Tack(Arc::new(tack))),
        any_instant().prop_map(Body::Instant),
        any_sync().prop_map(Body::Sync),
        (0u16..3000).prop_map(|padding| Body::Probe { padding }),
        prop::sample::select(codes.to_vec()).prop_map(Body::Close),
        (any::<u32>(), ".{0,40}")
            .prop_map(|(code, text)| Body::CloseWith(Arc::new(Reason::new(code, &text)))),
        any_control().prop_map(Body::Control),
        (0u16..3000, any::<u32>(), prop::option::of(any_sync())).prop_map(|(payload_len, departed, sync)| {
            Body::Datagram(Datagram { payload_len, departed: Stamp(departed), sync })
        }),
        any_token().prop_map(Body::PathChallenge),
        any_token().prop_map(Body::PathResponse),
    ];
    (any::<u32>(), any::<u32>(), body).prop_map(|(connection, number, body)| {
        let connection = match body {
            Body::Open(_) => 0,
            Body::Close(_) | Body::CloseWith(_) => connection,
            Body::Data(data) if data.short && number % 2 == 0 => 0,
            _ => connection.max(1),
        };
        let packet = Packet { connection: ConnectionId(connection), number: SeqNumber(number), body };
        let number = if packet.is_short() { SeqNumber(number & 0xffff) } else { packet.number };
        Packet { number, ..packet }
    })
}

proptest! {
    #[test]
    fn packets_survive(packet in any_packet()) {
        let bytes = encoded(&packet);
        prop_assert_eq!(bytes.len(), packet.len() as usize);
        prop_assert_eq!(decode(&bytes), Ok((packet.clone(), &content_of(&packet)[..])));
        let carried = carried(packet);
        let bytes = wire::encode(&carried).unwrap();
        prop_assert_eq!(bytes.len() as u64, carried.len().0);
        prop_assert_eq!(wire::decode(&bytes), Ok(carried));
    }

    /// Valid packets with a few changed bytes, which reach deeper code than random bytes: those still accepted have
    /// only one form.
    #[test]
    fn parsed_packets_are_emitted_as_they_were(
        packet in any_packet(),
        damage in prop::collection::vec((0usize..100, any::<u8>()), 0..4),
        cut in 0usize..60,
    ) {
        let mut bytes = encoded(&packet);
        bytes.truncate(bytes.len() - TAG);
        for (place, value) in damage {
            let len = bytes.len();
            bytes[place % len] = value;
        }
        // Half of them are complete.
        bytes.truncate(bytes.len() - cut.saturating_sub(30).min(bytes.len()));
        bytes.extend([0; TAG]);
        if let Ok((packet, content)) = decode(&bytes) {
            prop_assert_eq!(packet.len() as usize, bytes.len());
            let mut again = Vec::new();
            encode(&packet, content, &mut again).unwrap();
            prop_assert_eq!(again, bytes);
        }
    }

    #[test]
    fn noise_does_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(decode(&bytes).is_err(), "its tag is not zeros");
        let tagged = [&bytes[..], &[0; TAG]].concat();
        if let Ok((packet, content)) = decode(&tagged) {
            let mut again = Vec::new();
            encode(&packet, content, &mut again).unwrap();
            prop_assert_eq!(again, tagged);
        }
    }
}
