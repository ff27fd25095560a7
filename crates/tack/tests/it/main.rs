//! Endpoints on loopback, alone and through a relay that does its worst.

mod chaos;
mod exchange;
mod memory;
