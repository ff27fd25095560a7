//! Short data: when numbers and time stamps of 16 bits are sent, and how they are read.

use std::sync::Arc;

use tacit_packet::endpoint::Event;
use tacit_packet::tack::packet::{Body, ConnectionId, Data, Stamp, StreamId, Tack};
use tacit_packet::units::{BitRate, SeqNumber};
use tacit_tack_proto::Config;

use crate::joined::Side;
use crate::script::{FULL, Script, at_ms, only_tack, steady};
use crate::{long_pipe, ms, pipe};

fn data_of(body: &Body) -> Option<Data> {
    match body {
        Body::Data(data) => Some(*data),
        _ => None,
    }
}

/// A TACK for all below `cumulative`, `bytes` of data, of a packet that left 20 ms before `now`.
fn tack(end: &Script, now: u64, cumulative: u32, bytes: u32) -> Body {
    let departed = Stamp(end.stamp_at(at_ms(now)).0.wrapping_sub(20_000));
    Body::Tack(Arc::new(Tack {
        departed,
        cumulative: SeqNumber(cumulative),
        received: SeqNumber(bytes),
        window: SeqNumber(1 << 30),
        ..Tack::default()
    }))
}

/// Data written and sent at `now` by a connection whose peer has data that left at 10 ms.
fn written_at(now: u64) -> Vec<Data> {
    let mut script = Script::established(Config::default());
    script.end.write(u64::from(FULL));
    let first = script.numbered(at_ms(10));
    let [(number, Body::Data(data))] = first[..] else { panic!("{first:?}") };
    assert!(
        data.short && data.payload_len == FULL,
        "the peer has the answer, which left 10 ms ago: {data:?}"
    );
    script.give(at_ms(30), tack(&script, 30, number + 1, u32::from(FULL)));
    script.end.write(u64::from(2 * FULL));
    // The pacer lets the second go a little later.
    (0..20).flat_map(|later| script.takes(at_ms(now + later))).filter_map(|body| data_of(&body)).collect()
}

#[test]
fn data_is_short_while_what_the_peer_has_left_lately() {
    let soon = written_at(40);
    assert!(soon.iter().all(|data| data.short), "{soon:?}");
    assert_eq!(soon.iter().map(|data| data.payload_len).collect::<Vec<_>>(), [FULL; 2]);
    let late = written_at(1_011);
    assert!(!late.is_empty() && late.iter().all(|data| !data.short), "{late:?}");
}

/// For any reading of the sender's clock, and though its short form turns many times: the reading that comes back is that of the packet.
#[test]
fn short_stamps_are_read_in_full() {
    let mut script = receiver();
    let mut left_us = 0xffff_0000u32;
    script.give_number(at_ms(40), 3, data(3, left_us, false));
    script.takes(at_ms(40));
    for step in 1..200u32 {
        left_us = left_us.wrapping_add(7_321 * (step % 90));
        let now = at_ms(40 + 25 * u64::from(step));
        script.give_number(now, 3 + step, data(3 + step, left_us, true));
        if let [Body::Tack(tack)] = &script.takes(now)[..] {
            assert!(left_us.wrapping_sub(tack.departed.0) < 16, "{left_us} was read as {:?}", tack.departed);
        }
    }
}

/// An overtaken packet is never read as if it had had less delay than the one that overtook it.
#[test]
fn an_overtaken_packet_is_not_the_fastest() {
    for overtaken_by_us in [1_000, 500_000, 1_048_560, 1_048_576, 1_500_000, 3_000_000] {
        let mut script = receiver();
        let at = 4_000_000;
        script.give_number(at_ms(40), 3, data(3, at, false));
        script.takes(at_ms(40));
        script.give_number(at_ms(41), 5, data(5, at + 1_000, true));
        script.give_number(at_ms(41), 4, data(4, at + 1_000 - overtaken_by_us, true));
        let late = only_tack(&script.takes(at_ms(141)));
        assert!(at + 1_000 - late.departed.0 < 16, "{overtaken_by_us}: {:?}", late.departed);
    }
}

