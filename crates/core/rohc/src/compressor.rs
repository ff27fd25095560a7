//! The compressor: RFC 6846 section 5.2.

mod context;
mod flows;
mod history;
mod options;
mod quick;
mod replicate;
mod stride;
mod tunnel;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use crate::chains::Chain;
use crate::cid::{Cid, CidSpace};
use crate::feedback::{self, Element, FeedbackKind};
use crate::formats::FormatKind;
use crate::header::{Header, Ip, ParseError};
use crate::layers::Layers;
use crate::wire::Writer;
use context::{Context, Fault};
use flows::{Flows, KEY_LEN};
pub(crate) use history::History;
pub use history::MAX_REPEAT;
use replicate::{Base, ContextChoice};
#[cfg(feature = "hack")]
pub(crate) use stride::gcd;

/// Configuration of a [`Compressor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompressorConfig {
    /// The CID space, which both ends of a channel must agree on. It also limits the number of contexts.
    pub cids: CidSpace,
    /// Number of consecutive packets that carry each change, 1 to [`MAX_REPEAT`] (the optimistic approach, RFC 6846
    /// section 5.2.1.1). If fewer consecutive packets than this are lost, all others can be decompressed.
    pub repeat: u8,
    /// Number of packets after which an IR repeats the whole context of a flow, 0 for never. No refreshes are sent once
    /// feedback has arrived.
    pub refresh_ir: u32,
    /// Number of packets after which an IR-DYN repeats the dynamic part of a context, 0 for never. No refreshes are
    /// sent once feedback has arrived.
    pub refresh_ir_dyn: u32,
    /// Time after which an IR repeats the whole context, as with [`CompressorConfig::refresh_ir`]; zero for never.
    /// Requires [`Compressor::set_time`].
    pub refresh_ir_after: Duration,
    /// Time after which an IR-DYN repeats the dynamic part, as with [`CompressorConfig::refresh_ir_dyn`]; zero for
    /// never. Requires [`Compressor::set_time`].
    pub refresh_ir_dyn_after: Duration,
    /// Replicate the context of a new flow from that of another flow between the same addresses (IR-CR, RFC 6846
    /// section 7.2), once feedback has confirmed the other one. This shortens the first packets, especially with IPv6.
    /// The peer must support IR-CR.
    pub replicate: bool,
    /// Seed for the initial MSNs, which RFC 6846 section 6.1.1 wants random, and for the hash of the flow table.
    pub seed: u64,
}

impl Default for CompressorConfig {
    /// Sixteen small CIDs; each change is sent in two packets. Without feedback, the whole context is refreshed after
    /// 2048 packets or 10 seconds, and its dynamic part after 256 packets or 2 seconds. Refreshes cost about 0.16 bytes
    /// per packet.
    ///
    /// Two repetitions are the minimum that survives the loss of a packet. Each further one tolerates one more
    /// consecutive loss and costs up to half a byte per packet, on flows whose window or SACK blocks change often. Use
    /// 4 on links with bursty loss; 1 is enough on a lossless link.
    fn default() -> Self {
        Self {
            cids: CidSpace::Small { max: 15 },
            repeat: 2,
            refresh_ir: 2048,
            refresh_ir_dyn: 256,
            refresh_ir_after: Duration::from_secs(10),
            refresh_ir_dyn_after: Duration::from_secs(2),
            replicate: false,
            seed: 0,
        }
    }
}

impl CompressorConfig {
    /// The number of repetitions, as clamped by [`Compressor::new`].
    pub(crate) const fn repetitions(&self) -> u8 {
        self.repeat
    }
}

/// The result of compressing one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compressed {
    /// Length of the ROHC packet in the output, including the payload, in bytes.
    pub len: usize,
    /// The packet format.
    pub format: FormatKind,
    /// The CID of its context.
    pub cid: u16,
}

