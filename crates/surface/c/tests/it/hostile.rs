//! Wrong pointers, lengths, handles and arguments give a code; nothing ends the process.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_int, c_void};
use std::path::Path;
use std::{fs, ptr};

use tacit::*;
use tacit_rohc::hack::{Coding, Limits};

use crate::calls::{Ap, Client, Law, memory};
use crate::packets::{Change, Receiver};

const LIMITS: Limits = Limits { contexts: 1, frame_acks: 2 };

unsafe extern "C" fn ignore(_: *mut c_void, _: *const u8, _: usize) {}

/// All calls that take a handle of HACK's sending end, with possible arguments.
unsafe fn client_calls(handle: *mut tacit_hack_compressor) -> Vec<c_int> {
    let (mut byte, mut len) = (0u8, 0usize);
    // SAFETY: by contract.
    unsafe {
        vec![
            tacit_hack_native_sent(handle, &raw const byte, 1),
            tacit_hack_push(handle, &raw const byte, 1),
            tacit_hack_finish(handle, &raw mut byte, 1, &raw mut len, ptr::null_mut()),
            tacit_hack_invalidate(handle, ptr::null(), 0),
        ]
    }
}

/// The same of the receiving end.
unsafe fn ap_calls(handle: *mut tacit_hack_decompressor) -> Vec<c_int> {
    let byte = 0u8;
    // SAFETY: by contract.
    unsafe {
        vec![
            tacit_hack_native_received(handle, &raw const byte, 1),
            tacit_hack_receive(handle, &raw const byte, 1, Some(ignore), ptr::null_mut(), ptr::null_mut()),
        ]
    }
}

/// The same of the law.
unsafe fn law_calls(handle: *mut tacit_ack_law) -> Vec<c_int> {
    let mut due = 0;
    // SAFETY: by contract.
    unsafe {
        vec![
            tacit_ack_law_rule(handle, 4, 16, 0),
            tacit_ack_law_path(handle, 0, 0, 0),
            tacit_ack_law_packet(handle, 0, 1),
            tacit_ack_law_due(handle, 0, &raw mut due),
            tacit_ack_law_sent(handle, 0, 0, ptr::null()),
        ]
    }
}

/// The same of both ends of ROHC-TCP.
unsafe fn rohc_calls(here: *mut tacit_rohc_compressor, there: *mut tacit_rohc_decompressor) -> Vec<c_int> {
    let (byte, mut out, mut len) = (0u8, [0u8; 8], 0usize);
    // SAFETY: by contract.
    unsafe {
        vec![
            tacit_rohc_compress(here, 0, &raw const byte, 1, out.as_mut_ptr(), 8, &raw mut len),
            tacit_rohc_feedback(here, &raw const byte, 1, ptr::null_mut()),
            tacit_rohc_decompress(
                there,
                &raw const byte,
                1,
                out.as_mut_ptr(),
                8,
                &raw mut len,
                ptr::null_mut(),
                ptr::null_mut(),
            ),
        ]
    }
}

fn all_are(codes: &[c_int], expected: c_int) {
    assert!(codes.iter().all(|code| *code == expected), "{codes:?}, not {expected}");
}

#[test]
fn no_handle_is_an_error() {
    // SAFETY: NULL is allowed.
    unsafe {
        all_are(&client_calls(ptr::null_mut()), TACIT_ERR_NULL);
        all_are(&ap_calls(ptr::null_mut()), TACIT_ERR_NULL);
        all_are(&law_calls(ptr::null_mut()), TACIT_ERR_NULL);
        all_are(&rohc_calls(ptr::null_mut(), ptr::null_mut()), TACIT_ERR_NULL);
        assert_eq!(tacit_rohc_compressor_free(ptr::null_mut()), TACIT_OK);
        assert_eq!(tacit_rohc_decompressor_free(ptr::null_mut()), TACIT_OK);
    }
}

