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

/// Configuration of a [`Compressor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompressorConfig {
    /// The numbering of contexts; both ends of a channel must agree. Also bounds their number.
    pub cids: CidSpace,
    /// Number of packets that repeat each change, 1 to [`MAX_REPEAT`] (the optimistic approach, RFC 6846 section 5.2.1.1).
    /// Fewer consecutive losses than this damage no other packet.
    pub repeat: u8,
    /// Packets of a flow after which all of its context is sent again, 0 for never. Stops with the first feedback.
    pub refresh_ir: u32,
    /// Packets of a flow after which the dynamic part of its context is sent again, 0 for never. Stops with the first
    /// feedback.
    pub refresh_ir_dyn: u32,
    /// Time after which all of a context is sent again, as with [`CompressorConfig::refresh_ir`]; zero for never. Needs
    /// [`Compressor::set_time`].
    pub refresh_ir_after: Duration,
    /// Time after which the dynamic part is sent again, as with [`CompressorConfig::refresh_ir_dyn`]; zero for never. Needs
    /// [`Compressor::set_time`].
    pub refresh_ir_dyn_after: Duration,
    /// Start a flow from the context of another between the same addresses (IR-CR, RFC 6846 section 7.2), after feedback has
    /// confirmed that one. The first packets become shorter, mostly for IPv6. The peer must support IR-CR.
    pub replicate: bool,
    /// Seed of the random start values of the MSN (RFC 6846 section 6.1.1), and the key of the flow table's hash.
    pub seed: u64,
}

impl Default for CompressorConfig {
    /// Sixteen small CIDs, every change sent twice. Without feedback, all of a context is sent again after 2048 packets or 10
    /// seconds, and its dynamic part after 256 packets or 2 seconds. Refreshes cost about 0.16 bytes per packet.
    ///
    /// Two is the least that survives a lost packet. Each repetition more costs up to half a byte per packet on
    /// flows whose window or SACK blocks change often and buys one more loss in a row; a link that loses bursts wants
    /// 4, one that loses nothing may take 1.
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
    /// As often as [`Compressor::new`] allowed.
    #[inline]
    pub(crate) const fn repetitions(&self) -> u8 {
        self.repeat
    }
}

/// A packet that was compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compressed {
    /// Bytes of the ROHC packet in the output, payload included.
    pub len: usize,
    /// How it is coded.
    pub format: FormatKind,
    /// Its context.
    pub cid: u16,
}

/// Why a packet cannot be compressed; it must travel otherwise. The peer's contexts are not affected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompressError {
    /// Not a header of profile 0x0006 as this crate supports it.
    Header(ParseError),
    /// Options that no compressed list can say: malformed, more than 15, or padding behind an EOL that is not zero
    /// or longer than 31 bytes (its length in bits has one byte).
    Options,
    /// The peer has refused this flow, or another one shortly before this one was new (REJECT, RFC 6846 section
    /// 8.3.2.1).
    Rejected,
    /// All CIDs are kept for other flows ([`Compressor::pin`]).
    NoContext,
    /// No room for the ROHC packet.
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

/// The place of the addresses and ports in a packet that has been parsed.
#[inline]
const fn key_range(ip: &Ip) -> core::ops::Range<usize> {
    match ip {
        Ip::V4 { .. } => 12..24,
        Ip::V6 { .. } => 8..44,
    }
}

/// The key of a flow whose packets have layers.
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
    /// Counts the flows that had this CID.
    generation: u32,
    /// The context that this one is replicated from, until it is established: CID and generation.
    base: Option<(u16, u32)>,
    counts: FlowCounts,
}

/// Counts of a context since its flow began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlowCounts {
    /// Packets compressed.
    pub packets: u64,
    /// Their bytes before, payload included.
    pub ip_bytes: u64,
    /// Their bytes after, payload included.
    pub rohc_bytes: u64,
    /// IR, IR-DYN and IR-CR packets among them.
    pub initialisations: u64,
    /// Positive feedback.
    pub acks: u64,
    /// Negative feedback, STATIC-NACKs included.
    pub nacks: u64,
}

/// Turns IP packets with TCP inside into ROHC packets of profile 0x0006.
#[derive(Clone, Debug)]
pub struct Compressor {
    config: CompressorConfig,
    /// By CID.
    slots: Vec<Slot>,
    flows: Flows,
    /// The time that [`Compressor::set_time`] set, in milliseconds.
    now_ms: u64,
    /// Packets of unknown flows that get no context yet, because the peer has refused one.
    no_new_flows: u32,
    /// Room for the layers of a packet, from the first that has some.
    layers: Option<Box<Layers>>,
}

/// Packets without a context after a REJECT, which asks not to add flows "for some time" (RFC 6846 section 8.3.2.1).
const REJECT_PACKETS: u32 = 1000;
/// Contexts looked at, from the one used last, for one to replicate from.
const BASE_CANDIDATES: usize = 32;

impl Compressor {
    /// A compressor without contexts. Memory for a context is taken with the first packet of its flow.
    pub fn new(config: CompressorConfig) -> Self {
        let flows = Flows::new(config.cids.max(), config.seed);
        // Clamped once, not for each packet.
        let config = CompressorConfig { repeat: config.repeat.clamp(1, MAX_REPEAT), ..config };
        Self { config, slots: Vec::new(), flows, now_ms: 0, no_new_flows: 0, layers: None }
    }

