//! The compressor: RFC 6846 section 5.2.

mod context;
mod history;
mod options;
mod replicate;
mod stride;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;

use crate::cid::{Cid, CidSpace};
use crate::feedback::{self, Element, FeedbackKind};
use crate::formats::FormatKind;
use crate::header::{Header, Ip, ParseError};
use crate::wire::Writer;
use context::{Context, Fault};
pub(crate) use history::History;
pub use history::MAX_REPEAT;
use replicate::{Base, Place};

/// How a [`Compressor`] behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The numbering of contexts; both ends of a channel must agree. Also bounds their number.
    pub cids: CidSpace,
    /// In how many packets each change is said, 1 to [`MAX_REPEAT`] (the optimistic approach, RFC 6846 section
    /// 5.2.1.1). Fewer losses in a row than this harm nobody but the lost; more may.
    pub repeat: u8,
    /// Packets of a flow after which all of its context is sent again, 0 for never. Stops with the first feedback.
    pub refresh_ir: u32,
    /// Packets of a flow after which the dynamic part of its context is sent again, 0 for never.
    pub refresh_ir_dyn: u32,
    /// Start a flow from the context of another between the same addresses (IR-CR, RFC 6846 section 7.2), once feedback
    /// confirmed that one. Shortens the first packets, by more for IPv6; the peer must know IR-CR.
    pub replicate: bool,
    /// Where the random start values of the MSN come from (RFC 6846 section 6.1.1).
    pub seed: u64,
}

impl Default for Config {
    /// Sixteen small CIDs, every change twice, no refreshes.
    ///
    /// Two is the least that survives a lost packet. Each repetition more costs up to half an octet per packet on
    /// flows whose window or SACK blocks change often and buys one more loss in a row; a link that loses bursts wants
    /// 4, one that loses nothing may take 1.
    fn default() -> Self {
        Self {
            cids: CidSpace::Small { max: 15 },
            repeat: 2,
            refresh_ir: 0,
            refresh_ir_dyn: 0,
            replicate: false,
            seed: 0,
        }
    }
}

impl Config {
    #[inline]
    pub(crate) fn repetitions(&self) -> u8 {
        self.repeat.clamp(1, MAX_REPEAT)
    }
}

/// A packet that was compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compressed {
    /// Octets of the ROHC packet in the output, payload included.
    pub len: usize,
    /// How it is coded.
    pub format: FormatKind,
    /// Its context.
    pub cid: u16,
}

/// Why a packet cannot be compressed; it must travel otherwise. What the peer knows is not affected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompressError {
    /// Not a header of profile 0x0006 as this crate supports it.
    Header(ParseError),
    /// Options that no compressed list can say: malformed, more than 15, or padding that is not zero.
    Options,
    /// The peer has refused this flow (REJECT, RFC 6846 section 8.3.2.1).
    Rejected,
    /// No room for the ROHC packet.
    OutputTooSmall,
}

impl fmt::Display for CompressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(error) => error.fmt(f),
            Self::Options => f.write_str("TCP options that no compressed list can say"),
            Self::Rejected => f.write_str("the decompressor refuses this flow"),
            Self::OutputTooSmall => f.write_str("output too small"),
        }
    }
}

impl core::error::Error for CompressError {}

/// The octets that name a flow: both addresses and ports, as they follow each other in the packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FlowKey {
    len: usize,
    octets: [u8; 36],
}

impl FlowKey {
    /// True when these are the octets of `key`, which has at least twelve.
    #[inline]
    fn is(&self, key: &[u8]) -> bool {
        // The first twelve apart: that is all of IPv4, and a comparison of fixed length.
        key.len() == self.len
            && key.first_chunk::<12>() == self.octets.first_chunk::<12>()
            && (self.len == 12 || key[12..] == self.octets[12..self.len])
    }
}

impl FlowKey {
    fn addresses(&self) -> &[u8] {
        &self.octets[..self.len - 4]
    }

    fn ports(&self) -> [u16; 2] {
        let ports = &self.octets[self.len - 4..self.len];
        [u16::from_be_bytes([ports[0], ports[1]]), u16::from_be_bytes([ports[2], ports[3]])]
    }
}

/// The place of the addresses and ports in a packet that has been parsed.
#[inline]
const fn key_range(ip: &Ip) -> core::ops::Range<usize> {
    match ip {
        Ip::V4 { .. } => 12..24,
        Ip::V6 { .. } => 8..44,
    }
}

struct Slot {
    key: FlowKey,
    context: Context,
    last_used: u64,
    rejected: bool,
    /// CID of the context that this one is replicated from, until it is established.
    base: Option<u16>,
}

/// Turns IP packets with TCP inside into ROHC packets of profile 0x0006.
pub struct Compressor {
    config: Config,
    /// By CID.
    slots: Vec<Slot>,
    flows: BTreeMap<FlowKey, u16>,
    /// CID of the last packet: the next one is most often of the same flow.
    latest: usize,
    clock: u64,
}

impl Compressor {
    /// A compressor without contexts. Memory for a context is taken with the first packet of its flow.
    pub fn new(config: Config) -> Self {
        Self { config, slots: Vec::new(), flows: BTreeMap::new(), latest: 0, clock: 0 }
    }