#[test]
fn handles_of_another_kind_and_memory_that_is_none_are_errors() {
    let ap = Ap::new(1);
    let client = Client::new(Coding::Batch, LIMITS);
    let mut none = memory(1 << 16);
    let byte_on = none.as_mut_ptr().cast::<u8>().wrapping_add(1);
    // SAFETY: all point to memory of the size of a handle.
    unsafe {
        for wrong in [ap.handle.cast(), none.as_mut_ptr().cast(), byte_on] {
            all_are(&client_calls(wrong.cast()), TACIT_ERR_HANDLE);
            all_are(&law_calls(wrong.cast()), TACIT_ERR_HANDLE);
            all_are(&rohc_calls(wrong.cast(), wrong.cast()), TACIT_ERR_HANDLE);
            assert_eq!(tacit_rohc_compressor_free(wrong.cast()), TACIT_ERR_HANDLE);
        }
        all_are(&ap_calls(client.handle.cast()), TACIT_ERR_HANDLE);
    }
}

#[test]
fn missing_pointers_are_errors() {
    let (mut client, mut ap, mut law) = (Client::new(Coding::Batch, LIMITS), Ap::new(1), Law::new(1448));
    let mut len = 0;
    // SAFETY: NULL is allowed, and all else lives.
    unsafe {
        let none = ptr::null_mut::<c_void>();
        assert_eq!(tacit_hack_push(client.handle, none.cast(), 1), TACIT_ERR_NULL);
        assert_eq!(tacit_hack_push(client.handle, none.cast(), 0), TACIT_ERR_HEADER, "an empty packet");
        assert_eq!(
            tacit_hack_finish(client.handle, none.cast(), 9, &raw mut len, none.cast()),
            TACIT_ERR_NULL
        );
        assert_eq!(
            tacit_hack_finish(client.handle, none.cast(), 0, none.cast(), none.cast()),
            TACIT_ERR_NULL
        );
        assert_eq!(
            tacit_hack_receive(ap.handle, none.cast(), 1, Some(ignore), none, none.cast()),
            TACIT_ERR_NULL
        );
        assert_eq!(tacit_hack_receive(ap.handle, none.cast(), 0, None, none, none.cast()), TACIT_ERR_NULL);
        assert_eq!(tacit_ack_law_due(law.handle, 0, ptr::null_mut()), TACIT_ERR_NULL);
        assert_eq!(tacit_rohc_defaults(ptr::null_mut()), TACIT_ERR_NULL);
        assert_eq!(tacit_rohc_split(ptr::null(), 1, &raw mut len), TACIT_ERR_NULL);
        let mut config = std::mem::zeroed();
        assert_eq!(tacit_rohc_defaults(&raw mut config), TACIT_OK);
        assert_eq!(tacit_rohc_compressor_new(&raw const config, ptr::null_mut()), TACIT_ERR_NULL);
        assert_eq!(tacit_rohc_decompressor_new(ptr::null(), ptr::null_mut()), TACIT_ERR_NULL);
    }
    // Nor may one be where no such variable is.
    let odd = ptr::without_provenance_mut::<u8>(1);
    let mut flow = Receiver::new(false, 1, 7);
    client.native(&flow.packet());
    assert_eq!(client.push(&flow.packet()), TACIT_OK);
    let mut frames = [0; 100];
    // SAFETY: odd pointers are refused.
    unsafe {
        let (out, room) = (frames.as_mut_ptr(), frames.len());
        assert_eq!(
            tacit_hack_finish(client.handle, out, room, odd.cast(), ptr::null_mut()),
            TACIT_ERR_ARGUMENT
        );
        assert_eq!(tacit_hack_finish(client.handle, out, room, &raw mut len, odd.cast()), TACIT_ERR_ARGUMENT);
        let none = ptr::null_mut();
        assert_eq!(tacit_hack_receive(ap.handle, out, 1, Some(ignore), none, odd.cast()), TACIT_ERR_ARGUMENT);
        assert_eq!(tacit_ack_law_due(law.handle, 0, odd.cast()), TACIT_ERR_ARGUMENT);
        assert_eq!(tacit_ack_law_sent(law.handle, 0, 0, odd.cast()), TACIT_ERR_ARGUMENT);
    }
    assert_eq!(client.finish(100).2, 1, "nothing was lost");
    // They still work.
    client.native(&[]);
    ap.native(&[]);
    assert_eq!(law.due(0), (TACIT_ACK_NONE, 0));
}

