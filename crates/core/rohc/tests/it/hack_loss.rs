//! Loss, duplicates, stale frames, re-initialisation and CID collisions, as caused by the driver and the channel (paper
//! section 3.4), and worse. Nothing wrong is delivered, and the next native ACK that both ends see restores
//! synchronisation.

use std::collections::HashMap;

use crate::hack_support::packets::{Change, Receiver};
use tacit_rohc::hack::{Coding, Compressor, Decompressor, Limits, RETAINED_ACKS, Refusal, Report};

/// SplitMix64: small, and good enough to choose events.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// Probability of each event, in percent per round.
#[derive(Clone, Copy)]
struct Weather {
    /// The LL ACK is lost.
    loss: u64,
    /// The client does not learn that the LL ACK arrived, and repeats it.
    doubt: u64,
    /// The driver gives up its retained frames and sends native ACKs.
    flush: u64,
    /// A native ACK is sent without a flush (opportunistic variant, or a queue that became empty).
    native: u64,
    /// A native ACK arrives, but its link-layer acknowledgment is lost.
    half: u64,
    /// The compressor is notified of a native ACK that the decompressor never received, which violates the contract.
    phantom: u64,
    /// An old frame, given up or not, arrives again.
    stale: u64,
}

/// A sent frame, and the number of ACKs that had been compressed by then.
#[derive(Clone)]
struct SentFrame {
    bytes: Vec<u8>,
    until: usize,
}

struct World {
    draw: Draw,
    receivers: Vec<Receiver>,
    /// The only flow that sends at present; `None` if all do.
    only: Option<usize>,
    compressor: Compressor,
    decompressor: Decompressor,
    retained: Vec<SentFrame>,
    past: Vec<SentFrame>,
    compressed: usize,
    /// For each compressed ACK, the number of times it may still be delivered.
    owed: HashMap<Vec<u8>, usize>,
    delivered: usize,
    total: Report,
}

impl World {
    fn new(seed: u64, coding: Coding, v6: bool, ports: &[u16]) -> Self {
        let receivers = ports
            .iter()
            .map(|&port| {
                let mut receiver = Receiver::new(v6, port, seed as u32 ^ u32::from(port));
                if seed.is_multiple_of(3) {
                    receiver.randomise_id(seed as u32);
                }
                receiver
            })
            .collect();
        Self {
            draw: Draw(seed),
            receivers,
            only: None,
            compressor: Compressor::new(coding, Limits::default()),
            decompressor: Decompressor::new(Limits::default()),
            retained: Vec::new(),
            past: Vec::new(),
            compressed: 0,
            owed: HashMap::new(),
            delivered: 0,
            total: Report::default(),
        }
    }

    fn next_ack(&mut self, flow: usize) -> Vec<u8> {
        let change = match self.draw.below(12) {
            0 => Change::Window(self.draw.next() as u16),
            1 => Change::Sack(vec![(self.draw.below(30) as u16 + 3, self.draw.below(9) as u16 + 1, 0)]),
            2 => Change::Sack(Vec::new()),
            3 => Change::Ack(self.draw.below(4000) as u32),
            _ => Change::Usual {
                units: self.draw.below(4) as u32,
                value: self.draw.below(3) as u32,
                echo: self.draw.below(3) as u32,
                window: 0,
            },
        };
        self.receivers[flow].apply(&change);
        self.receivers[flow].packet()
    }

    fn some_flow(&mut self) -> usize {
        let drawn = self.draw.below(self.receivers.len() as u64) as usize;
        self.only.unwrap_or(drawn)
    }

    /// Compresses a batch of ACKs into a frame, for flows with contexts. Refused ACKs are lost.
    fn make_frame(&mut self) {
        for _ in 0..1 + self.draw.below(5) {
            let flow = self.some_flow();
            let ack = self.next_ack(flow);
            match self.compressor.push(&ack) {
                Ok(()) => {
                    *self.owed.entry(ack).or_default() += 1;
                    self.compressed += 1;
                }
                Err(refusal) => {
                    assert!(matches!(refusal, Refusal::NoContext | Refusal::CidTaken), "{refusal}");
                }
            }
        }
        let mut bytes = Vec::new();
        if self.compressor.finish_frame(&mut bytes) > 0 {
            let frame = SentFrame { bytes, until: self.compressed };
            self.retained.push(frame.clone());
            self.past.push(frame);
        }
    }

    fn receive(&mut self, bytes: &[u8]) -> Report {
        let owed = &mut self.owed;
        let report = self.decompressor.receive(bytes, &mut |packet| {
            let left = owed.get_mut(packet).expect("an ACK was delivered that was never sent");
            assert!(*left > 0, "an ACK was delivered twice");
            *left -= 1;
        });
        self.delivered += report.acks;
        self.total.frames += report.frames;
        self.total.duplicates += report.duplicates;
        self.total.gap += report.gap;
        self.total.stale += report.stale;
        self.total.check += report.check;
        self.total.malformed += report.malformed;
        report
    }

