//! What happens in each vector.

use crate::hack_support::packets::{Change, Receiver};
use tacit_rohc::hack::frame_kinds;

use super::{Script, hex};

/// Name, subject and events of a vector.
type Story = (&'static str, &'static str, fn(&mut Script));
/// An alteration of a packet, and what it is.
type Alteration = (&'static str, fn(&mut Vec<u8>));

/// All vectors.
pub const ALL: [Story; 17] = [
    ("first-frames", "A flow from its native ACK on, in both codings, as on the page.", first_frames),
    ("forms-per-ack", "Every field of an ACK, each ACK coded by itself.", |s| forms(s, "per-ack", false)),
    ("forms-batch", "Every field of an ACK, range coded.", |s| forms(s, "batch", false)),
    ("forms-v6", "Every field of an ACK over IPv6, range coded.", |s| forms(s, "batch", true)),
    ("drawn-per-ack", "Drawn changes, in frames of up to 12 ACKs, each coded by itself.", |s| {
        drawn(s, "per-ack", false);
    }),
    ("drawn-batch", "Drawn changes, in frames of up to 12 ACKs, range coded.", |s| drawn(s, "batch", false)),
    ("drawn-v6", "Drawn changes over IPv6, each ACK coded by itself.", |s| drawn(s, "per-ack", true)),
    ("wrap", "The MSN passes 255: full frames of 64 ACKs, range coded.", wrap),
    (
        "block-ack-lost",
        "The paper's figures 5 and 8: a link-layer ACK is lost, with and without SYNC.",
        block_ack_lost,
    ),
    ("repeated", "The paper's figure 6: frames that have arrived come again.", repeated),
    ("no-more-data", "The paper's figure 7: frames are given up, and a native ACK follows.", no_more_data),
    (
        "unheard-native",
        "Native ACKs that only the receiving end knows, and one that it has forgotten.",
        unheard_native,
    ),
    ("gap", "A frame is skipped, which no driver may do.", gap),
    ("cid-taken", "Two flows with one CID.", cid_taken),
    ("evicted", "A receiving end with contexts for two flows, and three flows.", evicted),
    ("refused", "Packets that may not ride.", refused),
    ("hostile", "Foreign bytes: altered frames, and drawn bodies whose CRC-8 fits.", hostile),
];

/// Linear congruential draws, the high bits.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn byte(&mut self) -> u8 {
        self.below(256) as u8
    }
}

fn usual(units: u32, value: u32, echo: u32) -> Change {
    Change::Usual { units, value, echo, window: 0 }
}

/// The next ACK of this receiver after a change.
fn after(receiver: &mut Receiver, change: &Change) -> Vec<u8> {
    receiver.apply(change);
    receiver.packet()
}

/// `count` ACKs of two units each.
fn bulk(receiver: &mut Receiver, count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|_| after(receiver, &usual(2, 0, 0))).collect()
}

/// A flow that has started with a native ACK.
fn started(script: &mut Script, coding: &str, receiver: &mut Receiver) {
    script.run(&format!("compressor coding {coding}"));
    let native = receiver.packet();
    script.native(&native);
}

fn first_frames(script: &mut Script) {
    for (coding, kinds) in
        [("per-ack", ["long-init", "short", "short"]), ("batch", ["batch-init", "batch", "short"])]
    {
        script
            .comment(&format!("Coding {coding}: the native ACK, then two ACKs of two units of 1448 bytes."));
        let mut receiver = Receiver::new(false, if coding == "batch" { 4001 } else { 4000 }, 1);
        started(script, coding, &mut receiver);
        let packets = [after(&mut receiver, &usual(2, 0, 0)), after(&mut receiver, &usual(2, 1, 0))];
        let first = script.frame(&packets);
        script.receive(&first, "delivered=1");
        script.comment("Three further ACKs; TSval rises with the first, the third acknowledges one unit.");
        let packets =
            [(2, 1, 1), (2, 0, 0), (1, 0, 0)].map(|(u, v, e)| after(&mut receiver, &usual(u, v, e)));
        let second = script.frame(&packets);
        script.receive(&second, "delivered=1");
        script.comment("One ACK as expected: no body.");
        let third = script.frame(&[after(&mut receiver, &usual(2, 1, 1))]);
        script.receive(&third, "delivered=1");
        assert_eq!(third.len(), 4);
        let frames = [first, second, third].concat();
        assert_eq!(frame_kinds(&frames).collect::<Vec<_>>(), kinds);
    }
}

