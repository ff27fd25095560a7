//! Robust header compression for TCP/IP: RFC 6846 (profile 0x0006) in the framework of RFC 5795.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod crc;
pub mod header;
pub mod lsb;
