//! Stored results: judged and made again.

mod judge;
mod replay;