/// Changes of every field, with what they are.
fn every_change() -> Vec<(&'static str, Change)> {
    let nops = |count: usize, rest: &[u8]| {
        let mut area = vec![1; 4 * count - rest.len()];
        area.extend_from_slice(rest);
        Change::Options(area)
    };
    vec![
        ("window, and then the same step of it", Change::Window(900)),
        ("the same step of the window", Change::Usual { units: 2, value: 0, echo: 0, window: -100 }),
        ("seven units, three ticks", usual(7, 3, 3)),
        ("eight units, four ticks", usual(8, 4, 4)),
        ("a large rise of the timestamps", Change::Timestamps(70_000, 15)),
        ("TSval falls", Change::Timestamps(1u32.wrapping_neg(), 0)),
        ("a duplicate with one SACK block", Change::Sack(vec![(3, 2, 0)])),
        ("its end moves, a second block", Change::Sack(vec![(9, 1, 0), (3, 4, 0)])),
        ("an odd block", Change::Sack(vec![(9, 70, 5), (9, 1, 0), (3, 4, 0)])),
        ("two units: the blocks stay", usual(2, 0, 0)),
        ("beyond the blocks", usual(100, 1, 1)),
        ("no blocks", Change::Sack(vec![])),
        ("an odd step, from which the unit is learnt", Change::Ack(1400)),
        ("another odd step", Change::Ack(2800)),
        ("of the new unit", Change::Ack(4200)),
        ("of the new unit again", Change::Ack(4200)),
        ("a short step", Change::Ack(77)),
        ("an odd step that shares no unit", Change::Ack(3003)),
        ("another one, and both have a unit in common", Change::Ack(1001)),
        ("of the new unit", Change::Ack(2002)),
        ("backwards", Change::Ack(5000u32.wrapping_neg())),
        ("an unchanged number", Change::Ack(0)),
        ("IP-ID", Change::IpId(1000)),
        ("IP-ID stands still", Change::IpId(0u16.wrapping_sub(1))),
        ("IP-ID swapped", Change::IpId(255)),
        ("IP-ID swapped again", Change::IpId(255)),
        ("sequence number", Change::Seq(600)),
        ("sequence number falls", Change::Seq(1u32.wrapping_neg())),
        ("TOS", Change::Tos(0xba)),
        ("TTL", Change::Ttl(61)),
        ("flags: ECE and PSH", Change::Flags(0x48)),
        ("flags", Change::Flags(0)),
        ("reserved bits", Change::Reserved(5)),
        ("urgent pointer", Change::Urgent(300)),
        ("DF, or the flow label", Change::Other(0xabcde)),
        ("a raw area without timestamps", nops(2, &[])),
        ("the raw area stays", usual(2, 0, 0)),
        ("a raw area in which a timestamp is misplaced", nops(4, &[8, 10, 0, 0, 0, 9, 0, 0, 0, 8])),
        ("back to timestamps", Change::Sack(vec![])),
        ("no timestamps", Change::NoTimestamps),
        ("four blocks", Change::Sack(vec![(3, 1, 0), (5, 1, 0), (7, 1, 0), (9, 1, 0)])),
        ("an empty area", Change::Options(vec![])),
        ("an area of 40 bytes", nops(10, &[])),
    ]
}

fn forms(script: &mut Script, coding: &str, v6: bool) {
    let mut receiver = Receiver::new(v6, 4000, u32::MAX - 4000);
    started(script, coding, &mut receiver);
    let mut batch = Vec::new();
    for (number, (what, change)) in every_change().iter().enumerate() {
        script.comment(what);
        let packet = after(&mut receiver, change);
        batch.push(packet);
        // A frame of one ACK, then one of two, and so on.
        if number % 3 != 1 {
            let frame = script.frame(&std::mem::take(&mut batch));
            script.receive(&frame, "delivered=1");
        }
    }
}

