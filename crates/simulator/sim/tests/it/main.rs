//! Whole worlds: known results, guarantees, and results from the literature.
#![allow(clippy::unwrap_used, reason = "a test may")]

#[path = "../common/mod.rs"]
mod common;

mod applications;
mod edca;
mod fastack;
mod feedback;
mod filters;
mod fwp;
mod fwp_many;
mod fwp_rates;
mod hack_losses;
mod hack_matrix;
mod links;
mod mixed_acks;
mod mixed_standards;
mod multi_link;
mod noise;
mod oracle_off;
mod oracles;
mod queues;
mod rate_control;
mod reverse_direction;
mod rre;
mod small_queues;
mod stations;
