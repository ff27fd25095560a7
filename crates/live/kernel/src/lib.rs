//! Programs for the Linux kernel: TCP-RRE as a congestion control, and the thinner of ACKs.
//!
//! The programs in `bpf/` are compiled in advance and embedded. Nothing is pinned, and no system setting is changed.
//! The congestion control, its selection of sockets and the thinner depend on files that this process has open, so they
//! disappear when it ends, for any reason.

mod bpf;
pub mod cgroup;
mod flows;
mod kernel_types;
mod loaded;
mod metrics;
mod namespace;
pub mod object;
mod ring;
pub mod run;
pub mod thin;

pub use flows::{Flow, to_text};
pub use loaded::{Control, check, check_status, read_flows};
pub use metrics::serve;
pub use namespace::cookie_of;

use std::io;
use std::time::Duration;

use tacit_hop::LiveError;
use tacit_hop::doctor::Check;

/// Settings of one instance of the congestion control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// If set, only sockets of the network namespace with this cookie use it.
    pub only_namespace_cookie: Option<u64>,
    /// The target buffer delay at rates up to 250 kb/s, at most 5 s; `None` for 80 ms.
    pub target: Option<Duration>,
}

/// The checks of `tacit doctor` for the congestion control, for listing its flows and for the thinner. They load the
/// programs and unload them again.
pub fn doctor() -> [Check; 3] {
    let check_of = |name, needed_for, checked: Result<String, LiveError>| {
        let works = checked.is_ok();
        let found = checked.unwrap_or_else(|error| error.to_string());
        Check { name, works, found, needed_for, required: false }
    };
    [
        check_of("rre", "tacit rre", check()),
        check_of("rre status", "tacit rre status", check_status()),
        check_of("thin", "tacit thin in the kernel", thin::check()),
    ]
}

/// The error that this machine does not support it, with the reason.
pub(crate) fn refused(what: &str, source: io::Error, advice: &'static str) -> LiveError {
    LiveError::Refused { what: what.to_owned(), source, advice }
}