/// Why a packet cannot be compressed. It has to be sent by other means; the peer's contexts are not affected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompressError {
    /// Not a header of profile 0x0006 as this crate supports it.
    Header(ParseError),
    /// The option area cannot be encoded as a compressed list. It is malformed, has more than 15 options, or its
    /// padding after the EOL option is not zero or is longer than 31 bytes (its length in bits must fit one byte).
    Options,
    /// The peer refused this flow, or refused another one shortly before this new one started (REJECT, RFC 6846 section
    /// 8.3.2.1).
    Rejected,
    /// All CIDs are pinned to other flows ([`Compressor::pin`]).
    NoContext,
    /// The output buffer is too short for the ROHC packet.
    OutputTooSmall,
}

impl fmt::Display for CompressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(error) => error.fmt(f),
            Self::Options => f.write_str("TCP options that no compressed list can say"),
            Self::Rejected => f.write_str("the decompressor refuses this flow"),
            Self::NoContext => f.write_str("every context is kept for another flow"),
            Self::OutputTooSmall => f.write_str("output too small"),
        }
    }
}

impl core::error::Error for CompressError {}

/// Byte range of the addresses and ports in a parsed packet.
const fn key_range(ip: &Ip) -> core::ops::Range<usize> {
    match ip {
        Ip::V4 { .. } => 12..24,
        Ip::V6 { .. } => 8..44,
    }
}

/// The flow key of a packet with layers.
fn layered_key<'a>(layers: &Layers, header: &Header, key: &'a mut [u8; KEY_LEN]) -> &'a [u8] {
    let mut writer = Writer::new(key);
    let ports = [header.source_port.to_be_bytes(), header.destination_port.to_be_bytes()];
    let written = writer.put(&layers.fingerprint()).and_then(|()| match &header.ip {
        Ip::V4 { source, destination, .. } => writer.put(source).and_then(|()| writer.put(destination)),
        Ip::V6 { source, destination, .. } => writer.put(source).and_then(|()| writer.put(destination)),
    });
    written.and_then(|()| writer.put(ports.as_flattened())).expect("KEY_LEN is the longest key");
    let len = writer.len;
    &key[..len]
}

#[derive(Clone, Debug)]
struct Slot {
    context: Context,
    rejected: bool,
    /// Incremented each time the CID is assigned to another flow.
    generation: u32,
    /// The base context that this one is replicated from, as CID and generation, until this one is established.
    base: Option<(u16, u32)>,
    counts: FlowCounts,
}

/// Counts of a context since its flow began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlowCounts {
    /// Packets compressed.
    pub packets: u64,
    /// Their length before compression, including payload.
    pub ip_bytes: u64,
    /// Their length after compression, including payload.
    pub rohc_bytes: u64,
    /// IR, IR-DYN and IR-CR packets among them.
    pub initialisations: u64,
    /// ACKs received.
    pub acks: u64,
    /// NACKs and STATIC-NACKs received.
    pub nacks: u64,
}

/// Compresses TCP/IP packets into ROHC packets of profile 0x0006.
#[derive(Clone, Debug)]
pub struct Compressor {
    config: CompressorConfig,
    /// Indexed by CID.
    slots: Vec<Slot>,
    flows: Flows,
    /// The time that [`Compressor::set_time`] set, in milliseconds.
    now_ms: u64,
    /// Number of packets during which new flows get no context, because the peer sent a REJECT.
    no_new_flows: u32,
    /// Scratch space for the layers of a packet, allocated with the first packet that has any.
    layers: Option<Box<Layers>>,
}

/// Number of packets during which new flows get no context after a REJECT, which asks not to add flows "for some time"
/// (RFC 6846 section 8.3.2.1).
const REJECT_PACKETS: u32 = 1000;
/// Maximum number of contexts searched for a base to replicate from, most recently used first.
const BASE_CANDIDATES: usize = 32;

impl Compressor {
    /// Creates a compressor without contexts. A context is allocated with the first packet of its flow.
    pub fn new(config: CompressorConfig) -> Self {
        let flows = Flows::new(config.cids.max(), config.seed);
        // Clamped here once, rather than for each packet.
        let config = CompressorConfig { repeat: config.repeat.clamp(1, MAX_REPEAT), ..config };
        Self { config, slots: Vec::new(), flows, now_ms: 0, no_new_flows: 0, layers: None }
    }

