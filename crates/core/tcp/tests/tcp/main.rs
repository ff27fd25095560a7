//! Tests of TCP through its interface: packet scripts, whole transfers, hostile input.

mod ack_policies;
mod acks;
mod autotune;
mod clocks;
mod ecn;
mod external;
mod handshake;
mod hostile;
#[path = "../../../packet/tests/common/joined.rs"]
mod joined;
mod pipe;
mod prr;
mod rack;
mod rates;
mod recovery;
mod rre;
mod script;
mod states;
mod transfer;
mod undo;
mod weather;
