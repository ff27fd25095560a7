//! What the streams of the tests consist of, and the Rust code that the library must equal.

use std::ffi::c_int;

use proptest::prelude::*;
use tacit::*;
use tacit_ack::{AckClock, BitRate, Clock, Duration, Instant, RateMeter, StartUp};
use tacit_rohc::{CompressorConfig, DecompressorConfig};

use crate::packets::{Change, Receiver, change};

/// One event between the two ends of a link.
#[derive(Clone, Debug)]
pub enum Event {
    /// The next ACK of a flow is compressed.
    Ack(usize, Change),
    /// The next ACK of a flow goes uncompressed.
    Native(usize),
    /// It does, and its link-layer acknowledgment is lost.
    Unheard(usize),
    /// A frame is written into this room, and arrives.
    Frame(usize),
    /// The same with this bit turned.
    Turned(usize),
    Lost,
    GivenUp(usize),
    AllGivenUp,
    /// Any bytes, as a packet and as frames.
    Garbage(Vec<u8>),
}

pub fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        12 => (0usize..4, change()).prop_map(|(flow, change)| Event::Ack(flow, change)),
        2 => (0usize..4).prop_map(Event::Native),
        1 => (0usize..4).prop_map(Event::Unheard),
        4 => prop_oneof![4 => Just(4096usize), 1 => 0usize..80].prop_map(Event::Frame),
        1 => any::<usize>().prop_map(Event::Turned),
        1 => Just(Event::Lost),
        1 => (0usize..4).prop_map(Event::GivenUp),
        1 => Just(Event::AllGivenUp),
        1 => prop::collection::vec(any::<u8>(), 0..60).prop_map(Event::Garbage),
    ]
}

/// The flows whose ACKs cross a link.
pub struct Flows {
    receivers: Vec<Receiver>,
    latest: Vec<Vec<u8>>,
}

impl Flows {
    pub fn new(v6: bool) -> Self {
        let mut receivers: Vec<Receiver> = (0..4).map(|port| Receiver::new(v6, port, 7)).collect();
        receivers[3].randomise_id(5);
        let latest = receivers.iter_mut().map(Receiver::packet).collect();
        Self { receivers, latest }
    }

    fn next(&mut self, flow: usize) -> Vec<u8> {
        self.latest[flow] = self.receivers[flow].packet();
        self.latest[flow].clone()
    }
}

/// Both ends of a link under HACK.
pub trait HackLink {
    fn flows(&mut self) -> &mut Flows;

    /// The compressor gets `packet`.
    fn push(&mut self, packet: &[u8]);

    /// The decompressor sees `packet` arrive uncompressed.
    fn native(&mut self, packet: &[u8]);

    /// The compressor hears that it did.
    fn native_confirmed(&mut self, packet: &[u8]);

    /// The compressor writes its frames, where `room` counts into that many bytes.
    fn frame(&mut self, room: usize) -> Vec<u8>;

    /// Frames arrive at the decompressor.
    fn arrive(&mut self, frames: &[u8]);

    /// The compressor gives up the flow of `packet`, or all.
    fn invalidate(&mut self, packet: Option<&[u8]>);

    fn happen(&mut self, event: &Event) {
        match event {
            Event::Ack(flow, change) => {
                self.flows().receivers[*flow].apply(change);
                let packet = self.flows().next(*flow);
                self.push(&packet);
            }
            Event::Native(flow) | Event::Unheard(flow) => {
                let packet = self.flows().next(*flow);
                self.native(&packet);
                if matches!(event, Event::Native(_)) {
                    self.native_confirmed(&packet);
                }
            }
            Event::Frame(room) => {
                let frames = self.frame(*room);
                self.arrive(&frames);
            }
            Event::Turned(bit) => {
                let mut frames = self.frame(4096);
                if !frames.is_empty() {
                    let bit = bit % (8 * frames.len());
                    frames[bit / 8] ^= 1 << (bit % 8);
                }
                self.arrive(&frames);
            }
            Event::Lost => drop(self.frame(4096)),
            Event::GivenUp(flow) => {
                let packet = self.flows().latest[*flow].clone();
                self.invalidate(Some(&packet));
            }
            Event::AllGivenUp => self.invalidate(None),
            Event::Garbage(bytes) => {
                self.push(bytes);
                self.native_confirmed(bytes);
                self.native(bytes);
                self.arrive(bytes);
            }
        }
    }
}