    /// Sets the current time, relative to any fixed origin. Refreshes by time need it
    /// ([`CompressorConfig::refresh_ir_after`]); if it is never called, only packet counts cause refreshes. The clock
    /// never goes back: an earlier time is ignored.
    pub fn set_time(&mut self, now: Duration) {
        self.now_ms = self.now_ms.max(u64::try_from(now.as_millis()).unwrap_or(u64::MAX));
    }

    /// Compresses the whole IP packet `packet` into `out`.
    ///
    /// Bytes beyond the length in the IP header are dropped. A flow starts with IR packets if it is new or its context
    /// was evicted. The output is at most 65 bytes longer than the packet.
    ///
    /// # Errors
    ///
    /// See [`CompressError`]. The packet must then be sent uncompressed; later packets can still be compressed.
    pub fn compress(&mut self, packet: &[u8], out: &mut [u8]) -> Result<Compressed, CompressError> {
        if let Some(cid) = self.flows.latest_cid()
            && let Some(compressed) = self.quick(cid, packet, out)
        {
            return Ok(compressed);
        }
        // Borrowed, because the header is large and moving it would stall on the stores that just filled it.
        let mut parsed = Header::parse_apart(packet);
        let (header, options) = match &mut parsed {
            Ok((header, options)) => (header, *options),
            Err(ParseError::NotPlainTcp) => return self.compress_layered(packet, out),
            Err(error) => return Err(CompressError::Header(*error)),
        };
        let packet = &packet[..header.len() + options.len() + usize::from(header.payload_len)];
        let key = &packet[key_range(&header.ip)];
        let cid = match self.flows.latest(key) {
            Some(cid) => cid,
            None => {
                let cid = self.find_other(key)?;
                if let Some(compressed) = self.quick(cid, packet, out) {
                    return Ok(compressed);
                }
                cid
            }
        };
        self.compress_in(cid, Chain { header, layers: None }, options, packet, out)
    }

    /// Compresses a packet with tunnels or extension headers.
    #[cold]
    fn compress_layered(&mut self, packet: &[u8], out: &mut [u8]) -> Result<Compressed, CompressError> {
        let mut layers = self.layers.take().unwrap_or_else(|| Box::new(Layers::EMPTY));
        let compressed = match layers.read(packet) {
            Ok((mut header, options, packet)) => {
                let mut key = [0; KEY_LEN];
                let key = layered_key(&layers, &header, &mut key);
                let cid = match self.flows.latest(key) {
                    Some(cid) => Ok(cid),
                    None => self.find_other(key),
                };
                cid.and_then(|cid| {
                    let chain = Chain { header: &mut header, layers: Some(&mut layers) };
                    self.compress_in(cid, chain, options, packet, out)
                })
            }
            Err(error) => Err(CompressError::Header(error)),
        };
        self.layers = Some(layers);
        compressed
    }

    /// Compresses a packet in the context of its flow.
    fn compress_in(
        &mut self,
        cid: u16,
        mut chain: Chain<'_>,
        options: &[u8],
        packet: &[u8],
        out: &mut [u8],
    ) -> Result<Compressed, CompressError> {
        let slot = &mut self.slots[usize::from(cid)];
        if slot.rejected {
            return Err(CompressError::Rejected);
        }
        let base = match slot.base {
            None => None,
            Some(_) => self.base_of(cid, chain.layers.as_deref()),
        };
        let slot = &mut self.slots[usize::from(cid)];
        let mut writer = Writer::new(out);
        let place =
            ContextChoice { cid: Cid { space: self.config.cids, number: cid }, base, now_ms: self.now_ms };
        let compressed = slot.context.compress(&mut chain, options, packet, place, &self.config, &mut writer);
        let format = compressed.map_err(|fault| match fault {
            Fault::Options => CompressError::Options,
            Fault::Short => CompressError::OutputTooSmall,
        })?;
        let counts = &mut slot.counts;
        counts.packets += 1;
        counts.ip_bytes += packet.len() as u64;
        counts.rohc_bytes += writer.len as u64;
        if matches!(format, FormatKind::Ir | FormatKind::IrDyn | FormatKind::IrCr) {
            counts.initialisations += 1;
            if format == FormatKind::Ir {
                slot.base = None;
            }
        }
        Ok(Compressed { len: writer.len, format, cid })
    }

