//! Runs of whole scenarios against bounds that hold for all of them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod ideal;
mod monotone;
mod short_queue;
