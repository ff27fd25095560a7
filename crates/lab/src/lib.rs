//! The lab.

pub mod theory;