    /// Sets the current time, counted from any moment, for refreshes by time ([`CompressorConfig::refresh_ir_after`]). Without
    /// calls, refreshes are by packets only. A time before the last one counts as the last one.
    pub fn set_time(&mut self, now: Duration) {
        self.now_ms = self.now_ms.max(u64::try_from(now.as_millis()).unwrap_or(u64::MAX));
    }

    /// Compresses the whole IP packet `packet` into `out`.
    ///
    /// Bytes behind the length that the IP header states are dropped. A flow that is new, or whose context had to
    /// make room for another, starts with IR packets. At most 65 bytes longer than the packet itself.
    ///
    /// # Errors
    ///
    /// See [`CompressError`]: the packet must travel uncompressed, and compression may go on with the next.
    pub fn compress(&mut self, packet: &[u8], out: &mut [u8]) -> Result<Compressed, CompressError> {
        if let Some(cid) = self.flows.latest_cid()
            && let Some(made) = self.quick(cid, packet, out)
        {
            return Ok(made);
        }
        // By reference: the header is large, and moving it here would wait for the stores just made.
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
                if let Some(made) = self.quick(cid, packet, out) {
                    return Ok(made);
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
        let made = match layers.read(packet) {
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
        made
    }

    /// Compresses a packet in the context of its flow.
    #[inline]
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
        let made = slot.context.compress(&mut chain, options, packet, place, &self.config, &mut writer);
        let format = made.map_err(|fault| match fault {
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

    /// The quick path, for a context that is under way.
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

    /// The base context of this CID. One that no answer confirmed in time starts again with an IR (from CR to IR, RFC
    /// 4164): the peer may not know IR-CR, and its answers to them may have a form that is ignored.
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
        } else if slot.context.waits_in_vain() {
            slot.base = None;
            slot.context.restart(true, &self.config);
        }
        found.filter(|_| slot.base.is_some())
    }

    /// A context between the same addresses that the peer confirmed, but for the one of `cid`: the latest used.
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

    /// The context of a flow that is not the one of the last packet, made now if there is none.
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
            // Of another flow. Its MSN goes on (RFC 6846 section 6.1.1).
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

    /// The CID of the flow that `packet` belongs to, if it has a context. The packet may be any of either's.
    pub fn cid_of(&self, packet: &[u8]) -> Option<u16> {
        match Header::parse_apart(packet) {
            Ok((header, _)) => self.flows.find(&packet[key_range(&header.ip)]),
            Err(_) => {
                let (layers, header) = Layers::parse(packet).ok()?;
                self.flows.find(layered_key(&layers, &header, &mut [0; KEY_LEN]))
            }
        }
    }

    /// Sends all of a context again with the flow's next packets, as after a STATIC-NACK; false if no flow has this CID.
    pub fn reinitialise(&mut self, cid: u16) -> bool {
        let config = self.config;
        let Some(slot) = self.slot_mut(cid) else { return false };
        slot.base = None;
        slot.rejected = false;
        slot.context.restart(true, &config);
        true
    }

    /// Sends all of every context again, as after a change of the peer (RFC 5795 calls this a handover).
    pub fn reinitialise_all(&mut self) {
        for cid in 0..self.slots.len() {
            self.reinitialise(cid as u16);
        }
        self.no_new_flows = 0;
    }

    /// Forgets the flow with this CID, pinned or not; its CID goes to the next new flow. False if no flow has it.
    pub fn remove(&mut self, cid: u16) -> bool {
        self.flows.remove(cid)
    }

    /// Keeps this CID for its flow, however long it is silent, or no longer; false if no flow has it. When all CIDs are
    /// kept, packets of other flows are refused ([`CompressError::NoContext`]).
    pub fn pin(&mut self, cid: u16, pinned: bool) -> bool {
        self.flows.pin(cid, pinned)
    }

    /// Counts of the flow with this CID, if the context has one.
    pub fn counts(&self, cid: u16) -> Option<FlowCounts> {
        self.flows.key(cid)?;
        self.slots.get(usize::from(cid)).map(|slot| slot.counts)
    }

    /// Takes in feedback elements from the decompressor, one after the other, with their type bytes.
    ///
    /// Returns how many were malformed or had a wrong CRC and were ignored.
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
            // The static part may be of an earlier flow. Without a valid MSN a NACK means as much as a STATIC-NACK (RFC
            // 6846 section 8.3.2.2).
            (FeedbackKind::Nack, Some(msn)) => context.is_foreign(msn),
            _ => true,
        };
        if !context.is_answered(msn, is_static) {
            context.restart(is_static, &config);
            // From CR to IR (RFC 4164): the assumption about the base was wrong.
            slot.base = None;
        }
        if element.reject {
            self.no_new_flows = REJECT_PACKETS;
        }
    }
}

/// A start value that differs from one seed and context to the next (the finaliser of splitmix64).
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

    /// True when the next packet of the flow of the last one may take the quick path.
    pub(crate) fn has_quick_path(&self) -> bool {
        let slot = self.flows.latest_cid().and_then(|cid| self.slots.get(usize::from(cid)));
        slot.is_some_and(|slot| slot.context.quiet_packets > 0)
    }
}
