//! The library does what the Rust code does, byte by byte, on drawn streams. `TACIT_C_STREAMS` sets how many.

use std::env;
use std::ffi::c_int;
use std::ptr;

use proptest::prelude::*;
use tacit::*;
use tacit_rohc::hack::{Coding, Compressor, Decompressor, Limits, Refusal, Room};

use crate::calls::{Ap, Client, Law};
use crate::in_rust::{self, Event, Flows, HackLink, event, law_draws, law_events};
use crate::packets::{Receiver, change};

fn config() -> ProptestConfig {
    let cases = env::var("TACIT_C_STREAMS").map_or(200, |number| number.parse().unwrap());
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// The code of each refusal, as the header says.
fn code_of(refusal: Refusal) -> c_int {
    match refusal {
        Refusal::Header(_) => -20,
        Refusal::Trailer => -21,
        Refusal::NotPureAck => -22,
        Refusal::Checksum => -23,
        Refusal::NoContext => -24,
        Refusal::CidTaken => -25,
        Refusal::FrameFull => -26,
    }
}

/// Both ends, in Rust and in C.
struct Ends {
    compressor: Compressor,
    decompressor: Decompressor,
    client: Client,
    ap: Ap,
    flows: Flows,
}

impl Ends {
    fn new(batch: bool, limits: Limits, v6: bool) -> Self {
        let coding = if batch { Coding::Batch } else { Coding::PerAck };
        Self {
            compressor: Compressor::new(coding, limits),
            decompressor: Decompressor::new(limits),
            client: Client::new(coding, limits),
            ap: Ap::new(limits.contexts),
            flows: Flows::new(v6),
        }
    }
}

impl HackLink for Ends {
    fn flows(&mut self) -> &mut Flows {
        &mut self.flows
    }

    fn arrive(&mut self, frames: &[u8]) {
        let mut got = Vec::new();
        let report = self.decompressor.receive(frames, &mut |packet| got.push(packet.to_vec()));
        assert_eq!(self.ap.receive(frames), (report, got));
    }

    fn frame(&mut self, room: usize) -> Vec<u8> {
        let mut bytes = vec![0; room];
        let mut out = Room::new(&mut bytes);
        let acks = self.compressor.finish_frame(&mut out);
        let code = if tacit_rohc::hack::List::is_cut(&out) { TACIT_ERR_SPACE } else { TACIT_OK };
        let frames = out.to_vec();
        assert_eq!(self.client.finish(room), (code, frames.clone(), acks));
        frames
    }

    fn push(&mut self, packet: &[u8]) {
        let code = self.compressor.push(packet).map_or_else(code_of, |()| TACIT_OK);
        assert_eq!(self.client.push(packet), code);
    }

    fn native(&mut self, packet: &[u8]) {
        self.decompressor.note_native(packet);
        self.ap.native(packet);
    }

    fn native_confirmed(&mut self, packet: &[u8]) {
        self.compressor.note_native(packet);
        self.client.native(packet);
    }

    fn invalidate(&mut self, packet: Option<&[u8]>) {
        match packet {
            Some(packet) => self.compressor.invalidate(packet),
            None => self.compressor.invalidate_all(),
        }
        self.client.invalidate(packet.unwrap_or_default());
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn hack_is_the_same_in_c(
        events in prop::collection::vec(event(), 1..80),
        batch in any::<bool>(),
        v6 in any::<bool>(),
        contexts in prop_oneof![Just(1usize), Just(3), Just(64)],
        frame_acks in prop_oneof![Just(1usize), Just(7), Just(64)],
    ) {
        let mut ends = Ends::new(batch, Limits { contexts, frame_acks }, v6);
        for flow in 0..4 {
            ends.happen(&Event::Native(flow));
        }
        events.iter().for_each(|event| ends.happen(event));
        ends.happen(&Event::Frame(4096));
    }

    #[test]
    fn rohc_is_the_same_in_c(
        changes in prop::collection::vec((0usize..3, change(), any::<bool>()), 1..60),
        large in any::<bool>(),
        max_cid in 0u16..4,
        repeat in 1u8..=8,
        feedback in any::<bool>(),
        seed in any::<u64>(),
        garbage in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let mut flows: Vec<Receiver> = (0..3).map(|port| Receiver::new(port == 1, port, 7)).collect();
        let verify = repeat % 2;
        let config = tacit_rohc_config {
            max_cid, large_cids: large.into(), repeat, feedback: feedback.into(), verify_tcp_checksum: verify, seed,
        };
        let mut pair = Pair::new(&config);
        for (flow, change, lost) in changes {
            flows[flow].apply(&change);
            pair.send(&flows[flow].packet(), lost);
        }
        pair.send(&garbage, false);
        pair.receive(&garbage);
    }

    #[test]
    fn the_law_is_the_same_in_c(
        events in law_draws(),
        rtt in prop_oneof![Just(0u64), 100_000..400_000_000u64],
        beta in 2u8..=64,
        every in 1u8..=40,
        wait in prop_oneof![Just(0u64), Just(25_000_000)],
        ack_path in prop_oneof![3 => Just(0u64), 1 => 0u64..200_000_000],
        starting in any::<bool>(),
    ) {
        let mut law = Law::new(1448);
        let mut expected = in_rust::Law::new(1448);
        // SAFETY: the handle lives.
        unsafe {
            assert_eq!(tacit_ack_law_rule(law.handle, beta, every, wait), TACIT_OK);
            assert_eq!(tacit_ack_law_path(law.handle, rtt, ack_path, starting.into()), TACIT_OK);
        }
        expected.rule(beta, every, wait);
        expected.path(rtt, ack_path, starting);
        for event in law_events(&events) {
            expected.packet(event.now, event.bytes);
            // SAFETY: the handle lives.
            assert_eq!(unsafe { tacit_ack_law_packet(law.handle, event.now, event.bytes) }, TACIT_OK);
            let due = expected.due(event.now);
            assert_eq!(law.due(event.now), due);
            if due.0 == TACIT_ACK_NOW || event.sends {
                expected.sent(event.now, event.rate, event.delay);
                let at_delay = event.delay.as_ref().map_or(ptr::null(), ptr::from_ref);
                // SAFETY: the handle lives.
                assert_eq!(unsafe { tacit_ack_law_sent(law.handle, event.now, event.rate, at_delay) }, TACIT_OK);
            }
        }
    }
}

/// Both ends of ROHC-TCP, in Rust and in C.
struct Pair {
    compressor: tacit_rohc::Compressor,
    decompressor: tacit_rohc::Decompressor,
    here: *mut tacit_rohc_compressor,
    there: *mut tacit_rohc_decompressor,
    now_ms: u64,
}

impl Pair {
    fn new(config: &tacit_rohc_config) -> Self {
        let (compressor, decompressor) = in_rust::rohc(config);
        let (mut here, mut there) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: all pointers are to living variables.
        unsafe {
            assert_eq!(tacit_rohc_compressor_new(config, &raw mut here), TACIT_OK);
            assert_eq!(tacit_rohc_decompressor_new(config, &raw mut there), TACIT_OK);
        }
        Self { compressor, decompressor, here, there, now_ms: 0 }
    }

    fn send(&mut self, packet: &[u8], lost: bool) {
        self.now_ms += 700;
        let room = packet.len() + TACIT_ROHC_GROWTH;
        let (mut out, mut out_c, mut len) = (vec![0; room], vec![0; room], usize::MAX);
        self.compressor.set_time(std::time::Duration::from_millis(self.now_ms));
        let compressed = self.compressor.compress(packet, &mut out);
        // SAFETY: handle and slices live.
        let code = unsafe {
            let (bytes, out) = (packet.as_ptr(), out_c.as_mut_ptr());
            tacit_rohc_compress(self.here, self.now_ms, bytes, packet.len(), out, room, &raw mut len)
        };
        assert_eq!(code == TACIT_OK, compressed.is_ok(), "{compressed:?}, {code}");
        assert_eq!(len, compressed.map_or(0, |compressed| compressed.len));
        assert_eq!(out_c[..len], out[..len]);
        if !lost {
            self.receive(&out[..len]);
        }
    }

    fn receive(&mut self, rohc: &[u8]) {
        let (mut out, mut out_c, mut len) = (vec![0; 200], vec![0; 200], usize::MAX);
        let (mut feedback, mut feedback_len) = ([0; TACIT_ROHC_FEEDBACK], usize::MAX);
        let done = self.decompressor.decompress(rohc, &mut out);
        let answer = done.map_or_else(|error| error.feedback, |done| done.feedback);
        let (mut ignored, mut split) = (usize::MAX, usize::MAX);
        // SAFETY: handles and slices live.
        unsafe {
            let (bytes, room) = (rohc.as_ptr(), out_c.len());
            let code = tacit_rohc_decompress(
                self.there,
                bytes,
                rohc.len(),
                out_c.as_mut_ptr(),
                room,
                &raw mut len,
                feedback.as_mut_ptr(),
                &raw mut feedback_len,
            );
            assert_eq!(code == TACIT_OK, done.is_ok(), "{done:?}, {code}");
            let elements = feedback.as_ptr();
            assert_eq!(tacit_rohc_feedback(self.here, elements, feedback_len, &raw mut ignored), TACIT_OK);
            assert_eq!(tacit_rohc_split(bytes, rohc.len(), &raw mut split), TACIT_OK);
        }
        let len_in_rust = done.map_or(0, |done| done.len);
        assert_eq!((len, &out_c[..len]), (len_in_rust, &out[..len_in_rust]));
        let expected = answer.as_ref().map_or(&[][..], |answer| answer.as_bytes());
        assert_eq!(&feedback[..feedback_len], expected);
        assert_eq!(ignored, self.compressor.feedback(expected));
        assert_eq!(split, tacit_rohc::split_feedback(rohc).0.len());
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        // SAFETY: nothing uses the handles later.
        unsafe {
            assert_eq!(tacit_rohc_compressor_free(self.here), TACIT_OK);
            assert_eq!(tacit_rohc_decompressor_free(self.there), TACIT_OK);
        }
    }
}