#[test]
fn lengths_that_no_object_has_are_errors() {
    let (client, ap) = (Client::new(Coding::Batch, LIMITS), Ap::new(1));
    let (byte, mut len) = (0u8, 0);
    for long in [isize::MAX as usize + 1, usize::MAX] {
        // SAFETY: the library refuses the lengths before it reads.
        unsafe {
            let at = &raw const byte;
            assert_eq!(tacit_hack_native_sent(client.handle, at, long), TACIT_ERR_ARGUMENT);
            assert_eq!(tacit_hack_push(client.handle, at, long), TACIT_ERR_ARGUMENT);
            let (out, none) = (at.cast_mut(), ptr::null_mut());
            assert_eq!(tacit_hack_finish(client.handle, out, long, &raw mut len, none), TACIT_ERR_ARGUMENT);
            let (none, report) = (ptr::null_mut(), ptr::null_mut());
            assert_eq!(
                tacit_hack_receive(ap.handle, at, long, Some(ignore), none, report),
                TACIT_ERR_ARGUMENT
            );
            assert_eq!(tacit_rohc_split(at, long, &raw mut len), TACIT_ERR_ARGUMENT);
        }
    }
}

/// One byte less than the size, or another alignment, and nothing is written.
#[test]
fn memory_must_be_long_enough_and_aligned() {
    for (contexts, acks) in [(1, 1), (1, 64), (3, 16), (256, 64)] {
        let (size, ap_size) =
            (tacit_hack_compressor_size(contexts, acks), tacit_hack_decompressor_size(contexts));
        let before = memory(size.max(ap_size) + 32);
        let mut region = before.clone();
        let at: *mut c_void = region.as_mut_ptr().cast();
        let (mut client, mut ap, mut law) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        for (shift, short, expected) in [(0, 1, TACIT_ERR_MEMORY), (8, 0, TACIT_ERR_MEMORY), (0, 0, TACIT_OK)]
        {
            let at = at.wrapping_byte_add(shift);
            // SAFETY: the memory has 32 bytes more.
            unsafe {
                let len = size - short;
                let code =
                    tacit_hack_compressor_init(at, len, TACIT_HACK_BATCH, contexts, acks, &raw mut client);
                assert_eq!((code, client.is_null()), (expected, expected != TACIT_OK));
                let code = tacit_hack_decompressor_init(at, ap_size - short, contexts, &raw mut ap);
                assert_eq!((code, ap.is_null()), (expected, expected != TACIT_OK));
                let code = tacit_ack_law_init(at, tacit_ack_law_size() - short, 1448, &raw mut law);
                assert_eq!((code, law.is_null()), (expected, expected != TACIT_OK));
            }
            assert!(expected == TACIT_OK || region == before);
        }
        assert_eq!(region[size.max(ap_size).div_ceil(16)..], before[size.max(ap_size).div_ceil(16)..]);
    }
}

#[test]
fn arguments_out_of_range_are_errors() {
    for (contexts, acks) in [(0, 1), (257, 1), (1, 0), (1, 65), (usize::MAX, usize::MAX)] {
        assert_eq!(tacit_hack_compressor_size(contexts, acks), 0);
    }
    assert_eq!([0, 257, usize::MAX].map(|contexts| tacit_hack_decompressor_size(contexts)), [0; 3]);
    let mut region = memory(1 << 20);
    let (at, len) = (region.as_mut_ptr().cast(), 1 << 20);
    let (mut client, mut ap, mut law) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    // SAFETY: the memory lives.
    unsafe {
        for (coding, contexts, acks) in [(2, 1, 1), (-1, 1, 1), (0, 0, 1), (0, 257, 1), (0, 1, 65)] {
            let code = tacit_hack_compressor_init(at, len, coding, contexts, acks, &raw mut client);
            assert_eq!(code, TACIT_ERR_ARGUMENT);
        }
        assert_eq!(tacit_hack_decompressor_init(at, len, 0, &raw mut ap), TACIT_ERR_ARGUMENT);
        assert_eq!(tacit_ack_law_init(at, len, 0, &raw mut law), TACIT_ERR_ARGUMENT);
        for (max_cid, large_cids, repeat) in [(16, 0, 2), (300, 0, 2), (16384, 1, 2), (3, 0, 0), (3, 0, 9)] {
            let mut config = std::mem::zeroed();
            assert_eq!(tacit_rohc_defaults(&raw mut config), TACIT_OK);
            (config.max_cid, config.large_cids, config.repeat) = (max_cid, large_cids, repeat);
            let mut handle = ptr::null_mut();
            assert_eq!(tacit_rohc_compressor_new(&raw const config, &raw mut handle), TACIT_ERR_ARGUMENT);
            let mut handle = ptr::null_mut();
            assert_eq!(tacit_rohc_decompressor_new(&raw const config, &raw mut handle), TACIT_ERR_ARGUMENT);
        }
    }
}

