//! Integration tests of libtacit.
#![allow(clippy::unwrap_used, reason = "a failure is a panic")]

mod header;
