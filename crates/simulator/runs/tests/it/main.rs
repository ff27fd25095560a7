//! Runs of whole scenarios, checked against general bounds.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod ideal;
mod l4s;
mod monotone;
mod multi_link;
mod short_queue;
