//! The driver of TCP/HACK with a real NIC, step by step: the host's work between the acknowledgment of one PPDU and
//! that of the next (HACK paper sections 3.2 and 3.3.1).

use tacit_between::hack::{Action, Config, Driver, Nic, SolicitedBy, Variant};
use tacit_packet::tcp::{Flags, Segment, Timestamps};
use tacit_packet::units::{Duration, FlowId, HostId, Instant, SeqNumber};
use tacit_packet::{IpHeader, Packet, Transport};

pub const TURNAROUND: Duration = Duration::from_micros(100);

pub fn at(us: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(us)
}

/// The pure ACK with this number of a download.
pub fn ack(number: u32) -> Packet {
    let segment = Segment {
        seq: SeqNumber(1),
        ack: SeqNumber(1 + 2896 * number),
        window: 500,
        flags: Flags::ACK,
        timestamps: Some(Timestamps { value: number, echo_reply: number }),
        ..Segment::default()
    };
    Packet {
        flow: FlowId(1),
        source: HostId(2),
        destination: HostId(0),
        ip: IpHeader { identification: number as u16, ..IpHeader::default() },
        transport: Transport::Tcp(segment),
    }
}

/// A client with driver and NIC.
struct Client {
    driver: Driver<Packet>,
    nic: Nic,
    /// Queued packets, in order.
    queued: Vec<Packet>,
    descriptors: u32,
}

impl Client {
    /// A client whose first ACK was sent as a packet and arrived, so that the flow has a context.
    fn new(variant: Variant) -> Self {
        let config = Config { variant, turnaround: TURNAROUND, ..Config::default() };
        let driver = Driver::new(config, 1);
        let mut client = Self { driver, nic: Nic::new(1), queued: Vec::new(), descriptors: 0 };
        client.sends(at(0), ack(0));
        assert_eq!(client.queued, [ack(0)], "no link-layer ACK is expected to come, and no context is there");
        client.driver.handle_settled(at(0), 0, &ack(0), true);
        client.queued.clear();
        client
    }

    fn sends(&mut self, now: Instant, packet: Packet) {
        self.driver.handle_outgoing(now, 0, packet);
        self.act();
    }

    /// An A-MPDU arrives; returns the number of bytes appended to its Block Ack.
    fn receive_ampdu(&mut self, more_data: bool) -> usize {
        self.receive_ampdu_at(at(0), more_data)
    }

    fn receive_ampdu_at(&mut self, now: Instant, more_data: bool) -> usize {
        let mut appended = Vec::new();
        let response = self.nic.respond(0, SolicitedBy::Ampdu, false, None, &mut appended);
        self.driver.handle_received(now, 0, SolicitedBy::Ampdu, more_data, response);
        self.act();
        appended.len()
    }

    fn waits(&mut self, until: Instant) {
        while let Some(due) = self.driver.poll_timeout().filter(|due| *due <= until) {
            self.driver.handle_timeout(due);
            self.act();
        }
    }

    fn act(&mut self) {
        while let Some(action) = self.driver.poll_action() {
            match action {
                Action::Send(_, packet) => self.queued.push(packet),
                Action::Descriptor(peer, frame) => {
                    self.descriptors += 1;
                    self.nic.add(peer, &frame);
                }
                Action::ClearFresh(peer) => self.nic.clear_fresh(peer),
                Action::ClearRetained(peer) => self.nic.clear_retained(peer),
                Action::Retract(_, packets) => {
                    for packet in packets {
                        self.queued.retain(|queued| *queued != packet);
                        self.driver.handle_retracted(0, &packet);
                    }
                }
            }
        }
    }
}

#[test]
fn an_ack_rides_on_the_next_block_ack_at_the_earliest() {
    let mut client = Client::new(Variant::MoreData);
    assert_eq!(client.receive_ampdu(true), 0);
    client.sends(at(1_000), ack(1));
    assert_eq!(client.queued, []);
    client.waits(at(1_099));
    assert_eq!(client.descriptors, 0, "interrupt, stack, compression and DMA take their time");
    client.waits(at(1_100));
    assert_eq!(client.descriptors, 1);
    assert!(client.receive_ampdu(true) > 0);
    assert_eq!(client.queued, []);
}

