//! What stands between a link and a host, and changes TCP's ACKs on the way: TCP/HACK ([`hack`]), FastACK ([`fastack`]), FWP ([`fwp`]), and
//! queues that thin ACKs ([`ack_hold`]).
//!
//! No type owns a socket, a clock, a thread or a random generator. Time is an argument, packets are structs, and the same code runs in a
//! simulator and on a live machine. None of it knows a transport, only the formats of packets.

pub mod ack_hold;
pub mod fastack;
pub mod fwp;
pub mod hack;
