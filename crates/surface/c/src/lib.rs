//! `libtacit` for C: TCP/HACK's codec, ROHC-TCP and TACK's ACK law. `include/tacit.h` is written from this code by a
//! test; `docs/use/c.md` is the page for users.
//!
//! Every function checks that its pointers are there, its lengths possible and its handle of the right kind and not in
//! use. That a pointer has the bytes that its length promises, no function can check. A panic would be a bug: it ends the
//! process (`extern "C"` does not unwind), or calls `tacit_panic` where there is none.

#![cfg_attr(not(feature = "std"), no_std)]
#![allow(non_camel_case_types, reason = "the names are C's")]

mod ack;
#[cfg(not(feature = "std"))]
mod bare;
mod error;
mod hack;
mod handle;
mod memory;
#[cfg(feature = "std")]
mod rohc;

pub use ack::*;
pub use error::*;
pub use hack::*;
#[cfg(feature = "std")]
pub use rohc::*;