#[test]
fn each_ack_has_its_own_turnaround() {
    let mut client = Client::new(Variant::MoreData);
    client.receive_ampdu(true);
    client.sends(at(1_000), ack(1));
    client.sends(at(1_090), ack(2));
    client.waits(at(1_100));
    let first = client.receive_ampdu(true);
    client.waits(at(1_190));
    assert!(first > 0 && client.receive_ampdu(true) > 0, "the second was not ready for the first Block Ack");
}

/// The race of section 3.3.1: the last batch arrives before the DMA has finished.
#[test]
fn a_batch_that_comes_before_the_dma_gets_a_plain_block_ack_and_the_acks_go_as_packets() {
    let mut client = Client::new(Variant::MoreData);
    client.receive_ampdu(true);
    client.sends(at(1_000), ack(1));
    client.sends(at(1_000), ack(2));
    assert_eq!(client.receive_ampdu(false), 0, "not ready");
    assert_eq!(client.queued, [ack(1), ack(2)]);
    client.waits(at(1_000_000));
    assert_eq!((client.receive_ampdu(true), client.descriptors), (0, 0), "they do not go twice");
    assert_eq!(client.driver.counters().flushed_acks, 2);
}

/// The first ACK of an upload is behind a whole download in the access point's queue. Later ACKs would have to wait as
/// long as packets; they need not.
#[test]
fn acks_behind_a_packet_of_their_flow_wait_until_it_arrived_and_then_ride() {
    let mut client = Client::new(Variant::MoreData);
    client.receive_ampdu(false);
    client.sends(at(1_000), ack(1));
    client.receive_ampdu(true);
    client.sends(at(2_000), ack(2));
    client.sends(at(3_000), ack(3));
    assert_eq!(client.queued, [ack(1)]);
    client.waits(at(19_000));
    assert_eq!(client.receive_ampdu(true), 0, "they are coded against one that has not arrived");
    client.driver.handle_settled(at(20_000), 0, &ack(1), true);
    client.waits(at(20_100));
    assert!(client.receive_ampdu(true) > 0);
    assert_eq!(client.queued, [ack(1)]);
    assert_eq!(client.driver.counters().compressed_acks, 2);
}

/// The codec can distinguish 127 unproven ACKs. A receiver that acknowledges every packet, as after losses, sends 64
/// per A-MPDU. Together with the unproven ones that is one too many, so it waits for the proof. As a packet it would
/// have forced all of those, and later ones, to be packets.
#[test]
fn an_ack_beyond_those_that_may_be_unproven_waits_for_proof() {
    let mut client = Client::new(Variant::MoreData);
    client.receive_ampdu(true);
    (1..=64).for_each(|number| client.sends(at(1_000), ack(number)));
    client.waits(at(1_100));
    assert!(client.receive_ampdu_at(at(2_000), true) > 0);
    (65..=128).for_each(|number| client.sends(at(2_000), ack(number)));
    client.waits(at(2_100));
    assert_eq!(client.queued, []);
    // This A-MPDU proves the first 64 ACKs; its Block Ack carries 63.
    assert!(client.receive_ampdu_at(at(3_000), true) > 0);
    assert_eq!(client.driver.counters().compressed_acks, 127);
    client.waits(at(3_100));
    assert!(client.receive_ampdu_at(at(4_000), true) > 0);
    assert_eq!(client.driver.counters().compressed_acks, 128);
    assert_eq!(client.queued, []);
}

/// An ACK does not overtake those of its flow that wait for room, and all are sent in order if nothing more arrives.
#[test]
fn acks_that_wait_for_proof_go_as_packets_in_order_when_no_more_data_comes() {
    let mut client = Client::new(Variant::MoreData);
    client.receive_ampdu(true);
    (1..=130).for_each(|number| client.sends(at(1_000), ack(number)));
    client.sends(at(1_050), ack(131));
    client.receive_ampdu_at(at(1_060), false);
    assert_eq!(client.queued, (1..=131).map(ack).collect::<Vec<_>>());
}