fn drawn_change(draw: &mut Draw) -> Change {
    let small = draw.below(3) as u32;
    match draw.below(40) {
        0 => Change::Window(draw.below(65536) as u16),
        1..4 => Change::Usual { units: small, value: 0, echo: 0, window: draw.below(9) as i16 - 4 },
        4..7 => {
            let blocks = draw.below(5);
            let block =
                |draw: &mut Draw| (draw.below(40) as u16, draw.below(20) as u16, draw.below(2) as u8 * 7);
            Change::Sack((0..blocks).map(|_| block(draw)).collect())
        }
        7..9 => Change::Ack(draw.below(4000) as u32),
        9 => Change::Ack(draw.below(1 << 32) as u32),
        10 => Change::Timestamps(draw.below(1 << 32) as u32, draw.below(100) as u32),
        11 => Change::IpId(draw.below(65536) as u16),
        12 => Change::Seq(draw.below(1 << 31) as u32),
        13 => match draw.below(6) {
            0 => Change::Tos(draw.byte()),
            1 => Change::Ttl(draw.byte()),
            2 => Change::Flags(draw.byte()),
            3 => Change::Reserved(draw.byte() & 15),
            4 => Change::Urgent(draw.below(65536) as u16),
            _ => Change::Other(draw.below(1 << 31) as u32),
        },
        14 => Change::Options((0..4 * draw.below(11)).map(|_| draw.byte()).collect()),
        _ => usual(draw.below(4) as u32, small, small / 2),
    }
}

fn drawn(script: &mut Script, coding: &str, v6: bool) {
    let mut draw = Draw(if v6 { 6 } else { 4 });
    let mut receiver = Receiver::new(v6, 4000, 12345);
    started(script, coding, &mut receiver);
    for _ in 0..40 {
        let count = draw.below(12) + 1;
        let packets: Vec<_> = (0..count).map(|_| after(&mut receiver, &drawn_change(&mut draw))).collect();
        let frame = script.frame(&packets);
        script.receive(&frame, "delivered=1");
    }
}

fn wrap(script: &mut Script) {
    let mut receiver = Receiver::new(false, 4000, 1);
    started(script, "batch", &mut receiver);
    let mut last = 0;
    for frame in 0..5 {
        script.comment(&format!("ACKs {} to {}", 64 * frame, 64 * frame + 63));
        let packets = bulk(&mut receiver, 64);
        let bytes = script.frame(&packets);
        script.receive(&bytes, "delivered=1");
        last = bytes[2];
        script.comment("The same once more.");
        script.receive(&bytes, "duplicate=1");
    }
    assert_eq!(last, 0, "the fifth frame has the MSN of the first");
}

fn block_ack_lost(script: &mut Script) {
    for coding in ["per-ack", "batch"] {
        let mut receiver = Receiver::new(false, if coding == "batch" { 4001 } else { 4000 }, 1);
        started(script, coding, &mut receiver);
        script.comment("A-MPDU; the Block Ack with this frame is lost.");
        let first = script.frame(&bulk(&mut receiver, 3));
        script.comment(
            "Block Ack Request: it proves nothing, so the frame is retained and a second one follows it.",
        );
        let second = script.frame(&bulk(&mut receiver, 2));
        script.receive(&[first, second].concat(), "delivered=2");
        script.comment("Next A-MPDU without SYNC: both are proven. The Block Ack with this frame is lost, as are those that answer requests.");
        let third = script.frame(&bulk(&mut receiver, 2));
        script.comment("A-MPDU with SYNC: nothing is proven.");
        let fourth = script.frame(&bulk(&mut receiver, 2));
        script.receive(&[third, fourth].concat(), "delivered=2");
    }
}