/// What a packet at a law was drawn as: time since the one before, bytes, and what else happens.
pub fn law_draws() -> impl Strategy<Value = Vec<(u64, u32, u8)>> {
    prop::collection::vec((0u64..40_000_000, 0u32..3000, 0u8..24), 1..120)
}

/// A packet at a law, and the ACK that may follow it.
pub struct LawEvent {
    pub now: u64,
    pub bytes: u32,
    /// An ACK leaves, whether it is due or not.
    pub sends: bool,
    pub rate: u64,
    pub delay: Option<u32>,
}

pub fn law_events(draws: &[(u64, u32, u8)]) -> Vec<LawEvent> {
    let mut now = 0;
    let event = |(later, bytes, what): &(u64, u32, u8)| {
        // Most packets come in bursts.
        now += if *what < 16 { later / 1000 } else { *later };
        LawEvent {
            now,
            bytes: *bytes,
            sends: *what == 0,
            rate: if what % 3 == 0 { 80_000_000 } else { 0 },
            delay: (*what > 12).then_some(bytes * 7),
        }
    };
    draws.iter().map(event).collect()
}

/// The law as the Rust crates have it.
pub struct Law {
    clock: Clock,
    meter: RateMeter,
}

impl Law {
    pub fn new(packet: u32) -> Self {
        Self { clock: Clock::new(AckClock::USUAL, StartUp::Often, packet), meter: RateMeter::default() }
    }

    pub fn rule(&mut self, beta: u8, every: u8, wait: u64) {
        self.clock.set_rule(beta, every, Duration::from_nanos(wait));
    }

    pub fn path(&mut self, rtt: u64, ack_path: u64, starting: bool) {
        let known = (rtt > 0).then_some(Duration::from_nanos(rtt));
        self.clock.synchronise(known, Duration::from_nanos(ack_path), starting);
    }

    pub fn packet(&mut self, now: u64, bytes: u32) {
        self.clock.on_packet(Instant::from_nanos(now), bytes.into());
        self.meter.on_bytes(Instant::from_nanos(now), bytes.into());
    }

    /// What the library answers, and the time that it writes.
    pub fn due(&self, now: u64) -> (c_int, u64) {
        match self.clock.due() {
            None => (TACIT_ACK_NONE, now),
            Some(due) if due <= Instant::from_nanos(now) => (TACIT_ACK_NOW, due.as_nanos()),
            Some(due) => (TACIT_ACK_LATER, due.as_nanos()),
        }
    }

    pub fn sent(&mut self, now: u64, rate: u64, delay: Option<u32>) {
        let at = Instant::from_nanos(now);
        let measured = self.clock.rtt_min().and_then(|span| self.meter.take(at, span));
        self.clock.on_tack(at, if rate > 0 { Some(BitRate::from_bps(rate)) } else { measured }, delay);
    }
}

/// Both ends of ROHC-TCP as the Rust crate has them.
pub fn rohc(config: &tacit_rohc_config) -> (tacit_rohc::Compressor, tacit_rohc::Decompressor) {
    let cids = match config.large_cids {
        0 => tacit_rohc::CidSpace::Small { max: config.max_cid as u8 },
        _ => tacit_rohc::CidSpace::Large { max: config.max_cid },
    };
    let compressor =
        CompressorConfig { cids, repeat: config.repeat, seed: config.seed, ..Default::default() };
    let decompressor = DecompressorConfig {
        cids,
        feedback: config.feedback != 0,
        verify_tcp_checksum: config.verify_tcp_checksum != 0,
        ..Default::default()
    };
    (tacit_rohc::Compressor::new(compressor), tacit_rohc::Decompressor::new(decompressor))
}
