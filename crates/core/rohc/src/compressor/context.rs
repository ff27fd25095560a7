//! One context of the compressor: its model of the flow, and the choice of the next packet format.

use alloc::boxed::Box;
use core::time::Duration;

use crate::chains::{
    Chain, IP_ID_SHORT, VARIABLE_LENGTH, common_tail, dynamic_chain, ecn_bits, irregular_chain,
    write_static_chain,
};
use crate::cid::Cid;
use crate::compressor::CompressorConfig;
use crate::compressor::history::{History, MAX_REPEAT};
use crate::compressor::options::{Table, TimestampForms, Unlistable};
use crate::compressor::replicate::ContextChoice;
use crate::compressor::stride::StrideFinder;
use crate::compressor::tunnel::Tunnel;
use crate::crc::{CRC3, CRC7, CRC8};
use crate::formats::{
    COMMON, CONTEXT_FIELDS, ContextFields, Field, Format, FormatKind, Mask, RND, SEQ, Values, bit,
};
use crate::header::{Header, Ip};
use crate::ip_id::behavior;
use crate::layers::Layers;
use crate::quick::Template;
use crate::state::observe;
use crate::wire::{Short, Writer};

/// Number of consecutive packets with unchanged ECN bits after which the irregular chain omits them again. Must exceed
/// any repetition.
const ECN_STABLE: u8 = 64;
/// Number of packets within which the feedback to an IR-CR should arrive.
const ANSWER_PACKETS: u32 = 32;
const _: () = assert!(ECN_STABLE > MAX_REPEAT);

/// State of a flow, and what the compressor knows about the decompressor's context.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) history: History,
    pub(crate) table: Table,
    /// MSN of the last packet. Stored as a 32-bit word, because it is stored and loaded with every packet, and a load
    /// that is wider than the preceding store would stall.
    pub(super) msn: u32,
    pub(super) stride: StrideFinder,
    flow_label: u32,
    /// The headers around IP and TCP, if there are any.
    pub(super) tunnel: Option<Box<Tunnel>>,
    pub(super) behavior: u32,
    pub(super) last_ip_id: u16,
    /// Number of consecutive packets whose IP-ID does not fit the current behaviour.
    pub(super) ip_id_misses: u8,
    /// Score of the IP-ID's jumps against its small steps; see [`IP_ID_STRAINED`].
    pub(super) ip_id_strain: u8,
    pub(super) ecn_used: bool,
    last_ecn: u32,
    pub(super) ecn_stable: u8,
    /// Number of IR and IR-DYN packets still to send before smaller formats.
    pub(super) ir_left: u8,
    pub(super) dyn_left: u8,
    /// Packets since the last IR and since the last IR or IR-DYN.
    pub(super) since_ir: u32,
    pub(super) since_dyn: u32,
    /// Times of these packets, in milliseconds.
    ir_at_ms: u64,
    dyn_at_ms: u64,
    /// MSN of the first IR or IR-DYN in the latest run that established or refreshed this context.
    run_start: u16,
    /// MSN of the first packet of this flow.
    first: u16,
    /// Feedback has shown that the peer decompressed a packet of this flow.
    is_known: bool,
    /// Feedback has confirmed the context established or refreshed by the latest run.
    confirmed: bool,
    /// The last header; the template of the fast path.
    pub(super) template: Template,
    /// Number of packets, and time, until a refresh is due and the fast path ends.
    pub(super) quiet_packets: u32,
    /// Initial value of `quiet_packets`.
    pub(super) granted_packets: u32,
    pub(super) quiet_until_ms: u64,
    /// Feedback has arrived, so there are no periodic refreshes (RFC 6846 section 5.2.1.2).
    pub(crate) has_feedback: bool,
}

/// The format of one packet, and the items that its list carries.
struct Plan {
    format: Option<&'static Format>,
    is_static: bool,
    /// Bit mask of the indexes whose items the list carries; `None` for no list.
    bring: Option<u16>,
    /// Unused if the list carries the timestamps.
    timestamps: TimestampForms,
}