fn repeated(script: &mut Script) {
    for coding in ["per-ack", "batch"] {
        let mut receiver = Receiver::new(false, if coding == "batch" { 4001 } else { 4000 }, 1);
        started(script, coding, &mut receiver);
        let first = script.frame(&bulk(&mut receiver, 3));
        script.receive(&first, "delivered=1");
        script.comment(
            "A request, though the Block Ack arrived: the first frame comes again, before the second.",
        );
        let second = script.frame(&bulk(&mut receiver, 2));
        script.receive(&[first.clone(), second.clone()].concat(), "delivered=1 duplicate=1");
        script.comment("Both once more, and out of order.");
        script.receive(&[second, first].concat(), "duplicate=2");
    }
}

fn no_more_data(script: &mut Script) {
    for coding in ["per-ack", "batch"] {
        let mut receiver = Receiver::new(false, if coding == "batch" { 4001 } else { 4000 }, 1);
        started(script, coding, &mut receiver);
        let first = script.frame(&bulk(&mut receiver, 2));
        script.receive(&first, "delivered=1");
        script.comment("The Block Ack with this frame is lost. More Data was clear: the next ACK goes natively, the frame is given up.");
        let lost = script.frame(&bulk(&mut receiver, 2));
        let native = after(&mut receiver, &usual(2, 1, 1));
        script.run(&format!("compressor invalidate {}", hex(&native)));
        assert_eq!(
            script.run(&format!("compressor push {}", hex(&native))),
            "refused: flow without a context"
        );
        script.native(&native);
        script.comment("More Data: a new incarnation, from that native ACK. Its MSN continues behind that of the lost frame.");
        let next = script.frame(&bulk(&mut receiver, 2));
        assert_eq!(next[2], lost[2] + 2);
        script.receive(&next, "delivered=1");
        script.comment("Late copies: the lost frame, the first frames of both incarnations.");
        script.receive(&[lost, first, next].concat(), "duplicate=3");
    }
}

fn unheard_native(script: &mut Script) {
    let mut receiver = Receiver::new(false, 4000, 1);
    started(script, "per-ack", &mut receiver);
    let first = script.frame(&bulk(&mut receiver, 2));
    script.receive(&first, "delivered=1");
    script.comment("Native ACKs arrive, and their link-layer ACKs are lost: the incarnation continues.");
    let mut natives = bulk(&mut receiver, 2);
    for native in &natives {
        script.run(&format!("decompressor native {}", hex(native)));
    }
    let second = script.frame(&bulk(&mut receiver, 2));
    script.receive(&second, "delivered=1");
    script.comment(
        "The sending end learns that the first of them arrived: it may start from that, not the newest.",
    );
    script.run(&format!("compressor native {}", hex(&natives[0])));
    let third = script.frame(&bulk(&mut receiver, 1));
    script.receive(&third, "delivered=1");
    script.comment("Five native ACKs arrive; the receiving end keeps four. The first one is unknown, and its frame stale.");
    natives = bulk(&mut receiver, 5);
    for native in &natives {
        script.run(&format!("decompressor native {}", hex(native)));
    }
    script.run(&format!("compressor native {}", hex(&natives[0])));
    let stale = script.frame(&bulk(&mut receiver, 1));
    script.receive(&stale, "stale=1");
    script.comment("The next native ACK that both see ends that.");
    let native = bulk(&mut receiver, 1).remove(0);
    script.native(&native);
    let fourth = script.frame(&bulk(&mut receiver, 1));
    script.receive(&fourth, "delivered=1");
    script.comment("The same native ACK once more: the sending end does not start from its CRC-16 again, and the old first frame is a duplicate.");
    script.native(&native);
    let fifth = script.frame(&bulk(&mut receiver, 1));
    script.receive(&[fourth, fifth].concat(), "delivered=1 duplicate=1");
}

