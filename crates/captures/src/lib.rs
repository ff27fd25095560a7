//! Captures people have recorded: what their acknowledgments cost, and the ROHC codec on them.

pub mod audit;
pub mod capture;
pub mod rohc;

pub use capture::CaptureError;
