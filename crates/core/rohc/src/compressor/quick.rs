//! The fast path of the compressor: handles the next pure ACK of an established flow.

use super::CompressorConfig;
use super::context::{Context, IP_ID_SMALL};
use crate::cid::Cid;
use crate::crc::CRC3;
use crate::formats::{ContextFields, Field, FormatKind};
use crate::header::flags;
use crate::ip_id::behavior;
use crate::state::kept_flags;

/// Length of the buffer in which the header is assembled; large enough for every header of the fast path.
const ROOM: usize = 24;

/// True if lsb(bits, offset) decodes to `value` with every reference that the peer may hold in a field of this width.
#[inline(always)]
fn fit(history: &[ContextFields], field: Field, value: u32, bits: u32, offset: i32, width_mask: u32) -> bool {
    // If any distance has a bit beyond those sent, the value does not fit.
    let mut beyond = 0;
    for entry in history {
        beyond |= value.wrapping_sub(entry[field as usize]).wrapping_add_signed(offset) & width_mask;
    }
    beyond >> bits == 0
}

/// The values that determine the base header.
struct Numbers {
    ack: u32,
    scaled: u32,
    window: u32,
    /// Offset of the IP-ID from the MSN.
    offset: u32,
    /// The window equals that of every reference.
    same_window: bool,
    /// The scaled acknowledgment number fits in four bits.
    by_scale: bool,
    /// The IP-ID offset fits in three bits.
    by_offset: bool,
}

/// The bits of a base header. Its last byte holds the MSN, PSH and CRC.
struct Base {
    kind: FormatKind,
    bits: u32,
    word: u64,
}

impl Context {
    /// Compresses `packet` if it differs from the previous header only in the fields that a pure ACK changes. Returns
    /// the length in bytes and the format. On `None` nothing has changed.
    #[inline]
    pub(crate) fn quick(
        &mut self,
        packet: &[u8],
        cid: Cid,
        now_ms: u64,
        config: &CompressorConfig,
        out: &mut [u8],
    ) -> Option<(usize, FormatKind, usize)> {
        if self.quiet_packets == 0 || now_ms >= self.quiet_until_ms {
            return None;
        }
        if self.template.layout()?.1 {
            self.quick_layout::<true, 72>(packet, cid, config, out)
        } else {
            self.quick_layout::<false, 52>(packet, cid, config, out)
        }
    }

    /// `LEN` must be the length of the layout for `V6`.
    #[inline(always)]
    fn quick_layout<const V6: bool, const LEN: usize>(
        &mut self,
        packet: &[u8],
        cid: Cid,
        config: &CompressorConfig,
        out: &mut [u8],
    ) -> Option<(usize, FormatKind, usize)> {
        let tcp = LEN - 32;
        let packet = packet.first_chunk::<LEN>()?;
        if !self.template.matches::<V6, LEN>(packet) {
            return None;
        }
        let room = out.first_chunk_mut::<ROOM>()?;
        let be16 = |at: usize| u32::from(u16::from_be_bytes([packet[at], packet[at + 1]]));
        let be32 =
            |at: usize| u32::from_be_bytes([packet[at], packet[at + 1], packet[at + 2], packet[at + 3]]);
        let history = self.history.entries();
        let latest = self.history.latest()?;
        let msn = (self.msn + 1) & 0xffff;

        let (mut id, mut offset) = (0, 0);
        if !V6 {
            id = be16(4) as u16;
            let is_near = (1..=IP_ID_SMALL).contains(&id.wrapping_sub(self.last_ip_id));
            if !is_near || !self.template.has_ipv4_checksum(id, be16(10) as u16) {
                return None;
            }
            offset = u32::from(id.wrapping_sub(msn as u16));
        }
        let ack = be32(tcp + 8);
        let step = self.stride.usual_step(ack)?;
        let stride = self.stride.get();
        let (mut scaled, mut residue) =
            (latest[Field::AckScaled as usize], latest[Field::AckResidue as usize]);
        if stride != 0 && step != 0 {
            (scaled, residue) = (ack / stride, ack % stride);
        }
        let window = be16(tcp + 14);
        let (value, echo) = (be32(tcp + 24), be32(tcp + 28));

        // Test all references at once, with one word per condition. A bit beyond those sent means that the value does
        // not fit.
        let (mut residues, mut windows, mut scales, mut offsets) = (0, 0, 0, 0);
        let (mut values, mut echoes) = (Distances::NONE, Distances::NONE);
        for entry in history {
            residues |= entry[Field::AckResidue as usize] ^ residue;
            windows |= entry[Field::Window as usize] ^ window;
            scales |= scaled.wrapping_sub(entry[Field::AckScaled as usize]).wrapping_add(3);
            offsets |= offset.wrapping_sub(entry[Field::IpIdOffset as usize]).wrapping_add(1) & 0xffff;
            values.add(value.wrapping_sub(entry[Field::TsValue as usize]));
            echoes.add(echo.wrapping_sub(entry[Field::TsEcho as usize]));
        }
        let by_scale = stride != 0 && residues == 0 && scales < 16;
        let numbers = Numbers {
            ack,
            scaled,
            window,
            offset,
            same_window: windows == 0,
            by_scale,
            by_offset: offsets < 8,
        };
        let base = if V6 { base_rnd(history, &numbers)? } else { base_seq(history, &numbers)? };
        let (value_len, value_bits) = values.form(value)?;
        let (echo_len, echo_bits) = echoes.form(echo)?;
        let psh = u64::from(packet[tcp + 13] & flags::PSH);
        let tail = u64::from(msn & 0xf) << 4 | psh | u64::from(CRC3.check_header(packet));
        let head =
            Bits { word: (base.word << 8 | tail) << 16 | u64::from(be16(tcp + 16)), len: base.bits + 16 };
        let times = u64::from(value_bits) << echo_len | u64::from(echo_bits);
        let written = write(room, cid, head, Bits { word: times, len: value_len + echo_len })?;

        // Nothing can fail after this point, so update the state.
        let entry = self.history.repeat_calm(config.repetitions());
        entry[Field::Ack as usize] = ack;
        entry[Field::AckScaled as usize] = scaled;
        entry[Field::AckResidue as usize] = residue;
        entry[Field::Msn as usize] = msn;
        entry[Field::TsValue as usize] = value;
        entry[Field::TsEcho as usize] = echo;
        entry[Field::Window as usize] = window;
        entry[Field::IpIdOffset as usize] = offset;
        if !V6 {
            self.last_ip_id = id;
            self.ip_id_misses = 0;
        }
        self.stride.note_usual_step(ack, step);
        self.msn = msn;
        self.quiet_packets -= 1;
        Some((written, base.kind, LEN))
    }
}

