//! 802.11.

pub mod phy;