impl Plan {
    /// The format of a packet without a base context.
    fn kind(&self) -> FormatKind {
        match self.format {
            Some(format) => format.kind,
            None if self.is_static => FormatKind::Ir,
            None => FormatKind::IrDyn,
        }
    }
}

impl Context {
    pub(crate) fn new(msn: u16, config: &CompressorConfig) -> Self {
        Self {
            history: History::EMPTY,
            table: Table::EMPTY,
            msn: u32::from(msn),
            stride: StrideFinder::EMPTY,
            flow_label: 0,
            tunnel: None,
            behavior: behavior::RANDOM,
            last_ip_id: 0,
            ip_id_misses: 0,
            ip_id_strain: 0,
            ecn_used: false,
            last_ecn: 0,
            ecn_stable: 0,
            ir_left: config.repetitions(),
            dyn_left: 0,
            since_ir: 0,
            since_dyn: 0,
            ir_at_ms: 0,
            dyn_at_ms: 0,
            run_start: msn.wrapping_add(1),
            first: msn.wrapping_add(1),
            is_known: false,
            confirmed: false,
            template: Template::NONE,
            quiet_packets: 0,
            granted_packets: 0,
            quiet_until_ms: 0,
            has_feedback: false,
        }
    }

    pub(crate) const fn msn(&self) -> u16 {
        self.msn as u16
    }

    /// Repeats the dynamic part with the next packets, and the static part too if `is_static`.
    pub(crate) fn restart(&mut self, is_static: bool, config: &CompressorConfig) {
        self.history.clear();
        self.leave_quick();
        self.table.doubt();
        self.confirmed = false;
        self.run_start = self.msn().wrapping_add(1);
        if is_static {
            self.ir_left = config.repetitions();
        } else {
            self.dyn_left = config.repetitions();
        }
    }

    /// True if the peer is known to have this context, which a base must satisfy (RFC 6846 section 5.2.3).
    pub(crate) const fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    /// True if no feedback has confirmed this context within the expected number of packets.
    pub(crate) const fn lacks_confirmation(&self) -> bool {
        !self.confirmed && self.ir_left == 0 && self.since_ir >= ANSWER_PACKETS
    }

    /// True if the packet with this MSN belonged to an earlier flow with this CID, whose static part the peer still
    /// has. MSNs continue when a CID is reused (RFC 6846 section 6.1.1).
    pub(crate) const fn is_foreign(&self, msn: u16) -> bool {
        !self.is_known && (msn.wrapping_sub(self.first) as i16) < 0
    }

    /// True if packets sent since `msn` already answer a NACK for it.
    pub(crate) fn is_answered(&self, msn: Option<u16>, is_static: bool) -> bool {
        let running = self.ir_left > 0 || (!is_static && self.dyn_left > 0);
        running && msn.is_some_and(|msn| (msn.wrapping_sub(self.run_start) as i16) < 0)
    }

    /// Processes feedback that the packet with this MSN was decompressed.
    pub(crate) fn confirm(&mut self, msn: u16) {
        let age = self.msn().wrapping_sub(msn) as i16;
        if age < 0 {
            return;
        }
        self.is_known |= !self.is_foreign(msn);
        if (msn.wrapping_sub(self.run_start) as i16) >= 0 {
            self.confirmed = true;
            if self.ir_left > 0 || self.dyn_left > 0 {
                self.ir_left = 0;
                self.dyn_left = 0;
                // Confirms everything up to the acknowledged packet, but no later changes (section 5.2.2.1).
                let has_all = |kept: &ContextFields| {
                    kept[Field::Msn as usize] == u32::from(msn)
                        && kept[Field::ListId as usize] == self.table.list_id()
                };
                if self.history.entries().iter().any(has_all) {
                    self.table.confirm();
                }
            }
        }
        self.history.confirm(msn);
    }

