//! TACK's ACK law: when a receiver acknowledges.

use core::ffi::{c_int, c_void};

use tacit_ack::{AckClock, BitRate, Clock, Duration, Instant, RateMeter, StartUp};

use crate::error::*;
use crate::handle::{self, Handle, State, init, put, with};

/// Nothing waits for an acknowledgment.
pub const TACIT_ACK_NONE: c_int = 0;
/// Acknowledge at the time that was written, unless packets change it.
pub const TACIT_ACK_LATER: c_int = 1;
/// Acknowledge now.
pub const TACIT_ACK_NOW: c_int = 2;

/// The law for one receiver.
pub type tacit_ack_law = Handle<Law>;

/// What the transport's receiver has of the law.
pub struct Law {
    clock: Clock,
    meter: RateMeter,
    /// The latest time of a call.
    now: Instant,
}

impl State for Law {
    const KIND: u32 = u32::from_be_bytes(*b"ackL");
}

impl Law {
    fn new(packet: u32) -> Self {
        let mut clock = Clock::new(AckClock::USUAL, StartUp::Often, packet);
        // Who knows a start-up says so.
        clock.synchronise(None, Duration::ZERO, false);
        Self { clock, meter: RateMeter::default(), now: Instant::ZERO }
    }

    /// The time of a call. Clocks that go back stand still here.
    fn at(&mut self, now_ns: u64) -> Result<Instant, c_int> {
        if now_ns > LATEST {
            return Err(TACIT_ERR_ARGUMENT);
        }
        self.now = self.now.max(Instant::from_nanos(now_ns));
        Ok(self.now)
    }
}

/// The last instant, in nanoseconds: 146 years. Sums of it and a wait do not overflow.
const LATEST: u64 = 1 << 62;

/// The longest round trip or wait that is believed, in nanoseconds: 18 minutes.
const LONGEST: u64 = 1 << 40;

/// A span of C's.
fn span(nanos: u64) -> Result<Duration, c_int> {
    if nanos > LONGEST { Err(TACIT_ERR_ARGUMENT) } else { Ok(Duration::from_nanos(nanos)) }
}

/// Bytes of memory for a law.
#[unsafe(no_mangle)]
pub extern "C" fn tacit_ack_law_size() -> usize {
    handle::size(|_| Law::new(1))
}

/// Makes a law in `memory`, which has `len` bytes, is aligned to TACIT_ALIGN and stays the caller's. `packet` is the bytes
/// of data in a full-sized packet, such as TCP's MSS; at least 1. The rule is that of tacit_ack_law_rule with 4, 16 and 25
/// ms. Nothing is allocated, now or later.
///
/// # Safety
///
/// Each pointer is NULL or as the text says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tacit_ack_law_init(
    memory: *mut c_void,
    len: usize,
    packet: u32,
    law: *mut *mut tacit_ack_law,
) -> c_int {
    if packet == 0 {
        return TACIT_ERR_ARGUMENT;
    }
    // SAFETY: by contract.
    unsafe { init(memory, len, law, |_| Law::new(packet)) }
}

/// How often: `beta` ACKs in a round trip (2 to 64), one for `every` full-sized packets (1 to 255), and at least
/// `min_interval_ns` between two, up to 18 minutes. A sender whose window waits for ACKs, such as TCP's, needs 0 there:
/// ACKs then follow the round trip alone, once `every` packets wait or the first has waited long.
///
/// # Safety
///
/// Each pointer is NULL or as the text says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tacit_ack_law_rule(
    law: *mut tacit_ack_law,
    beta: u8,
    every: u8,
    min_interval_ns: u64,
) -> c_int {
    // SAFETY: by contract.
    unsafe {
        with(law, |law| {
            if !(2..=64).contains(&beta) || every == 0 {
                return Err(TACIT_ERR_ARGUMENT);
            }
            law.clock.set_rule(beta, every, span(min_interval_ns)?);
            Ok(())
        })
    }
}

/// What is known of the path: the smallest round trip (0 where it is not known; the last one stays then), the least time
/// between ACKs that the way back carries (0 for any), and whether the sender still looks for its rate (not 0), as in slow
/// start. Times are up to 18 minutes.
///
/// # Safety
///
/// Each pointer is NULL or as the text says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tacit_ack_law_path(
    law: *mut tacit_ack_law,
    rtt_min_ns: u64,
    ack_path_ns: u64,
    starting: c_int,
) -> c_int {
    // SAFETY: by contract.
    unsafe {
        with(law, |law| {
            let rtt_min = span(rtt_min_ns)?;
            let known = (rtt_min > Duration::ZERO).then_some(rtt_min);
            law.clock.synchronise(known, span(ack_path_ns)?, starting != 0);
            Ok(())
        })
    }
}

/// A packet with `bytes` of data arrived at `now_ns`, nanoseconds of a clock that starts anywhere, at most 2^62. A time
/// before the latest one counts as that one.
///
/// # Safety
///
/// Each pointer is NULL or as the text says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tacit_ack_law_packet(law: *mut tacit_ack_law, now_ns: u64, bytes: u32) -> c_int {
    // SAFETY: by contract.
    unsafe {
        with(law, |law| {
            let now = law.at(now_ns)?;
            law.clock.on_packet(now, bytes.into());
            law.meter.on_bytes(now, bytes.into());
            Ok(())
        })
    }
}

/// When to acknowledge what has arrived: TACIT_ACK_NONE, TACIT_ACK_LATER with the time in `due_ns`, or TACIT_ACK_NOW. Ask
/// after each packet, and when the time has come. An error is negative.
///
/// # Safety
///
/// Each pointer is NULL or as the text says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tacit_ack_law_due(law: *mut tacit_ack_law, now_ns: u64, due_ns: *mut u64) -> c_int {
    let mut answer = TACIT_ACK_NONE;
    // SAFETY: by contract, here and within.
    let result = unsafe {
        with(law, |law| {
            let now = law.at(now_ns)?;
            let due = law.clock.due();
            put(due_ns, due.unwrap_or(now).as_nanos())?;
            answer = match due {
                None => TACIT_ACK_NONE,
                Some(due) if due <= now => TACIT_ACK_NOW,
                Some(_) => TACIT_ACK_LATER,
            };
            Ok(())
        })
    };
    if result == TACIT_OK { answer } else { result }
}

/// An acknowledgment of all that arrived left at `now_ns`. `rate_bps` is the rate at which data arrives, or 0: then the law
/// measures it. `delay_us`, unless it is NULL, is the least one-way delay since the last acknowledgment in microseconds, by
/// two clocks that need not agree: with it, ACKs get rarer where a queue stands.
///
/// # Safety
///
/// Each pointer is NULL or as the text says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tacit_ack_law_sent(
    law: *mut tacit_ack_law,
    now_ns: u64,
    rate_bps: u64,
    delay_us: *const u32,
) -> c_int {
    // SAFETY: by contract, here and within.
    unsafe {
        with(law, |law| {
            if !delay_us.is_aligned() {
                return Err(TACIT_ERR_ARGUMENT);
            }
            let now = law.at(now_ns)?;
            let measured = law.clock.rtt_min().and_then(|span| law.meter.take(now, span));
            let rate = if rate_bps == 0 { measured } else { Some(BitRate::from_bps(rate_bps)) };
            law.clock.on_tack(now, rate, delay_us.as_ref().copied());
            Ok(())
        })
    }
}