/// The limit applies to each ACK individually: although some ACK is always waiting, none is late.
#[test]
fn acks_that_come_while_others_ride_have_the_whole_limit() {
    let mut client = Client::new(Variant::MoreData);
    client.receive_ampdu(true);
    // Each is appended to the next Block Ack, and by then another one waits.
    for number in 1..=400 {
        let now = at(1_000 * u64::from(number));
        client.sends(now, ack(number));
        client.waits(now + Duration::from_micros(900));
        if number > 1 {
            client.sends(now + Duration::from_micros(950), ack(1_000 + number));
        }
        assert!(client.receive_ampdu_at(now + Duration::from_micros(960), true) > 0);
    }
    assert_eq!(client.driver.counters().hold_limits, 0);
    assert_eq!(client.queued, []);
}

#[test]
fn acks_behind_a_packet_follow_it_when_no_more_data_comes() {
    let mut client = Client::new(Variant::MoreData);
    client.receive_ampdu(false);
    client.sends(at(1_000), ack(1));
    client.receive_ampdu(true);
    client.sends(at(2_000), ack(2));
    client.receive_ampdu(false);
    assert_eq!(client.queued, [ack(1), ack(2)]);
}

#[test]
fn without_more_data_nothing_waits() {
    let mut client = Client::new(Variant::MoreData);
    client.receive_ampdu(false);
    client.sends(at(1_000), ack(1));
    assert_eq!(client.queued, [ack(1)]);
}

#[test]
fn a_promise_that_is_not_kept_holds_nothing_beyond_the_limit() {
    let mut client = Client::new(Variant::MoreData);
    client.receive_ampdu(true);
    client.sends(at(1_000), ack(1));
    client.waits(at(150_999));
    assert_eq!(client.queued, []);
    client.waits(at(151_000));
    assert_eq!(client.queued, [ack(1)]);
    assert_eq!(client.driver.counters().hold_limits, 1);
}

/// More Data is not trusted again until the peer sends it again.
#[test]
fn after_a_broken_promise_acks_go_as_packets() {
    let mut client = Client::new(Variant::MoreData);
    client.receive_ampdu(true);
    client.sends(at(1_000), ack(1));
    client.waits(at(151_000));
    client.sends(at(152_000), ack(2));
    assert_eq!(client.queued, [ack(1), ack(2)]);
}

/// The second ACK was not ready for the Block Ack that carried the first: it may wait for its own 150 ms.
#[test]
fn acks_left_after_a_block_ack_wait_no_longer_than_their_own_limit() {
    let mut client = Client::new(Variant::MoreData);
    client.receive_ampdu(true);
    client.sends(at(1_000), ack(1));
    client.sends(at(1_090), ack(2));
    client.waits(at(1_100));
    assert!(client.receive_ampdu_at(at(1_150), true) > 0);
    client.waits(at(151_089));
    assert_eq!(client.queued, []);
    client.waits(at(151_090));
    assert_eq!(client.queued, [ack(2)]);
}

/// With 127 ACKs in frames and 1024 that wait for them, one more is too many: all are sent as packets, the new one
/// last.
#[test]
fn an_ack_for_which_there_is_no_room_goes_behind_all_that_wait() {
    let mut client = Client::new(Variant::MoreData);
    client.receive_ampdu(true);
    let all = 127 + 1_024;
    (1..=all).for_each(|number| client.sends(at(1_000), ack(number)));
    assert_eq!(client.queued, []);
    client.sends(at(1_000), ack(all + 1));
    assert_eq!(client.queued, (1..=all + 1).map(ack).collect::<Vec<_>>());
}

/// The peer never received the packet, so nothing may be compressed relative to it.
#[test]
fn after_a_packet_that_was_given_up_the_next_ack_is_a_packet() {
    let mut client = Client::new(Variant::MoreData);
    client.receive_ampdu(false);
    client.sends(at(1_000), ack(1));
    client.receive_ampdu(true);
    client.driver.handle_settled(at(2_000), 0, &ack(1), false);
    client.sends(at(3_000), ack(2));
    client.waits(at(3_100));
    assert_eq!(client.queued, [ack(1), ack(2)]);
    assert_eq!(client.receive_ampdu(true), 0);
}