    /// Compresses one packet. On an error nothing is sent, and the set of references that the peer may hold is
    /// unchanged.
    #[inline]
    pub(crate) fn compress(
        &mut self,
        chain: &mut Chain<'_>,
        options: &[u8],
        packet: &[u8],
        place: ContextChoice,
        config: &CompressorConfig,
        writer: &mut Writer<'_>,
    ) -> Result<FormatKind, Fault> {
        self.leave_quick();
        let mut values = match self.history.latest() {
            Some(latest) => Values::inherit(latest),
            None => Values::inherit(&[0; CONTEXT_FIELDS]),
        };
        let marked = chain.layers.as_deref_mut().is_some_and(|layers| self.learn_layers(layers, config));
        let header = &*chain.header;
        self.learn(header, marked, config);
        let msn = (self.msn + 1) & 0xffff;
        values[Field::Msn] = msn;
        values[Field::Behavior] = self.behavior;
        values[Field::Stride] = self.stride.get();
        values[Field::EcnUsed] = u32::from(self.ecn_used);
        values[Field::TtlOuter] = self.tunnel.as_ref().map_or(0, |tunnel| u32::from(tunnel.ttl_left > 0));
        observe(header, &mut values);
        self.table.observe(options, &mut values, &self.history)?;
        let ContextChoice { cid, base, now_ms } = place;
        self.refresh_if_due(now_ms, config);
        let plan = self.plan(&mut values, config.repetitions());
        let head = packet.len() - usize::from(header.payload_len);
        let mut kind = plan.kind();
        match plan.format {
            Some(format) => {
                let bytes = &packet[..head];
                values[Field::Crc] =
                    u32::from(if format.crc7 { CRC7.check(bytes) } else { CRC3.check(bytes) });
                self.write_co(format, &plan, chain, &mut values, cid, writer)?;
            }
            None => match base.filter(|base| plan.is_static && base.serves(header, &values)) {
                Some(base) => {
                    kind = FormatKind::IrCr;
                    base.write_ir_cr(&packet[..head], chain, &mut values, &mut self.table, cid, writer)?;
                }
                None => self.write_ir(plan.is_static, chain, &mut values, cid, writer)?,
            },
        }
        if head != packet.len() {
            writer.put(&packet[head..])?;
        }
        if let Some(bring) = plan.bring {
            self.table.count_sent(bring, config.repetitions());
        }
        self.msn = msn;
        self.history.push(values.kept(), config.repetitions());
        self.count(&plan, now_ms);
        if let Some(tunnel) = &mut self.tunnel {
            tunnel.sent(config.repetitions());
            return Ok(kind);
        }
        self.prepare_quick(&packet[..head], head != packet.len(), config);
        Ok(kind)
    }

    /// Counts a packet that was sent.
    fn count(&mut self, plan: &Plan, now_ms: u64) {
        self.since_ir = self.since_ir.saturating_add(1);
        self.since_dyn = self.since_dyn.saturating_add(1);
        if plan.format.is_some() {
            return;
        }
        self.since_dyn = 0;
        self.dyn_at_ms = now_ms;
        self.dyn_left = self.dyn_left.saturating_sub(1);
        if plan.is_static {
            self.since_ir = 0;
            self.ir_at_ms = now_ms;
            self.ir_left = self.ir_left.saturating_sub(1);
        }
    }

    /// Stores the layers of a new packet. Returns true if the DSCP or ECN bits of an outer header changed.
    #[cold]
    fn learn_layers(&mut self, layers: &mut Layers, config: &CompressorConfig) -> bool {
        let Some(tunnel) = &mut self.tunnel else {
            self.tunnel = Some(Box::new(Tunnel::new(layers)));
            return false;
        };
        let change = tunnel.learn(layers, config.repetitions());
        if change.statics || change.dynamics {
            self.restart(change.statics, config);
        }
        change.traffic_class
    }

