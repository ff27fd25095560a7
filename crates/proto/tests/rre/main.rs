//! TCP-RRE's core from outside: its states, its golden vectors, and numbers that no path would say.

mod bounds;
mod event;
mod path;
mod states;
mod vectors;
