//! HACK's ends and the ACK law allocate nothing, neither at first nor later.
#![allow(clippy::unwrap_used, reason = "a failure is a panic")]

#[path = "it/calls.rs"]
#[allow(dead_code, reason = "for the calls of the other program")]
mod calls;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;

use tacit::*;
use tacit_rohc::header::{Header, Ip, Options, flags};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's heap, which counts the allocations of each thread: the test harness has threads of its own.
struct Counted;

// SAFETY: all is the system's.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: by contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: by contract.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static HEAP: Counted = Counted;

fn ack(flow: u16, number: u16) -> ([u8; 40], usize) {
    let mut header = Header {
        ip: Ip::V4 { source: [10, 0, 0, 2], destination: [192, 0, 2, 1], id: number, dont_fragment: true },
        dscp: 0,
        ip_ecn: 0,
        ttl: 64,
        source_port: flow,
        destination_port: 443,
        seq: 1,
        ack: 2896 * u32::from(number),
        reserved: 0,
        flags: flags::ACK,
        window: 500 + number % 7,
        checksum: 0,
        urgent: 0,
        options: Options::NONE,
        payload_len: 0,
    };
    header.checksum = header.tcp_checksum(&[]);
    let mut bytes = [0; 40];
    let len = header.emit(&mut bytes).unwrap();
    (bytes, len)
}

unsafe extern "C" fn count(user: *mut c_void, _: *const u8, _: usize) {
    // SAFETY: `user` is a number.
    unsafe { *user.cast::<u64>() += 1 };
}

#[test]
fn nothing_is_allocated() {
    let mut memory = [calls::memory(1 << 20), calls::memory(1 << 20), calls::memory(1 << 13)];
    let [client_at, ap_at, law_at]: [*mut c_void; 3] =
        memory.each_mut().map(|memory| memory.as_mut_ptr().cast());
    let (mut client, mut ap, mut law) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    let (mut frames, mut restored, mut due) = ([0u8; 4096], 0u64, 0);
    let before = ALLOCATIONS.get();
    // SAFETY: all pointers are to living variables.
    unsafe {
        for coding in [TACIT_HACK_PER_ACK, TACIT_HACK_BATCH] {
            assert_eq!(
                tacit_hack_compressor_init(client_at, 1 << 20, coding, 8, 64, &raw mut client),
                TACIT_OK
            );
            assert_eq!(tacit_hack_decompressor_init(ap_at, 1 << 20, 8, &raw mut ap), TACIT_OK);
            for number in 0..2000u16 {
                // More flows than contexts.
                let (packet, len) = ack(number / 40 % 12, number);
                if tacit_hack_push(client, packet.as_ptr(), len) != TACIT_OK || number % 97 == 0 {
                    assert_eq!(tacit_hack_native_received(ap, packet.as_ptr(), len), TACIT_OK);
                    assert_eq!(tacit_hack_native_sent(client, packet.as_ptr(), len), TACIT_OK);
                }
                if number % 11 == 0 {
                    let room = if number % 77 == 0 { 5 } else { frames.len() };
                    let mut bytes = 0;
                    tacit_hack_finish(client, frames.as_mut_ptr(), room, &raw mut bytes, ptr::null_mut());
                    let user = (&raw mut restored).cast();
                    tacit_hack_receive(ap, frames.as_ptr(), bytes, Some(count), user, ptr::null_mut());
                }
            }
            assert_eq!(tacit_hack_invalidate(client, ptr::null(), 0), TACIT_OK);
        }
        assert_eq!(tacit_ack_law_init(law_at, 1 << 13, 1448, &raw mut law), TACIT_OK);
        assert_eq!(tacit_ack_law_path(law, 5_000_000, 0, 0), TACIT_OK);
        for now in (0..2000u64).map(|number| number * 100_000) {
            assert_eq!(tacit_ack_law_packet(law, now, 1448), TACIT_OK);
            if tacit_ack_law_due(law, now, &raw mut due) == TACIT_ACK_NOW {
                assert_eq!(tacit_ack_law_sent(law, now, 0, ptr::null()), TACIT_OK);
            }
        }
    }
    assert_eq!(ALLOCATIONS.get(), before);
    assert!(restored > 2000, "{restored}");
}