    fn native(&mut self, flow: usize, to_compressor: bool, to_decompressor: bool) {
        let ack = self.next_ack(flow);
        if to_decompressor {
            self.decompressor.note_native(&ack);
        }
        if to_compressor {
            self.compressor.note_native(&ack);
        }
    }

    fn flush(&mut self) {
        self.retained.clear();
        self.compressor.invalidate_all();
    }

    fn round(&mut self, weather: Weather) {
        self.make_frame();
        if !self.draw.chance(weather.loss) {
            let bytes = self.retained.iter().flat_map(|frame| frame.bytes.clone()).collect::<Vec<_>>();
            self.receive(&bytes);
            if !self.draw.chance(weather.doubt) {
                self.retained.clear();
            }
        }
        // No driver keeps a frame longer than this.
        if self.retained.first().is_some_and(|frame| self.compressed - frame.until > RETAINED_ACKS - 10) {
            self.flush();
        }
        if self.draw.chance(weather.stale) {
            let young = self
                .past
                .iter()
                .rev()
                .take_while(|frame| self.compressed - frame.until < RETAINED_ACKS)
                .count();
            if young > 0 {
                let at = self.past.len() - 1 - self.draw.below(young as u64) as usize;
                let bytes = self.past[at].bytes.clone();
                self.receive(&bytes);
            }
        }
        let flow = self.some_flow();
        if self.draw.chance(weather.flush) {
            self.flush();
            self.native(flow, true, true);
        }
        if self.draw.chance(weather.native) {
            self.native(flow, true, true);
        }
        if self.draw.chance(weather.half) {
            self.native(flow, false, true);
        }
        if self.draw.chance(weather.phantom) {
            self.native(flow, true, false);
        }
    }

    /// Sends one native ACK per flow, then one LL exchange. These ACKs must arrive, regardless of what has happened
    /// before.
    fn resynchronises(&mut self) {
        self.flush();
        for flow in 0..self.receivers.len() {
            self.native(flow, true, true);
        }
        let before = self.compressed;
        while self.retained.is_empty() {
            self.make_frame();
        }
        let expected = self.compressed - before;
        let bytes = self.retained.iter().flat_map(|frame| frame.bytes.clone()).collect::<Vec<_>>();
        let report = self.receive(&bytes);
        assert_eq!((report.acks, report.failures()), (expected, 0), "{report:?}");
        self.retained.clear();
    }
}

const CLEAR: Weather = Weather { loss: 0, doubt: 0, flush: 0, native: 5, half: 0, phantom: 0, stale: 0 };

fn every_world(ports: &[u16], weather: Weather, seeds: u64, rounds: usize) -> (usize, usize, Report) {
    let mut sum = (0, 0, Report::default());
    for seed in 0..seeds {
        for (coding, v6) in
            [(Coding::PerAck, false), (Coding::PerAck, true), (Coding::Batch, false), (Coding::Batch, true)]
        {
            let mut world = World::new(seed, coding, v6, ports);
            for flow in 0..ports.len() {
                world.native(flow, true, true);
            }
            for _ in 0..rounds {
                world.round(weather);
            }
            world.resynchronises();
            sum.0 += world.compressed;
            sum.1 += world.delivered;
            sum.2.frames += world.total.frames;
            sum.2.duplicates += world.total.duplicates;
            sum.2.gap += world.total.gap;
            sum.2.stale += world.total.stale;
            sum.2.check += world.total.check;
            sum.2.malformed += world.total.malformed;
        }
    }
    println!("{} compressed, {} delivered, {:?}", sum.0, sum.1, sum.2);
    sum
}

#[test]
fn clear_weather_delivers_everything() {
    let (compressed, delivered, report) = every_world(&[1000, 1001, 1002], CLEAR, 20, 200);
    assert_eq!((delivered, report.failures(), report.duplicates), (compressed, 0, 0));
}

/// Figures 5, 6 and 8: the LL ACK is lost or repeated, and the driver retains frames. Every ACK arrives once, without a
/// failure.
#[test]
fn retained_frames_arrive_once_whatever_is_lost_and_repeated() {
    for (loss, doubt) in [(30, 0), (0, 60), (50, 50), (10, 80)] {
        let weather = Weather { loss, doubt, native: 0, ..CLEAR };
        let (compressed, delivered, report) = every_world(&[1000], weather, 25, 200);
        assert_eq!(report.failures(), 0, "{report:?}");
        assert!(delivered * 100 >= compressed * 99, "{delivered} of {compressed}");
    }
}