fn gap(script: &mut Script) {
    for coding in ["per-ack", "batch"] {
        let mut receiver = Receiver::new(false, if coding == "batch" { 4001 } else { 4000 }, 1);
        started(script, coding, &mut receiver);
        let first = script.frame(&bulk(&mut receiver, 2));
        script.receive(&first, "delivered=1");
        let skipped = script.frame(&bulk(&mut receiver, 2));
        let third = script.frame(&bulk(&mut receiver, 2));
        script.receive(&third, "gap=1");
        script.comment("The skipped frame is still the next one; then the third is, too.");
        script.receive(&[skipped, third.clone()].concat(), "delivered=2");
        let turns: [(&str, &[(u8, &str)]); 3] = [
            (
                "Other MSNs. Next and seen are 6: 134 is -122, which is old; 133 is ahead.",
                &[(134, "duplicate=1"), (133, "gap=1")],
            ),
            ("Seen is 133: 5 is old, 4 is 260.", &[(5, "duplicate=1"), (4, "gap=1")]),
            ("Seen is 260: 6 is 262, a whole turn ahead of the next one.", &[(6, "gap=1")]),
        ];
        for (what, frames) in turns {
            script.comment(what);
            for (msn, outcome) in frames {
                script.receive(&with_msn(&third, *msn), outcome);
            }
        }
    }
}

/// A frame with another MSN.
fn with_msn(frame: &[u8], msn: u8) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[2] = msn;
    frame
}

fn cid_taken(script: &mut Script) {
    let mut owner = Receiver::new(false, COLLIDING.0, 1);
    let mut other = Receiver::new(false, COLLIDING.1, 1);
    started(script, "per-ack", &mut owner);
    let first = script.frame(&bulk(&mut owner, 2));
    script.receive(&first, "delivered=1");
    script.comment(
        "A native ACK of the other flow takes one of the owner's three votes; the flow stays native.",
    );
    let native = other.packet();
    script.native(&native);
    let refused = after(&mut other, &usual(2, 0, 0));
    let answer = script.run(&format!("compressor push {}", hex(&refused)));
    assert_eq!(answer, "refused: another flow has the same CID");
    script.comment("Two further ones, and a fourth that takes the CID.");
    for native in bulk(&mut other, 3) {
        script.native(&native);
    }
    let taken = script.frame(&bulk(&mut other, 2));
    assert_eq!((taken[1], taken[2]), (first[1], first[2] + 2), "one CID, one count");
    script.receive(&taken, "delivered=1");
    script.comment("The next frame of the CID is the other flow's.");
    let next = script.frame(&bulk(&mut other, 1));
    script.receive(&next, "delivered=1");
    script.comment("Of the first owner nothing is accepted until it has the CID again.");
    script.receive(&first, "duplicate=1");
}

fn evicted(script: &mut Script) {
    script.run("decompressor contexts 2");
    let mut flows = [4000, 4001, 4002].map(|port| Receiver::new(false, port, 1));
    script.run("compressor coding per-ack");
    let natives: Vec<_> = flows.iter_mut().map(Receiver::packet).collect();
    script.native(&natives[0]);
    script.native(&natives[1]);
    script.comment("A frame of the first flow uses it, so that the second is the one that gives way.");
    let first = script.frame(&bulk(&mut flows[0], 1));
    script.receive(&first, "delivered=1");
    script.native(&natives[2]);
    let second = script.frame(&bulk(&mut flows[1], 1));
    let third = script.frame(&bulk(&mut flows[2], 1));
    script.receive(&[second, third].concat(), "delivered=1 no-context=1");
    let fourth = script.frame(&bulk(&mut flows[0], 1));
    script.receive(&fourth, "delivered=1");
}

fn refused(script: &mut Script) {
    let good = Receiver::new(false, 4000, 7).packet();
    let changes: [Alteration; 9] = [
        ("a wrong TCP checksum", |packet| packet[36] ^= 1),
        ("a wrong IPv4 checksum", |packet| packet[10] ^= 1),
        ("a byte behind the packet", |packet| packet.push(0)),
        ("a byte too few", |packet| packet.truncate(packet.len() - 1)),
        ("a fragment", |packet| reseal(packet, |packet| packet[6] = 0x20)),
        ("FIN", |packet| reseal(packet, |packet| packet[33] |= 1)),
        ("CWR", |packet| reseal(packet, |packet| packet[33] |= 0x80)),
        ("UDP", |packet| reseal(packet, |packet| packet[9] = 17)),
        ("IP options", |packet| reseal(packet, |packet| packet[0] = 0x46)),
    ];
    for (what, change) in changes {
        let mut packet = good.clone();
        change(&mut packet);
        script.comment(what);
        script.native(&packet);
        let answer = script.run(&format!("compressor push {}", hex(&packet)));
        assert!(answer.starts_with("refused: ") && !answer.contains("context"), "{what}: {answer}");
    }
    script.comment("None of them has begun a context at either end.");
    let answer = script.run(&format!("compressor push {}", hex(&good)));
    assert_eq!(answer, "refused: flow without a context");
    let mut other = Receiver::new(false, 4000, 7);
    started(script, "per-ack", &mut other);
    let mut frame = script.frame(&bulk(&mut other, 1));
    frame[1] ^= 1;
    script.receive(&frame, "no-context=1");
}