    /// Adapts the IP-ID behaviour, the stride and the use of ECN to the flow. `marked` means that the ECN bits or DSCP
    /// of an outer header changed; the irregular chain carries these while ECN is in use.
    fn learn(&mut self, header: &Header, marked: bool, config: &CompressorConfig) {
        let fresh = self.history.entries().is_empty();
        match header.ip {
            Ip::V4 { id, .. } => self.learn_ip_id(id, fresh),
            Ip::V6 { flow_label, .. } => {
                if flow_label != self.flow_label {
                    self.flow_label = flow_label;
                    self.restart(true, config);
                }
                self.behavior = behavior::RANDOM;
            }
        }
        let ecn = ecn_bits(header);
        if (ecn == self.last_ecn && !marked) || fresh {
            self.ecn_stable = self.ecn_stable.saturating_add(1);
            self.ecn_used &= self.ecn_stable < ECN_STABLE;
        } else {
            self.ecn_stable = 0;
            self.ecn_used = true;
        }
        self.last_ecn = ecn;
        self.stride.observe(header.ack);
    }

    fn learn_ip_id(&mut self, id: u16, fresh: bool) {
        let near = |delta: u16| (1..=IP_ID_NEAR).contains(&delta);
        let last = self.last_ip_id;
        self.last_ip_id = id;
        let seen = if fresh {
            if id == 0 { behavior::ZERO } else { behavior::SEQUENTIAL }
        } else if near(id.wrapping_sub(last)) {
            behavior::SEQUENTIAL
        } else if near(id.swap_bytes().wrapping_sub(last.swap_bytes())) {
            behavior::SWAPPED
        } else if id == 0 && last == 0 {
            behavior::ZERO
        } else {
            behavior::RANDOM
        };
        let seen = self.weigh_jumps(id, last, seen);
        if seen == self.behavior {
            self.ip_id_misses = 0;
            return;
        }
        self.ip_id_misses += 1;
        let patience = match self.behavior {
            // Behaviour 0 encodes only an IP-ID of zero.
            behavior::ZERO => 0,
            behavior::RANDOM => 3,
            _ => 2,
        };
        if fresh || self.ir_left > 0 || self.ip_id_misses > patience {
            self.ip_id_misses = 0;
            self.behavior = if self.behavior == behavior::ZERO && id != 0 && seen == behavior::RANDOM {
                // One step away from zero does not predict the following steps.
                behavior::SEQUENTIAL
            } else {
                seen
            };
        }
    }

    /// Treats the IP-ID as random if it jumps forward more often than `IP_ID_JUMP` allows. A jump costs one or two
    /// co_common packets, random behaviour two bytes in each packet. Hosts that merge segments count each segment.
    fn weigh_jumps(&mut self, id: u16, last: u16, seen: u32) -> u32 {
        let step = match seen {
            behavior::SEQUENTIAL => id.wrapping_sub(last),
            behavior::SWAPPED => id.swap_bytes().wrapping_sub(last.swap_bytes()),
            _ => return seen,
        };
        if step <= IP_ID_SMALL {
            self.ip_id_strain = self.ip_id_strain.saturating_sub(1);
        } else {
            self.ip_id_strain = (self.ip_id_strain + IP_ID_JUMP).min(IP_ID_STRAINED * 2);
        }
        let limit = if self.behavior == behavior::RANDOM { IP_ID_JUMP } else { IP_ID_STRAINED };
        if self.ip_id_strain < limit {
            return seen;
        }
        self.behavior = behavior::RANDOM;
        behavior::RANDOM
    }

    /// Starts a refresh of the context or its dynamic part when the interval has passed without feedback.
    fn refresh_if_due(&mut self, now_ms: u64, config: &CompressorConfig) {
        if self.has_feedback {
            return;
        }
        let due = |since: u32, every: u32, at_ms: u64, after: Duration| {
            (every != 0 && since >= every)
                || (now_ms != at_ms && !after.is_zero() && u128::from(now_ms - at_ms) >= after.as_millis())
        };
        if due(self.since_ir, config.refresh_ir, self.ir_at_ms, config.refresh_ir_after) {
            self.ir_left = self.ir_left.max(1);
        } else if due(self.since_dyn, config.refresh_ir_dyn, self.dyn_at_ms, config.refresh_ir_dyn_after) {
            self.dyn_left = self.dyn_left.max(1);
        }
    }

