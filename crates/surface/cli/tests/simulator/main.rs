//! Commands of the simulator and of captures, as seen by their users.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod cli;
mod explore;
mod input;
mod rohc;
mod tools;
mod wireshark;