/// The distances of a timestamp from the values that the peer may hold, ORed together. This suffices to check the
/// intervals of the forms.
#[derive(Clone, Copy)]
struct Distances {
    /// Distance from the start of the interval of the two short forms.
    ahead: u32,
    /// Distance from the start of the interval of the 21-bit form.
    around: u32,
}

impl Distances {
    const NONE: Self = Self { ahead: 0, around: 0 };

    #[inline(always)]
    fn add(&mut self, distance: u32) {
        self.ahead |= distance.wrapping_sub(1);
        self.around |= distance.wrapping_add(0x4_0000);
    }

    /// Length in bits and bits of the shortest form, except the 29-bit one. Branch-free, because the form is hard to
    /// predict.
    #[inline(always)]
    fn form(self, value: u32) -> Option<(u32, u32)> {
        const FORMS: [(u32, u32, u32); 3] = [(8, 0, 0x7f), (16, 0x8000, 0x3fff), (24, 0xc0_0000, 0x1f_ffff)];
        if (self.ahead >= 0x4000) & (self.around >= 0x20_0000) {
            return None;
        }
        let (len, prefix, mask) = FORMS[usize::from(self.ahead >= 0x80) + usize::from(self.ahead >= 0x4000)];
        Some((len, prefix | value & mask))
    }
}

/// Chooses seq_4, seq_3 or seq_7 in the same way as the general path.
#[inline(always)]
fn base_seq(history: &[ContextFields], numbers: &Numbers) -> Option<Base> {
    let Numbers { ack, scaled, window, offset, same_window, by_scale, by_offset } = *numbers;
    let near = |bits, below| fit(history, Field::IpIdOffset, offset, bits, below, 0xffff);
    let ack_fits = |bits, below| fit(history, Field::Ack, ack, bits, below, u32::MAX);
    let [long_ack, long_offset] = [ack, offset].map(u64::from);
    if !same_window {
        let window_fits = fit(history, Field::Window, window, 15, 16383, 0xffff);
        let word =
            0b1100 << 36 | u64::from(window & 0x7fff) << 21 | (long_offset & 31) << 16 | long_ack & 0xffff;
        return (window_fits && near(5, 3) && ack_fits(16, 32767)).then_some(Base {
            kind: FormatKind::Seq7,
            bits: 48,
            word,
        });
    }
    if by_scale && by_offset {
        let word = u64::from((scaled & 15) << 3 | offset & 7);
        return Some(Base { kind: FormatKind::Seq4, bits: 16, word });
    }
    // An unchanged acknowledgment number is sent along with the sequence number, in seq_1.
    let changed = history.iter().any(|entry| entry[Field::Ack as usize] != ack);
    let word = 0b1001 << 20 | (long_offset & 15) << 16 | long_ack & 0xffff;
    (changed && near(4, 3) && ack_fits(16, 16383)).then_some(Base { kind: FormatKind::Seq3, bits: 32, word })
}