    /// Compresses the whole IP packet `packet` into `out`.
    ///
    /// Octets behind the length that the IP header states are dropped. A flow that is new, or whose context had to
    /// make room for another, starts with IR packets. At most 65 octets longer than the packet itself.
    ///
    /// # Errors
    ///
    /// See [`CompressError`]: the packet must travel uncompressed, and compression may go on with the next.
    pub fn compress(&mut self, packet: &[u8], out: &mut [u8]) -> Result<Compressed, CompressError> {
        // By reference: the header is large, and moving it here would wait for what was just stored.
        let mut parsed = Header::parse_apart(packet);
        let (header, options) = match &mut parsed {
            Ok((header, options)) => (header, *options),
            Err(error) => return Err(CompressError::Header(*error)),
        };
        let packet = &packet[..header.len() + options.len() + usize::from(header.payload_len)];
        let cid = self.find(&packet[key_range(&header.ip)]);
        let base = self.base_of(cid);
        let slot = &mut self.slots[cid];
        if slot.rejected {
            return Err(CompressError::Rejected);
        }
        let mut writer = Writer::new(out);
        let cid = cid as u16;
        let place = Place { cid: Cid { space: self.config.cids, number: cid }, base };
        let made = slot.context.compress(header, options, packet, place, &self.config, &mut writer);
        let format = made.map_err(|fault| match fault {
            Fault::Options => CompressError::Options,
            Fault::Short => CompressError::OutputTooSmall,
        })?;
        if format != FormatKind::IrCr {
            slot.base = None;
        }
        Ok(Compressed { len: writer.len, format, cid })
    }

    /// The context of a flow, made now if there is none.
    #[inline]
    fn find(&mut self, key: &[u8]) -> usize {
        self.clock += 1;
        let same = self.slots.get(self.latest).is_some_and(|slot| slot.key.is(key));
        if !same {
            self.latest = self.find_other(key);
        }
        self.slots[self.latest].last_used = self.clock;
        self.latest
    }

    /// What the context of this CID is replicated from.
    #[inline]
    fn base_of(&self, cid: usize) -> Option<Base> {
        let base = self.slots[cid].base?;
        let slot = self.slots.get(usize::from(base))?;
        Base::new(base, slot.key.ports(), &slot.context)
    }

    /// A context between the same addresses that the peer confirmed, but for the one of `cid`: the latest used.
    fn find_base(&self, key: &FlowKey, cid: usize) -> Option<u16> {
        if !self.config.replicate {
            return None;
        }
        let serves = |(at, slot): &(usize, &Slot)| {
            *at != cid && slot.key.addresses() == key.addresses() && slot.context.is_confirmed()
        };
        let latest = self.slots.iter().enumerate().filter(serves).max_by_key(|(_, slot)| slot.last_used);
        latest.map(|(at, _)| at as u16)
    }

    fn find_other(&mut self, octets: &[u8]) -> usize {
        let mut key = FlowKey { len: octets.len(), octets: [0; 36] };
        key.octets[..octets.len()].copy_from_slice(octets);
        if let Some(&cid) = self.flows.get(&key) {
            return usize::from(cid);
        }
        let cid = self.slots.len();
        if cid <= usize::from(self.config.cids.max()) {
            let base = self.find_base(&key, cid);
            let msn = first_msn(self.config.seed, cid as u64);
            let context = Context::new(msn, &self.config);
            self.slots.push(Slot { key, context, last_used: 0, rejected: false, base });
            self.flows.insert(key, cid as u16);
            return cid;
        }
        // Full: the flow that was silent longest makes room. Its MSN goes on (RFC 6846 section 6.1.1).
        let oldest = self.slots.iter().enumerate().min_by_key(|(_, slot)| slot.last_used);
        let cid = oldest.map_or(0, |(cid, _)| cid);
        // Nothing is replicated from what is about to go.
        for slot in self.slots.iter_mut().filter(|slot| slot.base == Some(cid as u16)) {
            slot.base = None;
        }
        let base = self.find_base(&key, cid);
        let slot = &mut self.slots[cid];
        self.flows.remove(&slot.key);
        self.flows.insert(key, cid as u16);
        let context = Context::new(slot.context.msn(), &self.config);
        *slot = Slot { key, context, last_used: 0, rejected: false, base };
        cid
    }

    /// Takes in feedback elements from the decompressor, one after the other, with their type octets.
    ///
    /// Returns how many were malformed or had a wrong CRC and were ignored.
    pub fn feedback(&mut self, elements: &[u8]) -> usize {
        let cids = self.config.cids;
        feedback::parse(elements, cids, |element| self.apply(&element))
    }

    fn apply(&mut self, element: &Element) {
        let Some(slot) = self.slots.get_mut(usize::from(element.cid)) else { return };
        slot.rejected |= element.reject;
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
            // The static part may be of an earlier flow. Without a valid MSN a NACK means as much as a STATIC-NACK (RFC 6846 section 8.3.2.2).
            (FeedbackKind::Nack, Some(msn)) => context.is_foreign(msn),
            _ => true,
        };
        if !context.is_answered(msn, is_static) {
            context.restart(is_static, &self.config);
            // From CR to IR (RFC 4164): the base was not what it was taken for.
            slot.base = None;
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
