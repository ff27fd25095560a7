//! TCP-RRE as a congestion control of the Linux kernel.
//!
//! The programs in `bpf/` are compiled beforehand and embedded. Nothing is pinned and no setting of the system is
//! changed: the control and its choice of sockets hang on files that this process has open, so they are gone when it ends,
//! however it ends.

pub mod cgroup;
mod flows;
#[cfg(feature = "load")]
mod loaded;
#[cfg(not(feature = "load"))]
#[path = "unloadable.rs"]
mod loaded;
mod metrics;
mod namespace;
pub mod run;

pub use flows::{Flow, to_text};
pub use loaded::{Control, check, check_status, read_flows};
pub use metrics::serve;
pub use namespace::cookie_of;

use std::io;
use std::time::Duration;

use tacit_live::LiveError;
use tacit_live::doctor::Check;

/// Settings of one control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Only sockets of the network namespace with this cookie use it; `None` for those of any.
    pub only_namespace_cookie: Option<u64>,
    /// The buffer delay to keep to at 250 kb/s and below, 5 s at most; `None` for 80 ms.
    pub target: Option<Duration>,
}

/// Results of `tacit doctor` on the control, and on the list of its flows. Loads the programs to find out, and drops them.
pub fn doctor() -> [Check; 2] {
    let said = |name, needed_for, checked: Result<String, LiveError>| {
        let works = checked.is_ok();
        let found = checked.unwrap_or_else(|error| error.to_string());
        Check { name, works, found, needed_for, required: false }
    };
    [said("rre", "tacit rre", check()), said("rre status", "tacit rre status", check_status())]
}

/// This machine cannot, and why.
pub(crate) fn refused(what: &str, source: io::Error, advice: &'static str) -> LiveError {
    LiveError::Refused { what: what.to_owned(), source, advice }
}