/// Figure 7: frames are given up, a native ACK is sent, and compression continues. Nothing fails, even if frames that
/// were given up have arrived.
#[test]
fn frames_given_up_for_a_native_ack_leave_no_failure() {
    let weather = Weather { loss: 30, doubt: 30, flush: 20, ..CLEAR };
    let (_, _, report) = every_world(&[1000], weather, 50, 200);
    assert_eq!(report.failures(), 0, "{report:?}");
}

/// Every frame arrives up to eight times, consecutively or after later ones.
#[test]
fn a_frame_repeated_is_recognised_before_it_is_decoded() {
    for coding in [Coding::PerAck, Coding::Batch] {
        for times in 1..=8 {
            let mut world = World::new(times, coding, false, &[1000]);
            world.native(0, true, true);
            for _ in 0..300 {
                world.make_frame();
                let recent: Vec<_> = world.past.iter().rev().take(times as usize).cloned().collect();
                let fresh = world.receive(&recent[0].bytes);
                assert_eq!((fresh.frames, fresh.failures(), fresh.duplicates), (1, 0, 0));
                for frame in &recent {
                    let again = world.receive(&frame.bytes);
                    assert_eq!((again.acks, again.failures(), again.duplicates), (0, 0, 1));
                }
            }
            assert_eq!(world.delivered, world.compressed);
        }
    }
}

/// CRC-16s can collide, here because the same native ACK is sent again. In between, nine incarnations without a
/// delivered frame make the compressor forget the first one, while the peer is still in it.
#[test]
fn an_incarnation_may_begin_with_the_check_of_the_peers_present_one() {
    for coding in [Coding::PerAck, Coding::Batch] {
        let mut flow = Receiver::new(true, 1000, 0);
        let mut compressor = Compressor::new(coding, Limits::default());
        let mut decompressor = Decompressor::new(Limits::default());
        let frame_of = |compressor: &mut Compressor, ack: &[u8]| {
            let mut frame = Vec::new();
            compressor.push(ack).unwrap();
            assert_eq!(compressor.finish_frame(&mut frame), 1);
            frame
        };
        let first_native = flow.packet();
        let mut next = || {
            flow.apply(&Change::Usual { units: 2, value: 1, echo: 1, window: 1 });
            flow.packet()
        };
        compressor.note_native(&first_native);
        decompressor.note_native(&first_native);
        let first_frame = frame_of(&mut compressor, &next());
        assert_eq!(decompressor.receive(&first_frame, &mut |_| {}).acks, 1);
        for _ in 0..9 {
            let (native, ack) = (next(), next());
            compressor.note_native(&native);
            decompressor.note_native(&native);
            // There was no data to acknowledge, so the driver withdraws the frame.
            frame_of(&mut compressor, &ack);
            compressor.invalidate(&ack);
        }
        compressor.note_native(&first_native);
        decompressor.note_native(&first_native);
        let repeated = decompressor.receive(&first_frame, &mut |_| panic!("passed on twice"));
        assert_eq!(repeated, Report { frames: 1, duplicates: 1, ..Report::default() });
        let ack = next();
        let later_frame = frame_of(&mut compressor, &ack);
        let mut got = Vec::new();
        let report = decompressor.receive(&later_frame, &mut |packet| got.push(packet.to_vec()));
        assert_eq!((report.failures(), got), (0, vec![ack]));
        let repeated = decompressor.receive(&later_frame, &mut |_| panic!("passed on twice"));
        assert_eq!(repeated, Report { frames: 1, duplicates: 1, ..Report::default() });
    }
}

/// Stale frames of any age that the driver may keep, including those of earlier incarnations, and native ACKs that only
/// one end saw.
#[test]
fn no_storm_delivers_a_wrong_ack() {
    for (stale, half, phantom) in [(50, 0, 0), (50, 20, 0), (60, 10, 10), (20, 0, 30)] {
        let weather = Weather { loss: 25, doubt: 40, flush: 8, native: 8, half, phantom, stale };
        let (compressed, delivered, report) = every_world(&[1000, 1001], weather, 60, 300);
        assert_eq!(report.malformed, 0, "{report:?}");
        // MSNs and native ACKs distinguish the states, so the CRC-8 never has to.
        assert_eq!(report.check, 0, "{report:?}");
        assert!(delivered * 4 > compressed, "{delivered} of {compressed}");
    }
}

/// Finds two flows with the same CID by trial.
fn colliding_ports(v6: bool) -> (u16, u16) {
    let first = Receiver::new(v6, 1000, 1).packet();
    for port in 1001..4000 {
        let mut compressor = Compressor::new(Coding::PerAck, Limits::default());
        let second = Receiver::new(v6, port, 1).packet();
        compressor.note_native(&first);
        compressor.note_native(&second);
        if compressor.push(&second) == Err(Refusal::CidTaken) {
            assert_eq!(compressor.push(&first), Ok(()));
            return (1000, port);
        }
    }
    panic!("no two of 3000 flows share an 8-bit CID");
}

