//! TCP from outside: packet scripts, whole transfers, hostile input.

mod acks;
mod handshake;
mod hostile;
mod pipe;
mod prr;
mod rack;
mod recovery;
mod script;
mod states;
mod transfer;
mod undo;
