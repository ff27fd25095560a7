//! Tests of TCP-RRE's core through its interface: states, golden vectors, and extreme inputs.

mod bounds;
mod event;
mod path;
mod states;
mod vectors;