/// A server that has heard of a steady path of 20 ms; data begins with number 3.
fn receiver() -> Script {
    let mut script = Script::established(Config::default());
    script.give_number(at_ms(20), 2, Body::Sync(steady(20).unwrap_or_default()));
    script
}

fn data(number: u32, left_us: u32, short: bool) -> Body {
    let departed = if short { Stamp(left_us).short() } else { Stamp(left_us) };
    let offset = SeqNumber((number - 3) * 10);
    Body::Data(Data { offset, payload_len: 10, departed, short, immediate_ack: true, ..Data::default() })
}

/// Losses, reordering and doubles over a path whose stream of packet numbers turns the 16 bits twice.
#[test]
fn numbers_turn_without_harm() {
    let mut pipe = long_pipe(Config::default(), BitRate::from_mbps(400), ms(20));
    (pipe.up.lose_one_in, pipe.down.lose_one_in) = (200, 50);
    (pipe.up.delay_one_in, pipe.up.jitter, pipe.up.double_one_in) = (50, ms(5), 100);
    pipe.up.queue = ms(40);
    let bytes = 200_000_000;
    pipe.client.write(bytes);
    pipe.client.close();
    pipe.server.close();
    pipe.run_for(ms(20_000));
    assert_eq!(pipe.server.delivered_bytes(), bytes);
    assert!(pipe.client.stats().packets_sent > 2 << 16);
    assert!(pipe.client_events.contains(&Event::Closed) && pipe.server_events.contains(&Event::Closed));
}

/// Packets to a client go without the number of its connection; packets to a server name it.
#[test]
fn the_client_is_implied() {
    for to in [Side::Server, Side::Client] {
        let mut pipe = pipe(Config::default(), BitRate::from_mbps(40), ms(20));
        let sender = if to == Side::Server { &mut pipe.client } else { &mut pipe.server };
        sender.write(1_000_000);
        pipe.run_for(ms(2_000));
        let sender = if to == Side::Server { &pipe.client } else { &pipe.server };
        let stats = sender.stats();
        let room = if to == Side::Server { 1443 } else { 1447 };
        let data_packets = 1_000_000u64.div_ceil(room);
        assert_eq!((stats.packets_retransmitted, stats.data_packets_sent), (0, data_packets));
    }
    assert!(ConnectionId(1 << 31).is_implied() && !ConnectionId(u32::MAX >> 1).is_implied());
}

/// Data that was lost in a long packet and goes again in shorter ones leaves no trail of small packets.
#[test]
fn data_that_no_longer_fits_continues_in_the_next_packet() {
    let mut script = Script::established(Config::default());
    script.end.write(u64::from(FULL));
    let (number, _) = script.numbered(at_ms(10))[0];
    script.give(at_ms(30), tack(&script, 30, number + 1, u32::from(FULL)));
    script.end.write(8 * u64::from(FULL));
    let sent: Vec<_> = (30..60)
        .flat_map(|now| {
            script.end_timeout(now);
            script.numbered(at_ms(now))
        })
        .collect();
    let numbers: Vec<u32> = sent.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers.len(), 8, "{sent:?}");
    // All but the last are missing, which shows only after a second and a half: the data goes again in long form.
    let last = numbers[7];
    let mut missing = match tack(&script, 1_600, numbers[0], u32::from(FULL) + u32::from(FULL)) {
        Body::Tack(tack) => Tack::clone(&tack),
        other => panic!("{other:?}"),
    };
    let block =
        |first, last| tacit_packet::tack::packet::Block { first: SeqNumber(first), last: SeqNumber(last) };
    missing.unacked = vec![block(numbers[0], last - 1)];
    missing.acked = vec![block(last, last)];
    missing.repeated = 1;
    script.give(at_ms(1_600), Body::Tack(Arc::new(missing)));
    let again: Vec<Data> =
        (1_600..1_900).flat_map(|now| script.takes(at_ms(now))).filter_map(|body| data_of(&body)).collect();
    let first_of: Vec<Data> =
        again.iter().copied().filter(|data| !data.immediate_ack && data.stream == StreamId(0)).collect();
    let bytes: u32 = first_of.iter().take(8).map(|data| u32::from(data.payload_len)).sum();
    assert!(bytes >= 7 * u32::from(FULL), "{again:?}");
}
