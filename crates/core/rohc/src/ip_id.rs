//! The behaviour of a flow's IP-ID, and the offset sent instead of it.

/// ip_id_behavior_innermost (RFC 6846 section 8.2).
pub(crate) mod behavior {
    pub(crate) const SEQUENTIAL: u32 = 0;
    pub(crate) const SWAPPED: u32 = 1;
    pub(crate) const RANDOM: u32 = 2;
    pub(crate) const ZERO: u32 = 3;
}

/// The offset from the MSN that is sent instead of the IP-ID, after a byte swap if the behaviour requires it.
pub(crate) const fn ip_id_offset(ip_id: u16, msn: u32, behavior: u32) -> u32 {
    let id = if behavior == behavior::SWAPPED { ip_id.swap_bytes() } else { ip_id };
    id.wrapping_sub(msn as u16) as u32
}

/// The IP-ID for an offset: the inverse of [`ip_id_offset`].
pub(crate) const fn ip_id_from_offset(offset: u32, msn: u32, behavior: u32) -> u16 {
    let id = (offset as u16).wrapping_add(msn as u16);
    if behavior == behavior::SWAPPED { id.swap_bytes() } else { id }
}
