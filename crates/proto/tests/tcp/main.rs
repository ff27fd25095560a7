//! TCP from outside: packet scripts, whole transfers, hostile input.

mod ack_policies;
mod acks;
mod autotune;
mod ecn;
mod handshake;
mod hostile;
mod pipe;
mod prr;
mod rack;
mod rates;
mod recovery;
mod script;
mod states;
mod transfer;
mod undo;
mod weather;
