//! Sans-IO transport protocols: TCP, TACK, datagrams, congestion control, and the protocols that change ACKs on Wi-Fi.
//!
//! No type owns a socket, a clock, a thread or a random generator. Time is an argument, packets are structs, and the
//! same code runs in a simulator and on a live machine. Every protocol implements [`Endpoint`](tacit_packet::Endpoint); most users
//! need [`transport::Connection`], which wraps them.

pub mod ack_hold;
pub mod fastack;
pub mod fwp;
pub mod hack;
pub mod transport;