/// A callback that calls its own handle.
unsafe extern "C" fn again(user: *mut c_void, packet: *const u8, len: usize) {
    // SAFETY: `user` is the pair of the test below.
    unsafe {
        let (handle, codes) = &mut *user.cast::<(*mut tacit_hack_decompressor, Vec<c_int>)>();
        codes.push(tacit_hack_native_received(*handle, packet, len));
    }
}

#[test]
fn a_handle_in_use_is_busy() {
    let (mut client, mut ap) = (Client::new(Coding::Batch, LIMITS), Ap::new(1));
    let mut flow = Receiver::new(false, 1, 7);
    let native = flow.packet();
    client.native(&native);
    ap.native(&native);
    flow.apply(&Change::Ack(1448));
    assert_eq!(client.push(&flow.packet()), TACIT_OK);
    let (_, frames, _) = client.finish(100);
    let mut user = (ap.handle, Vec::<c_int>::new());
    // SAFETY: all pointers are to living variables.
    unsafe {
        let (bytes, at) = (frames.as_ptr(), (&raw mut user).cast());
        let code = tacit_hack_receive(ap.handle, bytes, frames.len(), Some(again), at, ptr::null_mut());
        assert_eq!(code, TACIT_OK);
    }
    assert_eq!(user.1, [TACIT_ERR_BUSY]);
    ap.native(&native);
}

#[test]
fn input_and_output_that_overlap_are_errors() {
    let (mut config, mut here, mut there) = (None, ptr::null_mut(), ptr::null_mut());
    let mut bytes = [0u8; 200];
    let mut len = 0;
    // SAFETY: all pointers are to living variables.
    unsafe {
        let config = config.insert(std::mem::zeroed());
        tacit_rohc_defaults(config);
        assert_eq!(tacit_rohc_compressor_new(config, &raw mut here), TACIT_OK);
        assert_eq!(tacit_rohc_decompressor_new(config, &raw mut there), TACIT_OK);
        let at = bytes.as_mut_ptr();
        for (input, output, expected) in [
            (0, 0, TACIT_ERR_ARGUMENT),
            (50, 0, TACIT_ERR_ARGUMENT),
            (0, 39, TACIT_ERR_ARGUMENT),
            (0, 40, TACIT_ERR_PROFILE),
        ] {
            let (input, output) = (at.add(input), at.add(output));
            assert_eq!(tacit_rohc_compress(here, 0, input, 40, output, 100, &raw mut len), expected);
            let none = ptr::null_mut();
            let code =
                tacit_rohc_decompress(there, input, 40, output, 100, &raw mut len, none, ptr::null_mut());
            assert_eq!(code == TACIT_ERR_ARGUMENT, expected == TACIT_ERR_ARGUMENT);
        }
        assert_eq!(tacit_rohc_compressor_free(here), TACIT_OK);
        assert_eq!(tacit_rohc_decompressor_free(there), TACIT_OK);
    }
}