    /// Number of packets until the next refresh is due, and the time at which it is due.
    pub(super) fn quiet_for(&self, config: &CompressorConfig) -> (u32, u64) {
        if self.has_feedback {
            return (u32::MAX, u64::MAX);
        }
        let left = |since: u32, every: u32| if every == 0 { u32::MAX } else { every.saturating_sub(since) };
        let until = |at_ms: u64, after: Duration| match u64::try_from(after.as_millis()) {
            Ok(0) | Err(_) => u64::MAX,
            Ok(after_ms) => at_ms.saturating_add(after_ms),
        };
        let packets = left(self.since_ir, config.refresh_ir).min(left(self.since_dyn, config.refresh_ir_dyn));
        let time = until(self.ir_at_ms, config.refresh_ir_after)
            .min(until(self.dyn_at_ms, config.refresh_ir_dyn_after));
        (packets, time)
    }

    /// Chooses the smallest packet that decompresses correctly with each of the references the peer may hold.
    fn plan(&mut self, values: &mut Values, repeat: u8) -> Plan {
        let is_static = self.ir_left > 0;
        if is_static || self.dyn_left > 0 || values[Field::Rsf] > 3 {
            return Plan { format: None, is_static, bring: Some(u16::MAX), timestamps: [0; 2] };
        }
        let changed = self.history.changed(values.kept());
        let forms = self.table.timestamp_forms(values, &self.history);
        let list = changed & bit(Field::ListId) != 0 || forms.is_none();
        let bring = list.then(|| self.table.must_bring(repeat, forms.is_some()));
        values[Field::ListPresent] = u32::from(list);
        let format = self.smallest(changed, values);
        Plan { format: Some(format), is_static, bring, timestamps: forms.unwrap_or_default() }
    }

