//! The lab.

pub mod audit;
pub mod theory;
