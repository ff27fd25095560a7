//! Connects to targets that the list allows.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use tacit_tack::happy_eyeballs::race;

use super::ReplyCode;
use super::allow::AllowList;
use super::target::{Host, Target};

/// Connects to `target` within `patience`. Names are resolved once, and exactly the resulting addresses are checked and
/// dialled.
///
/// # Errors
/// The reply code for the client end.
pub async fn dial(allowed: &AllowList, target: &Target, patience: Duration) -> Result<TcpStream, ReplyCode> {
    if !allowed.may_allow(target) {
        return Err(ReplyCode::NotAllowed);
    }
    let work = async {
        let addresses: Vec<IpAddr> = match &target.host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => {
                let found =
                    lookup_host((name.as_str(), target.port)).await.map_err(|_| ReplyCode::Unreachable)?;
                found.map(|address| address.ip()).collect()
            }
        };
        if addresses.is_empty() {
            return Err(ReplyCode::Unreachable);
        }
        let may: Vec<_> = addresses.into_iter().filter(|address| allowed.allows(target, *address)).collect();
        if may.is_empty() {
            return Err(ReplyCode::NotAllowed);
        }
        let remotes = may.into_iter().map(|address| SocketAddr::new(address, target.port));
        race(remotes, TcpStream::connect).await.map_err(|failures| most_telling(&failures))
    };
    timeout(patience, work).await.unwrap_or(Err(ReplyCode::Unreachable))
}

/// The reply code for several failures: one refused connection is more informative than missing answers. A server without
/// descriptors did not try.
fn most_telling(failures: &[io::Error]) -> ReplyCode {
    let is_refusal = |failure: &io::Error| failure.kind() == io::ErrorKind::ConnectionRefused;
    if failures.iter().any(is_refusal) {
        ReplyCode::Refused
    } else if failures.iter().any(crate::is_lack_of_descriptors) {
        ReplyCode::NoDescriptors
    } else {
        ReplyCode::Unreachable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_more_than_silence() {
        let failure = |kind: io::ErrorKind| io::Error::from(kind);
        let (silent, refused) = (io::ErrorKind::TimedOut, io::ErrorKind::ConnectionRefused);
        assert_eq!(most_telling(&[failure(silent), failure(refused)]), ReplyCode::Refused);
        assert_eq!(most_telling(&[failure(silent)]), ReplyCode::Unreachable);
        let none_left = || io::Error::from(rustix::io::Errno::MFILE);
        assert_eq!(most_telling(&[failure(silent), none_left()]), ReplyCode::NoDescriptors);
        assert_eq!(most_telling(&[none_left(), failure(refused)]), ReplyCode::Refused);
    }
}
