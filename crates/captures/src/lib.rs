//! Captures people have recorded: the cost of their acknowledgments, and the ROHC codec on them.

pub mod audit;
pub mod capture;
pub mod rohc;

pub use capture::CaptureError;