    /// Returns the smallest format that can represent the packet. Formats are sorted by length, so it is the first that
    /// fits, unless co_common is shorter.
    fn smallest(&self, changed: Mask, values: &mut Values) -> &'static Format {
        const CHANGEABLE: Mask = bit(Field::Seq)
            | bit(Field::Ack)
            | bit(Field::Window)
            | bit(Field::Ttl)
            | bit(Field::EcnUsed)
            | bit(Field::Behavior)
            | bit(Field::Df)
            | bit(Field::Stride)
            | bit(Field::UrgentPointer)
            | bit(Field::Dscp)
            // No other format than co_common carries the flags. After unusual flags, co_common is used until every
            // reference has the usual ones.
            | bit(Field::KeptFlags);
        let sequential = values[Field::Behavior] <= behavior::SWAPPED;
        let mut needs = changed & CHANGEABLE;
        for (field, usual) in [
            (Field::Rsf, 0),
            (Field::ListPresent, 0),
            (Field::Urg, 0),
            (Field::AckFlag, 1),
            (Field::TtlOuter, 0),
        ] {
            needs |= Mask::from(values[field] != usual) << field as u32;
        }
        let scaled_ack =
            values[Field::Stride] != 0 && changed & (bit(Field::Stride) | bit(Field::AckResidue)) == 0;
        let scaled_seq = values[Field::PayloadLen] != 0
            && changed & (bit(Field::PayloadLen) | bit(Field::SeqResidue)) == 0;
        let set = if sequential { &SEQ } else { &RND };
        let found = set.iter().find(|format| {
            needs & !format.carries == 0
                && (scaled_ack || !format.scaled_ack)
                && (scaled_seq || !format.scaled_seq)
                && format.slots.iter().all(|slot| self.history.fits_slot(slot, values[slot.field]))
        });
        match found {
            Some(format) if format.len <= COMMON.len => format,
            Some(format) if format.len <= COMMON.len + self.indicate(changed, sequential, values) => format,
            Some(_) => &COMMON,
            None => {
                self.indicate(changed, sequential, values);
                &COMMON
            }
        }
    }

    /// Sets the indicators of co_common. Returns the length of its optional fields in bytes.
    fn indicate(&self, changed: Mask, sequential: bool, values: &mut Values) -> usize {
        let mut bytes = 0;
        for (field, indicator) in [(Field::Seq, Field::SeqIndicator), (Field::Ack, Field::AckIndicator)] {
            let value = values[field];
            let (kind, len) = if changed & bit(field) == 0 {
                (0, 0)
            } else if self.history.fits(field, VARIABLE_LENGTH[0], value) {
                (1, 1)
            } else if self.history.fits(field, VARIABLE_LENGTH[1], value) {
                (2, 2)
            } else {
                (3, 4)
            };
            values[indicator] = kind;
            bytes += len;
        }
        for (field, indicator, len) in [
            (Field::Stride, Field::StrideIndicator, 2),
            (Field::Window, Field::WindowIndicator, 2),
            (Field::UrgentPointer, Field::UrgentIndicator, 2),
            (Field::Dscp, Field::DscpIndicator, 1),
            (Field::Ttl, Field::TtlIndicator, 1),
        ] {
            let present = changed & bit(field) != 0;
            values[indicator] = u32::from(present);
            bytes += if present { len } else { 0 };
        }
        if sequential {
            // After a change of behaviour, the two ends may interpret the old offsets differently.
            let offset = values[Field::IpIdOffset] as u16;
            let short = changed & bit(Field::Behavior) == 0
                && self
                    .history
                    .entries()
                    .iter()
                    .all(|entry| IP_ID_SHORT.fits16(entry[Field::IpIdOffset as usize] as u16, offset));
            values[Field::IpIdIndicator] = u32::from(!short);
            bytes += if short { 1 } else { 2 };
        }
        bytes
    }

    fn write_co(
        &mut self,
        format: &'static Format,
        plan: &Plan,
        chain: &mut Chain<'_>,
        values: &mut Values,
        cid: Cid,
        writer: &mut Writer<'_>,
    ) -> Result<(), Short> {
        let word = format.pack(values) << (64 - format.len * 8);
        cid.write_before(writer)?;
        writer.put_word(word, 1)?;
        cid.write_after(writer)?;
        writer.put_word(word << 8, format.len - 1)?;
        if format.kind == FormatKind::CoCommon {
            common_tail(writer, values, &[0; CONTEXT_FIELDS])?;
        }
        if let Some(bring) = plan.bring {
            self.table.write_list(bring, values, writer)?;
        }
        irregular_chain(writer, chain, values)?;
        self.table.write_irregular(plan.bring.unwrap_or(0), plan.timestamps, values, &self.history, writer)
    }

    fn write_ir(
        &mut self,
        is_static: bool,
        chain: &mut Chain<'_>,
        values: &mut Values,
        cid: Cid,
        writer: &mut Writer<'_>,
    ) -> Result<(), Short> {
        cid.write_before(writer)?;
        writer.put(&[if is_static { 0xfd } else { 0xf8 }])?;
        cid.write_after(writer)?;
        writer.put(&[PROFILE_TCP, 0])?;
        let crc_at = writer.len - 1;
        if is_static {
            write_static_chain(writer, chain)?;
        }
        dynamic_chain(writer, chain, values)?;
        self.table.write_list(u16::MAX, values, writer)?;
        let crc = CRC8.check(writer.written());
        writer.written()[crc_at] = crc;
        Ok(())
    }
}

const PROFILE_TCP: u8 = 6;
/// The largest step of a sequential IP-ID. Hosts that share one counter among flows produce larger steps.
const IP_ID_NEAR: u16 = 64;

/// The largest step that seq_1, seq_3, seq_5 and seq_8 can encode.
pub(super) const IP_ID_SMALL: u16 = 13;
/// Number of small steps that offset one jump.
const IP_ID_JUMP: u8 = 6;
/// Score at which the IP-ID counts as random.
const IP_ID_STRAINED: u8 = 3 * IP_ID_JUMP;

/// Why a packet was not compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Options,
    Short,
}

impl From<Short> for Fault {
    fn from(_: Short) -> Self {
        Self::Short
    }
}

impl From<Unlistable> for Fault {
    fn from(_: Unlistable) -> Self {
        Self::Options
    }
}
