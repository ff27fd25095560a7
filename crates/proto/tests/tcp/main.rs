//! TCP from outside: packet scripts, whole transfers, hostile input.

mod pipe;
mod transfer;