    /// The fast path, for an established context.
    #[inline]
    fn quick(&mut self, cid: u16, packet: &[u8], out: &mut [u8]) -> Option<Compressed> {
        let slot = self.slots.get_mut(usize::from(cid))?;
        if slot.rejected || slot.base.is_some() {
            return None;
        }
        let name = Cid { space: self.config.cids, number: cid };
        let (len, format, taken) = slot.context.quick(packet, name, self.now_ms, &self.config, out)?;
        slot.counts.packets += 1;
        slot.counts.ip_bytes += taken as u64;
        slot.counts.rohc_bytes += len as u64;
        Some(Compressed { len, format, cid })
    }

    /// The base context of this CID. If no feedback has confirmed the replication in time, the flow starts again with
    /// an IR (transition from CR to IR, RFC 4164), because the peer may not support IR-CR, or may answer it with
    /// feedback that this compressor ignores.
    #[cold]
    fn base_of(&mut self, cid: u16, layers: Option<&Layers>) -> Option<Base> {
        let (base, generation) = self.slots[usize::from(cid)].base?;
        let found = self.slots.get(usize::from(base)).filter(|slot| slot.generation == generation);
        let found = found.filter(|slot| match (&slot.context.tunnel, layers) {
            (None, None) => true,
            (Some(tunnel), Some(layers)) => tunnel.replicates(layers),
            _ => false,
        });
        let found = found.filter(|slot| slot.context.is_confirmed());
        let found =
            found.and_then(|slot| Base::new(base, self.flows.key(base)?.ports(), &slot.context.history));
        let slot = &mut self.slots[usize::from(cid)];
        if slot.context.is_confirmed() {
            slot.base = None;
        } else if slot.context.lacks_confirmation() {
            slot.base = None;
            slot.context.restart(true, &self.config);
        }
        found.filter(|_| slot.base.is_some())
    }

    /// Finds the most recently used confirmed context between the same addresses, other than `cid`.
    fn find_base(&self, cid: u16) -> Option<(u16, u32)> {
        if !self.config.replicate {
            return None;
        }
        let addresses = self.flows.key(cid)?.addresses();
        let serves = |other: &u16| {
            *other != cid
                && self.slots.get(usize::from(*other)).is_some_and(|slot| slot.context.is_confirmed())
                && self.flows.key(*other).is_some_and(|key| key.addresses() == addresses)
        };
        let base = self.flows.by_use().take(BASE_CANDIDATES).find(serves)?;
        Some((base, self.slots[usize::from(base)].generation))
    }

    /// Finds or creates the context of a flow other than that of the last packet.
    fn find_other(&mut self, key: &[u8]) -> Result<u16, CompressError> {
        if let Some(cid) = self.flows.find(key) {
            self.flows.touch(cid);
            return Ok(cid);
        }
        if self.no_new_flows > 0 {
            self.no_new_flows -= 1;
            return Err(CompressError::Rejected);
        }
        let cid = self.flows.insert(key).ok_or(CompressError::NoContext)?;
        let base = self.find_base(cid);
        let counts = FlowCounts::default();
        match self.slots.get_mut(usize::from(cid)) {
            // The slot belonged to another flow. Its MSN continues (RFC 6846 section 6.1.1).
            Some(slot) => {
                let generation = slot.generation.wrapping_add(1);
                let context = Context::new(slot.context.msn(), &self.config);
                *slot = Slot { context, rejected: false, generation, base, counts };
            }
            None => {
                let context = Context::new(first_msn(self.config.seed, u64::from(cid)), &self.config);
                self.slots.push(Slot { context, rejected: false, generation: 0, base, counts });
            }
        }
        Ok(cid)
    }

    fn slot_mut(&mut self, cid: u16) -> Option<&mut Slot> {
        self.flows.key(cid)?;
        self.slots.get_mut(usize::from(cid))
    }

