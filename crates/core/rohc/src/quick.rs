//! Common part of the fast paths of both ends: the headers of bulk transfers as words with a mask.
//!
//! Nearly every header of a flow equals its predecessor, except in a few numbers. In that case, comparing words can
//! replace parsing, and copying the previous bytes can replace writing. The fast paths produce exactly the same bytes
//! and fields as the general paths (`equal.rs`). Packets that they do not support take the general path.

/// Length of an IPv6 header and a TCP header with NOP, NOP, timestamps, in bytes.
const MAX_LEN: usize = 72;

/// For one IP version: the offset of the TCP header, and the mask of the bits that must not change.
pub(crate) struct Layout {
    pub(crate) tcp: usize,
    /// Length of the whole header in bytes.
    pub(crate) len: usize,
    mask: [u64; MAX_LEN / 8],
}

/// Layouts for IPv4 and IPv6.
pub(crate) static LAYOUTS: [Layout; 2] = [layout(20), layout(40)];

/// Masks out the fields that may change: IP-ID and IPv4 checksum, acknowledgment number, PSH, window, TCP checksum,
/// timestamps.
const fn layout(tcp: usize) -> Layout {
    let len = tcp + 32;
    let mut bytes = [0; MAX_LEN];
    let mut at = 0;
    while at < len {
        let changes = (tcp == 20 && matches!(at, 4 | 5 | 10 | 11))
            || at >= tcp + 8 && at < tcp + 12
            || at >= tcp + 14 && at < tcp + 18
            || at >= tcp + 24;
        bytes[at] = if changes { 0 } else { 0xff };
        at += 1;
    }
    bytes[tcp + 13] = !crate::header::flags::PSH;
    let mut mask = [0; MAX_LEN / 8];
    let mut word = 0;
    while word < mask.len() {
        let mut chunk = [0; 8];
        let mut at = 0;
        while at < 8 {
            chunk[at] = bytes[word * 8 + at];
            at += 1;
        }
        mask[word] = u64::from_ne_bytes(chunk);
        word += 1;
    }
    Layout { tcp, len, mask }
}

/// The bytes of the last header of a flow.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    /// 1 for IPv4, 2 for IPv6, 0 if there is no header.
    version: u8,
    bytes: [u8; MAX_LEN],
    /// The sum of the IPv4 header's words, without IP-ID and checksum.
    sum: u32,
}

impl Template {
    pub(crate) const NONE: Self = Self { version: 0, bytes: [0; MAX_LEN], sum: 0 };

    /// Removes the header.
    pub(crate) fn forget(&mut self) {
        self.version = 0;
    }

    /// Stores a header without payload, if it has a supported layout.
    pub(crate) fn learn(&mut self, header: &[u8]) {
        let at = match header.first() {
            Some(0x45) => 0,
            Some(first) if first >> 4 == 6 => 1,
            _ => return self.forget(),
        };
        let Layout { tcp, len, .. } = LAYOUTS[at];
        if header.len() != len || header[tcp + 20..tcp + 24] != [1, 1, 8, 10] {
            return self.forget();
        }
        self.version = at as u8 + 1;
        self.bytes[..len].copy_from_slice(header);
        let words =
            header[..20].chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
        self.sum = words.enumerate().filter(|(at, _)| !matches!(at, 2 | 5)).map(|(_, word)| word).sum();
    }

    /// The layout, and whether it is IPv6; `None` if no header is stored.
    pub(crate) fn layout(&self) -> Option<(&'static Layout, bool)> {
        match self.version {
            1 => Some((&LAYOUTS[0], false)),
            2 => Some((&LAYOUTS[1], true)),
            _ => None,
        }
    }

    pub(crate) fn bytes(&self) -> &[u8; MAX_LEN] {
        &self.bytes
    }

    /// True if a packet equals the stored header, except in the fields that may change. `V6` must match the layout, and
    /// `LEN` must be its length.
    #[inline(always)]
    pub(crate) fn matches<const V6: bool, const LEN: usize>(&self, packet: &[u8; LEN]) -> bool {
        let layout = &LAYOUTS[usize::from(V6)];
        // Only timestamps follow the last whole word.
        let words = packet.as_chunks().0.iter().zip(self.bytes.as_chunks().0).zip(&layout.mask);
        let difference = words.fold(0, |difference, ((new, old), mask)| {
            difference | (u64::from_ne_bytes(*new) ^ u64::from_ne_bytes(*old)) & mask
        });
        difference == 0
    }

    /// True if `checksum` is what a sender computes for the IPv4 header with this IP-ID.
    pub(crate) fn has_ipv4_checksum(&self, id: u16, checksum: u16) -> bool {
        self.ipv4_checksum(id) == checksum
    }

    /// The checksum of the IPv4 header with this IP-ID.
    pub(crate) fn ipv4_checksum(&self, id: u16) -> u16 {
        let sum = self.sum + u32::from(id);
        let sum = (sum & 0xffff) + (sum >> 16);
        !((sum & 0xffff) + (sum >> 16)) as u16
    }
}