#[test]
fn extreme_times_and_amounts_do_not_overflow() {
    const LATEST: u64 = 1 << 62;
    const LONGEST: u64 = 1 << 40;
    let mut law = Law::new(u32::MAX);
    let handle = law.handle;
    // SAFETY: the handle lives.
    unsafe {
        for (beta, every, wait) in
            [(0, 1, 0), (1, 1, 0), (65, 1, 0), (4, 0, 0), (4, 1, LONGEST + 1), (4, 1, u64::MAX)]
        {
            assert_eq!(tacit_ack_law_rule(handle, beta, every, wait), TACIT_ERR_ARGUMENT);
        }
        assert_eq!(tacit_ack_law_path(handle, u64::MAX, 0, 0), TACIT_ERR_ARGUMENT);
        assert_eq!(tacit_ack_law_path(handle, 0, u64::MAX, 0), TACIT_ERR_ARGUMENT);
        assert_eq!(tacit_ack_law_packet(handle, LATEST + 1, 1), TACIT_ERR_ARGUMENT);
        assert_eq!(tacit_ack_law_rule(handle, 2, 255, LONGEST), TACIT_OK);
        assert_eq!(tacit_ack_law_path(handle, LONGEST, LONGEST, -1), TACIT_OK);
        for now in [0, 1, LATEST - 1, LATEST, LATEST] {
            for _ in 0..3 {
                assert_eq!(tacit_ack_law_packet(handle, now, u32::MAX), TACIT_OK);
                assert!(law.due(now).0 >= 0);
            }
            for (rate, delay) in [(1, 0), (u64::MAX, u32::MAX), (0, 5)] {
                assert_eq!(tacit_ack_law_sent(handle, now, rate, &raw const delay), TACIT_OK);
                assert_eq!(tacit_ack_law_packet(handle, now, u32::MAX), TACIT_OK);
                assert!(law.due(now).0 >= 0);
            }
        }
    }
}

#[test]
fn a_clock_that_goes_back_stands_still() {
    let (mut back, mut still) = (Law::new(1448), Law::new(1448));
    let times = [5_000_000u64, 90_000_000, 20_000_000, 20_500_000, 1, 120_000_000, 110_000_000];
    let mut latest = 0;
    for now in times.into_iter().cycle().take(60) {
        latest = now.max(latest);
        // SAFETY: the handles live.
        unsafe {
            for (law, now) in [(&mut back, now), (&mut still, latest)] {
                assert_eq!(tacit_ack_law_path(law.handle, 1_000_000, 0, 0), TACIT_OK);
                assert_eq!(tacit_ack_law_packet(law.handle, now, 1448), TACIT_OK);
            }
            let answer = back.due(now);
            assert_eq!(answer, still.due(latest));
            if answer.0 == TACIT_ACK_NOW {
                assert_eq!(tacit_ack_law_sent(back.handle, now, 0, ptr::null()), TACIT_OK);
                assert_eq!(tacit_ack_law_sent(still.handle, latest, 0, ptr::null()), TACIT_OK);
            }
        }
    }
}

#[test]
fn every_code_has_a_text_of_its_own() {
    let header = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("include/tacit.h")).unwrap();
    let codes = header.lines().filter_map(|line| line.strip_prefix("#define TACIT_ERR_"));
    let codes: Vec<c_int> =
        codes.map(|line| line.split(['(', ')']).nth(1).unwrap().parse().unwrap()).collect();
    // SAFETY: all texts are strings of C that live for ever.
    let text = |code: c_int| unsafe { CStr::from_ptr(tacit_error_text(code)) }.to_str().unwrap();
    let texts: BTreeSet<&str> = codes.iter().map(|code| text(*code)).collect();
    assert_eq!(texts.len(), codes.len());
    assert!(codes.len() > 15 && codes.iter().all(|code| *code < 0 && text(*code) != text(77)));
}

/// `docs/use/c.md` says how much memory each handle takes.
#[test]
fn the_page_says_how_much_memory_there_has_to_be() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/use/c.md");
    let page = fs::read_to_string(page).unwrap();
    for (contexts, acks) in [(1, 16), (8, 64), (64, 64), (256, 64)] {
        let (client, ap) =
            (tacit_hack_compressor_size(contexts, acks), tacit_hack_decompressor_size(contexts));
        let row = format!("| {contexts} | {acks} | {client} | {ap} |");
        assert!(page.contains(&row), "{row}");
    }
    assert!(page.contains(&format!("law takes {} bytes", tacit_ack_law_size())), "{}", tacit_ack_law_size());
}
