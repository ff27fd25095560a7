//! Assigns contexts to flows: look-up, order of last use and eviction, each in constant time regardless of the number
//! of flows.

use alloc::vec::Vec;

/// Longest [`FlowKey`] in bytes: a fingerprint, two IPv6 addresses and two ports.
pub(super) const KEY_LEN: usize = 8 + 36;

/// No context.
const NONE: u16 = u16::MAX;

/// The bytes that identify a flow: both addresses and both ports, in packet order. If the flow is tunnelled, the
/// fingerprint of the tunnel precedes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlowKey {
    len: u8,
    bytes: [u8; KEY_LEN],
}

impl FlowKey {
    const EMPTY: Self = Self { len: 0, bytes: [0; KEY_LEN] };

    /// The key with these bytes, at least twelve and at most [`KEY_LEN`].
    fn new(bytes: &[u8]) -> Self {
        let mut key = Self { len: bytes.len() as u8, bytes: [0; KEY_LEN] };
        key.bytes[..bytes.len()].copy_from_slice(bytes);
        key
    }

    /// True if the key equals `key`, which must have at least twelve bytes.
    fn is(&self, key: &[u8]) -> bool {
        // Compare the first twelve bytes separately: this covers all of IPv4 with a comparison of fixed length.
        key.len() == usize::from(self.len)
            && key.first_chunk::<12>() == self.bytes.first_chunk::<12>()
            && (self.len == 12 || key[12..] == self.bytes[12..usize::from(self.len)])
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Both addresses, and the fingerprint before them.
    pub(super) fn addresses(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len).saturating_sub(4)]
    }

    /// Source and destination port.
    pub(super) fn ports(&self) -> [u16; 2] {
        let ports = self.as_bytes().last_chunk().copied().unwrap_or([0; 4]);
        [u16::from_be_bytes([ports[0], ports[1]]), u16::from_be_bytes([ports[2], ports[3]])]
    }
}

/// The state of a CID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// Not assigned to a flow.
    Free,
    /// Assigned to a flow, and evictable.
    Listed,
    /// Assigned to a flow until it is unpinned.
    Pinned,
}

#[derive(Clone, Debug)]
struct Entry {
    key: FlowKey,
    state: Use,
    /// Links in the list ordered by last use, or in the free list (`older` only).
    newer: u16,
    older: u16,
}

/// The flows of a channel by CID.
#[derive(Clone, Debug)]
pub(super) struct Flows {
    entries: Vec<Entry>,
    /// A hash table of CIDs with linear probing, at most half full.
    places: Vec<u16>,
    seed: u64,
    /// The largest CID.
    max: u16,
    newest: u16,
    oldest: u16,
    free: u16,
    /// The CID of the last packet, pinned or not.
    latest: u16,
}

impl Flows {
    /// Creates an empty table. `seed` keys the hash, so that a peer that chooses ports cannot cause collisions on
    /// purpose.
    pub(super) fn new(max: u16, seed: u64) -> Self {
        let (entries, places) = (Vec::new(), Vec::new());
        Self { entries, places, seed, max, newest: NONE, oldest: NONE, free: NONE, latest: NONE }
    }

    /// The CID of the last packet, if its flow has this key. Consecutive packets usually belong to the same flow.
    #[inline]
    pub(super) fn latest(&self, bytes: &[u8]) -> Option<u16> {
        let entry = self.entries.get(usize::from(self.latest))?;
        entry.key.is(bytes).then_some(self.latest)
    }

    /// The CID of the last packet, if it is still assigned.
    pub(super) const fn latest_cid(&self) -> Option<u16> {
        if self.latest == NONE { None } else { Some(self.latest) }
    }

    pub(super) fn key(&self, cid: u16) -> Option<&FlowKey> {
        self.entries.get(usize::from(cid)).filter(|entry| entry.state != Use::Free).map(|entry| &entry.key)
    }

    /// The CID of a flow.
    pub(super) fn find(&self, bytes: &[u8]) -> Option<u16> {
        let mut place = self.first_place(bytes)?;
        loop {
            let cid = self.places[place];
            if cid == NONE {
                return None;
            }
            if self.entries[usize::from(cid)].key.is(bytes) {
                return Some(cid);
            }
            place = (place + 1) & (self.places.len() - 1);
        }
    }

