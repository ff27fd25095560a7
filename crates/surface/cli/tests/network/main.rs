//! Commands that communicate with other machines, as seen by their users, over loopback.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod chaos;
mod copy;
mod copy_cases;
mod fetch;
#[path = "../peers/mod.rs"]
mod peers;
mod proxy;
mod reconnect;