    /// The CID of the flow of `packet`, if it has a context. The packet may have layers ([`Layers`]) or none.
    pub fn cid_of(&self, packet: &[u8]) -> Option<u16> {
        match Header::parse_apart(packet) {
            Ok((header, _)) => self.flows.find(&packet[key_range(&header.ip)]),
            Err(_) => {
                let (layers, header) = Layers::parse(packet).ok()?;
                self.flows.find(layered_key(&layers, &header, &mut [0; KEY_LEN]))
            }
        }
    }

    /// Re-initialises a context: the next packets of its flow repeat all of it, as after a STATIC-NACK. Returns false
    /// if no flow has this CID.
    pub fn reinitialise(&mut self, cid: u16) -> bool {
        let config = self.config;
        let Some(slot) = self.slot_mut(cid) else { return false };
        slot.base = None;
        slot.rejected = false;
        slot.context.restart(true, &config);
        true
    }

    /// Re-initialises every context, as needed when the peer changes (a handover in RFC 5795).
    pub fn reinitialise_all(&mut self) {
        for cid in 0..self.slots.len() {
            self.reinitialise(cid as u16);
        }
        self.no_new_flows = 0;
    }

    /// Removes the flow with this CID, pinned or not, and frees the CID for the next new flow. Returns false if no flow
    /// has it.
    pub fn remove(&mut self, cid: u16) -> bool {
        self.flows.remove(cid)
    }

    /// Pins this CID to its flow, so that it is not evicted even when idle, or unpins it. Returns false if no flow has
    /// it. When all CIDs are pinned, packets of other flows are refused ([`CompressError::NoContext`]).
    pub fn pin(&mut self, cid: u16, pinned: bool) -> bool {
        self.flows.pin(cid, pinned)
    }

    /// Counts of the flow with this CID, if the context has one.
    pub fn counts(&self, cid: u16) -> Option<FlowCounts> {
        self.flows.key(cid)?;
        self.slots.get(usize::from(cid)).map(|slot| slot.counts)
    }

    /// Processes a sequence of feedback elements from the decompressor, each with its type byte.
    ///
    /// Returns how many were ignored because they were malformed or had a wrong CRC.
    pub fn feedback(&mut self, elements: &[u8]) -> usize {
        let cids = self.config.cids;
        feedback::parse(elements, cids, |element| self.apply(&element))
    }

    fn apply(&mut self, element: &Element) {
        let config = self.config;
        let Some(slot) = self.slot_mut(element.cid) else { return };
        slot.rejected |= element.reject;
        if element.kind == FeedbackKind::Ack {
            slot.counts.acks += 1;
        } else {
            slot.counts.nacks += 1;
        }
        let context = &mut slot.context;
        context.has_feedback = true;
        let msn = element.msn_before(context.msn());
        let is_static = match (element.kind, msn) {
            (FeedbackKind::Ack, _) => {
                if let Some(msn) = msn {
                    context.confirm(msn);
                }
                return;
            }
            // The peer's static part may belong to an earlier flow. A NACK without a valid MSN is treated as a
            // STATIC-NACK (RFC 6846 section 8.3.2.2).
            (FeedbackKind::Nack, Some(msn)) => context.is_foreign(msn),
            _ => true,
        };
        if !context.is_answered(msn, is_static) {
            context.restart(is_static, &config);
            // Transition from CR to IR (RFC 4164): the peer did not have the base context.
            slot.base = None;
        }
        if element.reject {
            self.no_new_flows = REJECT_PACKETS;
        }
    }
}

/// The initial MSN for a seed and context (the finaliser of splitmix64).
const fn first_msn(seed: u64, cid: u64) -> u16 {
    let mut word = seed.wrapping_add((cid + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (word ^ (word >> 31)) as u16
}

#[cfg(test)]
impl Compressor {
    /// Makes the next packet take the general path.
    pub(crate) fn without_quick_path(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.context.leave_quick());
    }

    /// True if the next packet of the most recent flow may take the fast path.
    pub(crate) fn has_quick_path(&self) -> bool {
        let slot = self.flows.latest_cid().and_then(|cid| self.slots.get(usize::from(cid)));
        slot.is_some_and(|slot| slot.context.quiet_packets > 0)
    }
}