    /// Marks this flow as the most recently used.
    pub(super) fn touch(&mut self, cid: u16) {
        self.latest = cid;
        if self.newest != cid && self.entries[usize::from(cid)].state == Use::Listed {
            self.unlist(cid);
            self.list(cid);
        }
    }

    /// Assigns a CID to a new flow: a free one, a new one, or that of the least recently used flow. Returns `None` when
    /// all are pinned.
    pub(super) fn insert(&mut self, bytes: &[u8]) -> Option<u16> {
        let cid = if self.free != NONE {
            let cid = self.free;
            self.free = self.entries[usize::from(cid)].older;
            cid
        } else if self.entries.len() <= usize::from(self.max) {
            self.grow();
            self.entries.push(Entry { key: FlowKey::EMPTY, state: Use::Free, newer: NONE, older: NONE });
            (self.entries.len() - 1) as u16
        } else if self.oldest != NONE {
            let cid = self.oldest;
            self.unlist(cid);
            self.leave_place(cid);
            cid
        } else {
            return None;
        };
        let entry = &mut self.entries[usize::from(cid)];
        entry.key = FlowKey::new(bytes);
        entry.state = Use::Listed;
        self.list(cid);
        self.take_place(cid);
        self.latest = cid;
        Some(cid)
    }

    /// Frees a CID. Returns false if no flow has it.
    pub(super) fn remove(&mut self, cid: u16) -> bool {
        if self.key(cid).is_none() {
            return false;
        }
        if self.entries[usize::from(cid)].state == Use::Listed {
            self.unlist(cid);
        }
        self.leave_place(cid);
        if self.latest == cid {
            self.latest = NONE;
        }
        let entry = &mut self.entries[usize::from(cid)];
        entry.state = Use::Free;
        entry.key = FlowKey::EMPTY;
        entry.older = self.free;
        self.free = cid;
        true
    }

    /// Pins or unpins a CID. Returns false if no flow has it.
    pub(super) fn pin(&mut self, cid: u16, pinned: bool) -> bool {
        let Some(entry) = self.entries.get_mut(usize::from(cid)) else { return false };
        match (entry.state, pinned) {
            (Use::Free, _) => return false,
            (Use::Listed, true) => {
                entry.state = Use::Pinned;
                self.unlist(cid);
            }
            (Use::Pinned, false) => {
                entry.state = Use::Listed;
                self.list(cid);
            }
            _ => {}
        }
        true
    }

    /// Iterates over the unpinned CIDs, most recently used first.
    pub(super) fn by_use(&self) -> impl Iterator<Item = u16> + '_ {
        let mut next = self.newest;
        core::iter::from_fn(move || {
            let cid = next;
            next = self.entries.get(usize::from(cid))?.older;
            Some(cid)
        })
    }

    fn list(&mut self, cid: u16) {
        let newest = self.newest;
        let entry = &mut self.entries[usize::from(cid)];
        (entry.newer, entry.older) = (NONE, newest);
        match self.entries.get_mut(usize::from(newest)) {
            Some(entry) => entry.newer = cid,
            None => self.oldest = cid,
        }
        self.newest = cid;
    }

    fn unlist(&mut self, cid: u16) {
        let Entry { newer, older, .. } = self.entries[usize::from(cid)];
        match self.entries.get_mut(usize::from(newer)) {
            Some(entry) => entry.older = older,
            None => self.newest = older,
        }
        match self.entries.get_mut(usize::from(older)) {
            Some(entry) => entry.newer = newer,
            None => self.oldest = newer,
        }
    }

    /// Doubles the hash table before it becomes more than half full.
    fn grow(&mut self) {
        if (self.entries.len() + 1) * 2 <= self.places.len() {
            return;
        }
        let len = (self.places.len() * 2).max(16);
        self.places.clear();
        self.places.resize(len, NONE);
        for cid in 0..self.entries.len() {
            if self.entries[cid].state != Use::Free {
                self.take_place(cid as u16);
            }
        }
    }

    /// The place where the search for this key starts; `None` while there is no table.
    fn first_place(&self, bytes: &[u8]) -> Option<usize> {
        let mask = self.places.len().checked_sub(1)?;
        Some(hash(self.seed, bytes) as usize & mask)
    }

    fn take_place(&mut self, cid: u16) {
        let Some(mut place) = self.first_place(self.entries[usize::from(cid)].key.as_bytes()) else { return };
        while self.places[place] != NONE {
            place = (place + 1) & (self.places.len() - 1);
        }
        self.places[place] = cid;
    }

    /// Removes a CID from the hash table and closes the gap.
    fn leave_place(&mut self, cid: u16) {
        let mask = self.places.len() - 1;
        let Some(mut gap) = self.first_place(self.entries[usize::from(cid)].key.as_bytes()) else { return };
        while self.places[gap] != cid {
            gap = (gap + 1) & mask;
        }
        let mut place = gap;
        loop {
            place = (place + 1) & mask;
            let other = self.places[place];
            if other == NONE {
                break;
            }
            let first = self.first_place(self.entries[usize::from(other)].key.as_bytes()).unwrap_or(place);
            // The entry may move back into the gap, unless the gap is before the place where its search starts.
            if (place.wrapping_sub(first) & mask) >= (place.wrapping_sub(gap) & mask) {
                self.places[gap] = other;
                gap = place;
            }
        }
        self.places[gap] = NONE;
    }
}