/// Changes a packet and corrects both checksums.
fn reseal(packet: &mut [u8], change: impl Fn(&mut [u8])) {
    change(packet);
    let sum = |bytes: &[u8]| {
        let words =
            bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)));
        let sum = words.sum::<u32>();
        let sum = (sum & 0xffff) + (sum >> 16);
        !((sum & 0xffff) + (sum >> 16)) as u16
    };
    packet[10..12].fill(0);
    let header = sum(&packet[..20]);
    packet[10..12].copy_from_slice(&header.to_be_bytes());
    packet[36..38].fill(0);
    let tcp_len = (packet.len() - 20) as u16;
    let whole = [&packet[12..20], &[0, 6], &tcp_len.to_be_bytes(), &packet[20..]].concat();
    let tcp = sum(&whole);
    packet[36..38].copy_from_slice(&tcp.to_be_bytes());
}

/// Ports whose flows have one CID.
const COLLIDING: (u16, u16) = (1004, 1021);

fn hostile(script: &mut Script) {
    let mut draw = Draw(9);
    for (coding, port, kind) in [("per-ack", 4000, 9), ("batch", 4001, 11)] {
        let mut receiver = Receiver::new(false, port, 1);
        started(script, coding, &mut receiver);
        let changes = [usual(2, 1, 1), Change::Sack(vec![(3, 2, 0)]), Change::Window(77)];
        let packets: Vec<_> = changes.iter().map(|change| after(&mut receiver, change)).collect();
        let frame = script.frame(&packets);
        script.comment("Altered before it arrives: a bit, cut off, or longer. Only the FCS protects the MSN of a first frame.");
        for _ in 0..80 {
            let mut bad = frame.clone();
            match draw.below(4) {
                0 => bad.truncate(draw.below(bad.len() as u64 - 1) as usize + 1),
                1 => bad.insert(draw.below(frame.len() as u64 - 4) as usize + 4, draw.byte()),
                2 => bad[0] ^= 1 << draw.below(8),
                _ => bad[draw.below(frame.len() as u64 - 3) as usize + 3] ^= 1 << draw.below(8),
            }
            script.outcome(&bad);
        }
        script.comment("As it was sent: nothing that failed has changed a context.");
        script.receive(&frame, "delivered=1");
        script.comment("Unknown kinds, and a kind that needs two bytes of CRC-16 and has one.");
        script.receive(&[0x0e, 1, 2, 3, 0x2f, 1, 2, 3, 4, 5, 0x1a, 1, 2, 3, 4], "malformed=3");
        script.comment("A length in six bytes that all promise another.");
        script.receive(&[&[0xf9, frame[1], 0, 0][..], &[0x80; 8]].concat(), "malformed=1");
        script.comment("Drawn bodies, where possible with the CRC-8 that fits.");
        let mut msn = frame[2].wrapping_add(packets.len() as u8);
        for _ in 0..150 {
            let body: Vec<u8> = (0..=draw.below(14)).map(|_| draw.byte()).collect();
            let with =
                |check: u8| [&[(body.len() as u8) << 4 | kind, frame[1], msn, check], &body[..]].concat();
            let acks_of =
                |check: u8| script.ends.decompressor.clone().receive(&with(check), &mut |_| ()).acks;
            let fits = (0..=255).map(|check| (check, acks_of(check))).find(|(_, acks)| *acks > 0);
            let (check, acks) = fits.unwrap_or((0, 0));
            let bytes = with(check);
            script.outcome(&bytes);
            msn = msn.wrapping_add(acks as u8);
        }
    }
}
