//! Arbitrary arrivals at FWP's shim. A placeholder reaches TCP once, announced, permitted and within the window, and no
//! reader passes on a placeholder byte.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tacit_between::fwp::control::{ToReader, ToShim};
use tacit_between::fwp::{Config, Readers, Shim};
use tacit_packet::tcp::{Flags, Segment, Timestamps};
use tacit_packet::units::{Bytes, Duration, FlowId, HostId, Instant, SeqNumber};
use tacit_packet::{FlowKey, IpHeader, Packet, Transport};

const STREAM: usize = 4096;
const WINDOW: u16 = 700;
const FLOW: FlowId = FlowId(1);
const SERVER: HostId = HostId(0);
const HOST: HostId = HostId(1);

/// The state of one byte of the stream at the host and at its reader.
#[derive(Clone, Copy, Default)]
struct Byte {
    allowed: bool,
    announced: bool,
    placed: bool,
    has: bool,
    /// TCP received this byte from a placeholder.
    false_byte: bool,
}

struct Host {
    bytes: Vec<Byte>,
    deaf: bool,
    edge: usize,
    first: SeqNumber,
}

impl Readers for Host {
    fn hole(&mut self, _: FlowKey, start: u64, end: u64) -> bool {
        if self.deaf {
            return false;
        }
        for byte in &mut self.bytes[start as usize..end as usize] {
            assert!(byte.allowed && !byte.announced);
            byte.announced = true;
        }
        true
    }
    fn late(&mut self, _: FlowKey, start: u64, end: u64, _: &[u8]) {
        assert!(start < end && self.bytes[start as usize..end as usize].iter().all(|byte| byte.announced));
    }
    fn switched(&mut self, _: FlowKey, _: bool) {}
}

impl Host {
    fn takes(&mut self, packet: &Packet) {
        let Transport::Tcp(segment) = packet.transport else { return };
        let start = (segment.seq - self.first) as usize;
        let end = start.saturating_add(segment.payload_len as usize).min(self.bytes.len());
        for place in start.min(end)..end {
            let byte = &mut self.bytes[place];
            if segment.placeholder {
                assert!(byte.announced && !byte.placed && place < self.edge);
                byte.placed = true;
            }
            if place < self.edge && !std::mem::replace(&mut byte.has, true) {
                byte.false_byte = segment.placeholder;
            }
        }
        // The application receives what TCP has, except for announced placeholders.
        assert!(self.bytes.iter().all(|byte| !byte.has || byte.announced || !byte.false_byte));
    }

    fn next(&self) -> usize {
        self.bytes.iter().position(|byte| !byte.has).unwrap_or(self.bytes.len())
    }
}

fn packet(source: HostId, segment: Segment) -> Packet {
    let destination = if source == SERVER { HOST } else { SERVER };
    Packet { flow: FLOW, source, destination, ip: IpHeader::default(), transport: Transport::Tcp(segment) }
}

fuzz_target!(|bytes: &[u8]| {
    // Input that does not describe arrivals is a message from either side: parsed or refused.
    let mut again = Vec::new();
    if let Ok(message) = ToShim::decode(bytes) {
        message.encode(&mut again);
        assert_eq!(again, bytes);
    }
    if let Ok(message) = ToReader::decode(bytes) {
        message.encode(&mut again);
        assert_eq!(again, bytes);
    }
    let Some(([settle, margin, holes, initial], steps)) = bytes.split_first_chunk() else { return };
    let config = Config {
        settle: Duration::from_millis(u64::from(settle % 8)),
        margin_tenths: u32::from(*margin),
        most_holes: 1 + u32::from(*holes),
        most_hole_bytes: Bytes(1 + 16 * u64::from(*holes)),
        ..Config::USUAL
    };
    let mut shim: Shim<Packet> = Shim::new(config);
    let key = FlowKey::simulated(FLOW, SERVER);
    // In half of the runs, sequence numbers wrap early.
    let initial = SeqNumber(u32::from(*initial).wrapping_sub(128).wrapping_mul(16));
    let first = initial + 1;
    let mut host = Host { bytes: vec![Byte::default(); STREAM], deaf: false, edge: 0, first };
    let mut now = Instant::ZERO;
    let syn = Segment { seq: initial, flags: Flags::SYN, ..Segment::default() };
    shim.handle_down(now, packet(SERVER, syn), &mut host);
    assert!(shim.register(key, [1; 16]).is_ok());
    for step in steps.chunks_exact(4) {
        let [what, a, b, c] = [step[0], step[1], step[2], step[3]];
        let place = (usize::from(a) << 4 | usize::from(b) >> 4).min(STREAM - 256);
        match what % 8 {
            0..=3 => {
                let flags = if what & 0x10 != 0 { Flags::ACK | Flags::FIN } else { Flags::ACK };
                let flags = if what == 0xf8 { Flags::RST } else { flags };
                let timestamps = (what & 0x20 != 0).then_some(Timestamps { value: b.into(), echo_reply: 0 });
                // Includes positions far beyond the window.
                let far = if what & 0x40 != 0 { u32::from(c) << 24 } else { 0 };
                let seq = first + place as u32 + far;
                let segment = Segment { seq, payload_len: c.into(), flags, timestamps, ..Segment::default() };
                if let Some(passed) = shim.handle_down(now, packet(SERVER, segment), &mut host) {
                    host.takes(&passed);
                }
            }
            4 => {
                let next = host.next();
                host.edge = host.edge.max(next + usize::from(WINDOW)).min(STREAM);
                let window = (host.edge - next) as u16;
                let ack = first + next as u32;
                let segment = Segment { ack, flags: Flags::ACK, window, ..Segment::default() };
                shim.handle_up(now, &packet(HOST, segment));
            }
            5 => {
                let end = (place + 16 * usize::from(c)).min(STREAM);
                shim.allow(key, place as u64, end as u64);
                host.bytes[place.min(end)..end].iter_mut().for_each(|byte| byte.allowed = true);
            }
            6 => {
                now += Duration::from_millis(c.into());
                shim.link_lost(b.into());
                shim.handle_timeout(now, &mut host);
            }
            _ => match what >> 3 {
                0 => shim.stop(key),
                1 => shim.fail(key),
                2 => shim.unregister(key),
                odd if odd & 1 == 1 => host.deaf = !host.deaf,
                _ => shim.repaired(key, place as u64, place as u64 + u64::from(c)),
            },
        }
        while let Some(passed) = shim.poll_down() {
            host.takes(&passed);
        }
        shim.check().expect("its books agree");
    }
});