/// A keyed hash, computed from folded 64-bit products.
fn hash(seed: u64, bytes: &[u8]) -> u64 {
    const KEY: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut state = seed ^ KEY;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let product =
            u128::from(u64::from_le_bytes(word) ^ state) * u128::from(KEY ^ seed.rotate_left(32) | 1);
        state = (product >> 64) as u64 ^ product as u64 ^ state.rotate_left(23);
    }
    state ^ state >> 29
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use alloc::vec::Vec;
    use std::collections::BTreeMap;

    fn bytes(flow: u32) -> [u8; 12] {
        let mut bytes = [7; 12];
        bytes[8..].copy_from_slice(&flow.to_be_bytes());
        bytes
    }

    /// Compares with a model that consists of a map and a list in order of last use.
    #[test]
    fn table_and_order_are_those_of_a_plain_model() {
        let mut flows = Flows::new(9, 3);
        let mut model: BTreeMap<u32, u16> = BTreeMap::new();
        let mut order: Vec<u32> = Vec::new();
        let mut pinned: Vec<u32> = Vec::new();
        let mut draw = 1u32;
        for step in 0..20_000u32 {
            draw = draw.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let flow = draw >> 24 & 31;
            let found = flows.find(&bytes(flow));
            assert_eq!(found, model.get(&flow).copied(), "step {step}");
            match (draw >> 16 & 15, found) {
                (0, Some(cid)) => {
                    assert!(flows.remove(cid));
                    model.remove(&flow);
                    order.retain(|other| *other != flow);
                    pinned.retain(|other| *other != flow);
                }
                (1, Some(cid)) if pinned.len() < 4 && !pinned.contains(&flow) => {
                    assert!(flows.pin(cid, true));
                    order.retain(|other| *other != flow);
                    pinned.push(flow);
                }
                (2, Some(cid)) if pinned.contains(&flow) => {
                    assert!(flows.pin(cid, false));
                    pinned.retain(|other| *other != flow);
                    order.push(flow);
                }
                (_, Some(cid)) => {
                    flows.touch(cid);
                    if !pinned.contains(&flow) {
                        order.retain(|other| *other != flow);
                        order.push(flow);
                    }
                }
                (_, None) => {
                    if model.len() == 10 {
                        let oldest = order.remove(0);
                        model.remove(&oldest);
                    }
                    let cid = flows.insert(&bytes(flow)).unwrap_or(NONE);
                    assert!(!model.values().any(|other| *other == cid), "step {step}: CID {cid} twice");
                    model.insert(flow, cid);
                    order.push(flow);
                }
            }
            let listed: Vec<u16> = order.iter().rev().map(|flow| model[flow]).collect();
            assert_eq!(flows.by_use().collect::<Vec<_>>(), listed, "step {step}");
        }
    }

    #[test]
    fn nothing_is_evicted_when_all_are_pinned() {
        let mut flows = Flows::new(1, 0);
        for flow in 0..2 {
            let cid = flows.insert(&bytes(flow)).unwrap_or(NONE);
            assert!(flows.pin(cid, true));
        }
        assert_eq!(flows.insert(&bytes(2)), None);
        assert!(flows.pin(0, false));
        assert_eq!(flows.insert(&bytes(2)), Some(0));
        assert!(!flows.remove(5) && !flows.pin(5, true));
    }
}
