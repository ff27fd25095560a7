//! Applications over a connection with streams: [`copy`] transfers trees of files, [`proxy`] forwards TCP connections,
//! [`trust`] stores keys, [`pair`] exchanges keys between two machines, [`node`] opens connections, [`running`] counts
//! activities. All except [`node`] and [`link`] work on any byte stream, so they can be tested without a transport.

pub mod copy;
pub mod link;
pub mod metrics;
pub mod node;
pub mod pair;
pub mod proxy;
pub mod running;
pub mod trust;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Default port of a server; unassigned.
pub const SERVE_PORT: u16 = 4433;
/// Default port for pairing; unassigned, too.
pub const PAIR_PORT: u16 = 4435;
/// Default port of a proxy's server; unassigned, too.
pub const PROXY_PORT: u16 = 4434;

/// Raises this process's limit of open files to the hard limit. If that fails, fewer files are synced together, and fewer connections
/// carried.
///
/// [`descriptors_max`] is the result.
pub fn open_many_files() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// This process's limit of open files; `None` without a limit.
pub fn descriptors_max() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// True if `error` says that this process or the system has no file descriptors left.
pub fn is_lack_of_descriptors(error: &std::io::Error) -> bool {
    let errno = error.raw_os_error();
    [Errno::MFILE, Errno::NFILE].iter().any(|lack| errno == Some(lack.raw_os_error()))
}
