//! Connecting to what the list allows.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinSet;
use tokio::time::{timeout, timeout_at};

use super::Answer;
use super::allow::AllowList;
use super::target::{Host, Target};

/// Between the starts of two attempts (RFC 8305, §5: 250 ms is recommended).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 8;

/// Connects to `target`, within `patience`. Names are resolved once, and what they resolve to is judged and dialled.
///
/// # Errors
/// What the other end is told.
pub async fn dial(allowed: &AllowList, target: &Target, patience: Duration) -> Result<TcpStream, Answer> {
    if !allowed.may_allow(target) {
        return Err(Answer::NotAllowed);
    }
    let work = async {
        let addresses: Vec<IpAddr> = match &target.host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => {
                let found =
                    lookup_host((name.as_str(), target.port)).await.map_err(|_| Answer::Unreachable)?;
                found.map(|address| address.ip()).collect()
            }
        };
        if addresses.is_empty() {
            return Err(Answer::Unreachable);
        }
        let may: Vec<_> = addresses.into_iter().filter(|address| allowed.allows(target, *address)).collect();
        if may.is_empty() {
            return Err(Answer::NotAllowed);
        }
        race(interleaved(&may), target.port).await
    };
    timeout(patience, work).await.unwrap_or(Err(Answer::Unreachable))
}

/// Families take turns, the first address's first (RFC 8305, §4).
fn interleaved(addresses: &[IpAddr]) -> Vec<IpAddr> {
    let is_first =
        |address: &&IpAddr| addresses.first().is_some_and(|one| one.is_ipv4() == address.is_ipv4());
    let (first, second): (Vec<_>, Vec<_>) = addresses.iter().partition(is_first);
    let turns = first.len().max(second.len());
    let both = (0..turns).flat_map(|turn| [first.get(turn), second.get(turn)]);
    both.flatten().copied().take(ADDRESSES_MAX).copied().collect()
}

/// The first connection that stands; an attempt starts when the one before fails or is slow.
async fn race(addresses: Vec<IpAddr>, port: u16) -> Result<TcpStream, Answer> {
    let mut attempts = JoinSet::new();
    let mut left = addresses.into_iter();
    let mut answer = Answer::Unreachable;
    loop {
        let next = left.next();
        let is_last = next.is_none();
        if let Some(address) = next {
            attempts.spawn(TcpStream::connect(SocketAddr::new(address, port)));
        } else if attempts.is_empty() {
            return Err(answer);
        }
        let until = tokio::time::Instant::now() + ATTEMPT_DELAY;
        let joined = if is_last {
            Ok(attempts.join_next().await)
        } else {
            timeout_at(until, attempts.join_next()).await
        };
        match joined {
            Ok(Some(Ok(Ok(stream)))) => return Ok(stream),
            Ok(Some(Ok(Err(error)))) if error.kind() == io::ErrorKind::ConnectionRefused => {
                answer = Answer::Refused;
            }
            _ => (),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns() {
        let of = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<IpAddr>>();
        let mixed = of(&["::1", "::2", "1.0.0.1", "::3", "1.0.0.2"]);
        assert_eq!(interleaved(&mixed), of(&["::1", "1.0.0.1", "::2", "1.0.0.2", "::3"]));
        assert!(interleaved(&[]).is_empty());
    }
}