/// Chooses rnd_4, rnd_3 or rnd_7 in the same way as the general path.
#[inline(always)]
fn base_rnd(history: &[ContextFields], numbers: &Numbers) -> Option<Base> {
    let Numbers { ack, scaled, window, same_window, by_scale, .. } = *numbers;
    let ack_fits = |bits, below| fit(history, Field::Ack, ack, bits, below, u32::MAX);
    let long_ack = u64::from(ack);
    if !same_window {
        let word = 0b10_1111 << 34 | (long_ack & 0x3_ffff) << 16 | u64::from(window);
        return ack_fits(18, 65535).then_some(Base { kind: FormatKind::Rnd7, bits: 48, word });
    }
    if by_scale {
        return Some(Base { kind: FormatKind::Rnd4, bits: 16, word: u64::from(0b1101 << 4 | scaled & 15) });
    }
    ack_fits(15, 8191).then_some(Base { kind: FormatKind::Rnd3, bits: 24, word: long_ack & 0x7fff })
}

/// The low `len` bits of a word, whole bytes.
#[derive(Clone, Copy)]
struct Bits {
    word: u64,
    len: u32,
}

/// Writes the CID, the base header up to the checksum, and the timestamps. Returns the number of bytes.
#[inline(always)]
fn write(room: &mut [u8; ROOM], cid: Cid, head: Bits, times: Bits) -> Option<usize> {
    let bytes = (head.word << (64 - head.len)).to_be_bytes();
    let mut at = head.len as usize / 8;
    if !cid.space.is_large() {
        let before = usize::from(cid.number != 0);
        room[0] = 0xe0 | cid.number as u8;
        room[before..before + 8].copy_from_slice(&bytes);
        at += before;
    } else {
        room[0] = bytes[0];
        let name = if cid.number < 128 { cid.number << 8 } else { 0x8000 | cid.number };
        room[1..3].copy_from_slice(&name.to_be_bytes());
        let after = 1 + usize::from(cid.number >= 128);
        room[1 + after..8 + after].copy_from_slice(&bytes[1..]);
        at += after;
    }
    room.get_mut(at..at + 8)?.copy_from_slice(&(times.word << (64 - times.len)).to_be_bytes());
    Some(at + times.len as usize / 8)
}

impl Context {
    /// Called after a packet of the general path. Enables the fast path if the possible references differ only in the
    /// fields that a pure ACK changes.
    pub(super) fn prepare_quick(&mut self, header: &[u8], has_payload: bool, config: &CompressorConfig) {
        self.leave_quick();
        let sequential = header.first() == Some(&0x45) && self.behavior == behavior::SEQUENTIAL;
        let is_v6 = header.first().is_some_and(|first| first >> 4 == 6);
        let tcp = if is_v6 { 40 } else { 20 };
        let usual = |flags: u8| {
            flags & (flags::ACK | flags::URG | flags::RST | flags::SYN | flags::FIN) == flags::ACK
        };
        let settled = header.get(tcp + 13).is_some_and(|flags| usual(*flags))
            && self.ir_left == 0
            && self.dyn_left == 0
            && !self.ecn_used;
        if has_payload || !settled || !(sequential || is_v6) || !self.is_calm() {
            return;
        }
        self.template.learn(header);
        (self.quiet_packets, self.quiet_until_ms) = self.quiet_for(config);
        self.granted_packets = self.quiet_packets;
    }

    /// Disables the fast path and accounts for the packets it sent.
    pub(super) fn leave_quick(&mut self) {
        let sent = self.granted_packets - self.quiet_packets;
        let few = sent.min(u8::MAX.into()) as u8;
        self.since_ir = self.since_ir.saturating_add(sent);
        self.since_dyn = self.since_dyn.saturating_add(sent);
        self.ecn_stable = self.ecn_stable.saturating_add(few);
        // Each packet was a small step of the IP-ID. IPv6 has no IP-ID and no score.
        self.ip_id_strain = self.ip_id_strain.saturating_sub(few);
        (self.granted_packets, self.quiet_packets) = (0, 0);
    }

    /// True if all references agree in every field that the fast path does not check, and have the usual flags.
    fn is_calm(&self) -> bool {
        const LOOKED_AT: [Field; 8] = [
            Field::Ack,
            Field::AckResidue,
            Field::AckScaled,
            Field::IpIdOffset,
            Field::Msn,
            Field::TsValue,
            Field::TsEcho,
            Field::Window,
        ];
        let looked_at = LOOKED_AT.iter().fold(0u64, |mask, field| mask | crate::formats::bit(*field));
        let Some(latest) = self.history.latest() else { return false };
        let same = |at: usize, entry: &ContextFields| looked_at & 1 << at != 0 || entry[at] == latest[at];
        latest[Field::KeptFlags as usize] == kept_flags(flags::ACK)
            && latest[Field::PayloadLen as usize] == 0
            && latest[Field::Stride as usize] == self.stride.get()
            && self.history.entries().iter().all(|entry| (0..latest.len()).all(|at| same(at, entry)))
    }
}