#[test]
fn with_the_timer_an_ack_waits_that_long_whatever_the_peer_says() {
    let mut client = Client::new(Variant::Timer(Duration::from_millis(5)));
    client.receive_ampdu(false);
    client.sends(at(1_000), ack(1));
    client.waits(at(5_999));
    assert_eq!(client.queued, []);
    client.waits(at(6_000));
    assert_eq!(client.queued, [ack(1)]);
}

/// A data segment of the download that echoes the ACK with this number.
fn data(echo: u32) -> Packet {
    let segment = Segment {
        flags: Flags::ACK,
        payload_len: 1448,
        timestamps: Some(Timestamps { value: 1_000 + echo, echo_reply: echo }),
        ..Segment::default()
    };
    let (source, destination) = (HostId(0), HostId(2));
    Packet { source, destination, transport: Transport::Tcp(segment), ..ack(0) }
}

/// A client whose ACK 0, sent at 0 ms, was echoed after 40 ms. It sent ACKs 20 and 40 as packets, at 20 and at 40 ms.
fn with_an_echo_of_40_ms() -> Client {
    let mut client = Client::new(Variant::TimestampEcho);
    for number in [20, 40] {
        let now = at(u64::from(number) * 1_000);
        client.sends(now, ack(number));
        client.driver.handle_settled(now, 0, &ack(number), true);
    }
    client.driver.handle_incoming(at(40_000), 0, &data(0));
    client.act();
    assert_eq!(client.queued, [ack(20), ack(40)], "nothing is known yet of how long echoes take");
    client.queued.clear();
    client
}

/// Section 5: as ACK 20 was not echoed, its data is still to arrive, regardless of the peer's More Data.
#[test]
fn an_ack_waits_for_the_data_that_one_before_it_provoked() {
    let mut client = with_an_echo_of_40_ms();
    client.sends(at(41_000), ack(41));
    client.waits(at(60_000));
    assert_eq!(client.queued, []);
    assert!(client.receive_ampdu_at(at(60_000), false) > 0, "it rides on the Block Ack of that data");
    client.driver.handle_incoming(at(60_000), 0, &data(20));
    client.act();
    client.sends(at(60_100), ack(60));
    client.waits(at(79_000));
    assert_eq!(client.queued, [], "that of ACK 40 comes in 20 ms");
}

#[test]
fn with_echoes_more_data_is_believed_as_before() {
    let mut client = with_an_echo_of_40_ms();
    client.driver.handle_incoming(at(41_000), 0, &data(40));
    client.receive_ampdu_at(at(41_000), true);
    client.sends(at(41_000), ack(41));
    assert_eq!(client.queued, [], "all are echoed, and more is announced");
    client.receive_ampdu_at(at(41_050), false);
    assert_eq!(client.queued, [ack(41)]);
}

/// A sender in slow start waits for this ACK: the next data is a whole round trip away.
#[test]
fn an_ack_does_not_wait_for_data_that_is_far_away() {
    let mut client = with_an_echo_of_40_ms();
    client.driver.handle_incoming(at(41_000), 0, &data(40));
    client.sends(at(41_000), ack(41));
    assert_eq!(client.queued, [ack(41)], "all are echoed");
    client.driver.handle_settled(at(42_000), 0, &ack(41), true);
    client.sends(at(43_000), ack(43));
    assert_eq!(client.queued, [ack(41), ack(43)], "ACK 41 is echoed in 39 ms");
}

#[test]
fn waiting_acks_go_as_packets_when_the_last_echo_arrives() {
    let mut client = with_an_echo_of_40_ms();
    client.sends(at(41_000), ack(41));
    client.driver.handle_incoming(at(60_000), 0, &data(20));
    client.act();
    assert_eq!(client.queued, [], "ACK 40 is to be echoed");
    client.driver.handle_incoming(at(60_500), 0, &data(40));
    client.act();
    assert_eq!(client.queued, [ack(41)], "and now is");
}

#[test]
fn an_echo_of_another_flow_proves_nothing() {
    let mut client = with_an_echo_of_40_ms();
    client.driver.handle_incoming(at(41_000), 0, &Packet { flow: FlowId(7), ..data(40) });
    client.act();
    client.sends(at(42_000), ack(42));
    assert_eq!(client.queued, []);
    // Timestamps are circular (RFC 7323 section 5.2): this one is newer than 40.
    client.driver.handle_incoming(at(43_000), 0, &data(0x7000_0000));
    client.act();
    assert_eq!(client.queued, [ack(42)]);
}