#[test]
fn of_two_flows_with_one_cid_the_second_stays_native_until_the_first_is_gone() {
    let (first, second) = colliding_ports(false);
    let weather = Weather { loss: 20, doubt: 30, flush: 3, native: 10, half: 5, phantom: 0, stale: 40 };
    let (_, delivered, report) = every_world(&[first, second], weather, 60, 300);
    assert!(delivered > 0);
    assert_eq!((report.malformed, report.check), (0, 0), "{report:?}");

    let mut world = World::new(5, Coding::Batch, false, &[first, second]);
    world.native(0, true, true);
    world.native(1, true, true);
    let loser = world.next_ack(1);
    assert!(!world.compressor.has_context(&loser));
    assert_eq!(world.compressor.push(&loser), Err(Refusal::CidTaken));
    let owner = world.next_ack(0);
    world.compressor.invalidate(&owner);
    world.native(1, true, true);
    let ack = world.next_ack(1);
    assert!(world.compressor.has_context(&ack));
    assert_eq!(world.compressor.push(&ack), Ok(()));
    let mut bytes = Vec::new();
    assert_eq!(world.compressor.finish_frame(&mut bytes), 1);
    let mut got = Vec::new();
    world.decompressor.receive(&bytes, &mut |packet| got.push(packet.to_vec()));
    assert_eq!(got, [ack]);
}

/// An iperf3 client: a few ACKs on the control connection, then a load in one direction on another connection with the
/// same CID.
#[test]
fn a_busy_flow_takes_its_cid_over_from_a_connection_that_fell_silent() {
    let (control, data) = colliding_ports(false);
    let mut world = World::new(2, Coding::PerAck, false, &[control, data]);
    world.native(0, true, true);
    for _ in 0..3 {
        let ack = world.next_ack(0);
        assert_eq!(world.compressor.push(&ack), Ok(()));
    }
    let mut frame = Vec::new();
    assert_eq!(world.compressor.finish_frame(&mut frame), 3);
    // Four ACKs of the first flow are outvoted by the fifth of the other.
    let mut natives = 0;
    loop {
        let ack = world.next_ack(1);
        if world.compressor.push(&ack).is_ok() {
            break;
        }
        world.compressor.note_native(&ack);
        world.decompressor.note_native(&ack);
        natives += 1;
    }
    assert_eq!(natives, 5);
    // The frame of the old owner has been retained all along. It is still decoded, before the new owner's.
    assert_eq!(world.compressor.finish_frame(&mut frame), 1);
    let report = world.decompressor.receive(&frame, &mut |_| {});
    assert_eq!((report.acks, report.failures()), (1 + 3, 0), "{report:?}");
    let again = world.decompressor.receive(&frame, &mut |_| {});
    assert_eq!((again.acks, again.duplicates), (0, 2), "{again:?}");
}

/// Two flows with the same CID alternate, so that its owner changes all the time, with all kinds of loss.
#[test]
fn a_cid_that_changes_hands_delivers_no_wrong_ack() {
    let weather = Weather { loss: 25, doubt: 40, flush: 4, native: 60, half: 10, phantom: 0, stale: 50 };
    let mut delivered = [0; 2];
    for seed in 0..40 {
        for (coding, v6) in [(Coding::PerAck, false), (Coding::Batch, true)] {
            let (first, second) = colliding_ports(v6);
            let mut world = World::new(seed, coding, v6, &[first, second]);
            for turn in 0..20 {
                world.only = Some(turn % 2);
                let before = world.delivered;
                let rounds = 10 + world.draw.below(60);
                for _ in 0..rounds {
                    world.round(weather);
                }
                delivered[turn % 2] += world.delivered - before;
            }
            assert_eq!((world.total.malformed, world.total.check), (0, 0), "{:?}", world.total);
        }
    }
    println!("delivered: {delivered:?}");
    assert!(delivered.iter().all(|&acks| acks > 20_000), "{delivered:?}");
}

/// With more flows than contexts, the oldest are evicted, without further consequences.
#[test]
fn more_flows_than_contexts_only_go_native_more_often() {
    let limits = Limits { contexts: 4, frame_acks: 64 };
    for coding in [Coding::PerAck, Coding::Batch] {
        let mut world = World::new(1, coding, false, &(1000..1012).collect::<Vec<_>>());
        world.compressor = Compressor::new(coding, limits);
        world.decompressor = Decompressor::new(limits);
        let weather = Weather { loss: 20, doubt: 30, flush: 5, native: 60, half: 10, phantom: 0, stale: 40 };
        for _ in 0..3000 {
            world.round(weather);
        }
        assert!(world.delivered > 500, "{}", world.delivered);
        assert_eq!((world.total.malformed, world.total.check), (0, 0), "{:?}", world.total);
    }
}
