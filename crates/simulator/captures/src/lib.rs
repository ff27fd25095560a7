//! Analysis of captures: the cost of their acknowledgments, and the ROHC codec applied to them.

pub mod audit;
pub mod capture;
pub mod rohc;

pub use capture::CaptureError;