/// The last ACK of a flow triggers no data.
#[test]
fn data_that_never_comes_is_waited_for_half_as_long_as_an_echo_takes() {
    let mut client = with_an_echo_of_40_ms();
    client.sends(at(59_000), ack(59));
    client.waits(at(78_999));
    assert_eq!(client.queued, []);
    client.waits(at(79_000));
    assert_eq!(client.queued, [ack(59)]);
    client.sends(at(81_000), ack(81));
    assert_eq!(client.queued, [ack(59), ack(81)], "that of ACK 20 was due at 60 ms and is not believed in");
}

#[test]
fn opportunistic_acks_are_queued_too_and_taken_back_when_they_rode() {
    let mut client = Client::new(Variant::Opportunistic);
    client.receive_ampdu(true);
    client.sends(at(1_000), ack(1));
    assert_eq!(client.queued, [ack(1)]);
    client.waits(at(1_100));
    assert!(client.receive_ampdu(true) > 0);
    assert_eq!(client.queued, []);
}

#[test]
fn only_pure_acks_wait() {
    let mut client = Client::new(Variant::MoreData);
    client.receive_ampdu(true);
    for flags in [Flags::SYN, Flags::ACK | Flags::FIN, Flags::RST] {
        let mut other = ack(1);
        let Transport::Tcp(segment) = &mut other.transport else { unreachable!("a segment") };
        segment.flags = flags;
        client.sends(at(1_000), other);
    }
    let mut data = ack(1);
    let Transport::Tcp(segment) = &mut data.transport else { unreachable!("a segment") };
    segment.payload_len = 1;
    client.sends(at(1_000), data);
    assert_eq!(client.queued.len(), 4);
    assert_eq!(client.driver.counters().native_acks, 1, "the one that made the context");
}

/// A client that wins no access would send its ACKs on Block Acks for ever, and its packets never.
#[test]
fn acks_do_not_overtake_packets_that_wait_for_too_long() {
    let mut client = Client::new(Variant::MoreData);
    client.receive_ampdu(true);
    client.sends(at(1_000), data(0));
    let limit_us = Config::default().overtake_limit.as_nanos() / 1_000;
    client.sends(at(999 + limit_us), ack(1));
    assert_eq!(client.queued, [data(0)], "the packet has not waited for that long");
    client.sends(at(1_000 + limit_us), ack(2));
    assert_eq!(client.queued, [data(0), ack(1), ack(2)], "behind the packet, in order");
    client.driver.handle_drained(0);
    for number in [1, 2] {
        client.driver.handle_settled(at(2_000 + limit_us), 0, &ack(number), true);
    }
    client.sends(at(3_000 + limit_us), ack(3));
    assert_eq!(client.queued.len(), 3, "the station sends again: its ACKs ride");
}

fn flagged(number: u32, flags: Flags) -> Packet {
    let mut packet = ack(number);
    let Transport::Tcp(segment) = &mut packet.transport else { unreachable!("a segment") };
    segment.flags = flags;
    packet
}

/// A receiver that has seen congestion echoes it on every ACK until it is answered (RFC 3168 section 6.1.3); those ACKs
/// are appended, too.
#[test]
fn acks_that_echo_congestion_ride_as_any_other() {
    let mut client = Client::new(Variant::MoreData);
    client.receive_ampdu(true);
    for number in [1, 2] {
        client.sends(at(1_000), flagged(number, Flags::ACK | Flags::ECE));
    }
    client.waits(at(1_100));
    assert_eq!(client.queued, []);
    assert!(client.receive_ampdu(false) > 0);
    assert_eq!(client.driver.counters().compressed_acks, 2);
}

/// The codec has no code for it.
#[test]
fn an_ack_with_cwr_goes_as_a_packet() {
    let mut client = Client::new(Variant::MoreData);
    client.receive_ampdu(true);
    let odd = flagged(1, Flags::ACK | Flags::CWR);
    client.sends(at(1_000), odd.clone());
    assert_eq!(client.queued, [odd]);
}
