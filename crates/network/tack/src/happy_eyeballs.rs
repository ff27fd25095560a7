//! Happy Eyeballs (RFC 8305): connects to the first of several addresses that answers, without waiting long for one
//! that does not.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::sleep;

/// Delay before the next attempt starts in parallel (RFC 8305 section 5: Connection Attempt Delay).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Most addresses of one name that are tried. Ours: the owner of a name may list any number.
const ADDRESSES_MAX: usize = 8;

/// The order in which addresses are tried: families alternate, starting with that of the first address (RFC 8305
/// section 4, with a First Address Family Count of 1), without duplicates. The resolver's order within a family is
/// kept.
fn in_turns(addresses: impl IntoIterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let mut families: [VecDeque<SocketAddr>; 2] = Default::default();
    let mut first = None;
    for address in addresses {
        let is_like_first = *first.get_or_insert(address.is_ipv6()) == address.is_ipv6();
        let family = &mut families[usize::from(!is_like_first)];
        if !family.contains(&address) {
            family.push_back(address);
        }
    }
    let [mut likes, mut others] = families;
    let mut ordered = Vec::with_capacity(likes.len() + others.len());
    while !likes.is_empty() || !others.is_empty() {
        ordered.extend(likes.pop_front());
        ordered.extend(others.pop_front());
    }
    ordered.truncate(ADDRESSES_MAX);
    ordered
}

/// The local address for a socket on any port that reaches `remote`: the unspecified address of its family.
pub fn local_for(remote: SocketAddr) -> SocketAddr {
    match remote {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

/// The address from which datagrams to `remote` leave; none is sent to learn it.
///
/// # Errors
/// If the system has no route to `remote`.
pub fn source_for(remote: SocketAddr) -> io::Result<IpAddr> {
    let socket = UdpSocket::bind(local_for(remote))?;
    socket.connect(remote)?;
    Ok(socket.local_addr()?.ip())
}

/// Races `attempt`s at `addresses` and returns the first success; the others are dropped. Each attempt starts 250 ms after the
/// previous one, or as soon as that has failed. At most eight addresses are tried.
///
/// # Errors
/// The errors of all attempts, in the order of failure; empty if there are no addresses.
///
/// # Panics
/// Outside a tokio runtime with time.
pub async fn race<T, E, F: Future<Output = Result<T, E>>>(
    addresses: impl IntoIterator<Item = SocketAddr>,
    mut attempt: impl FnMut(SocketAddr) -> F,
) -> Result<T, Vec<E>> {
    let mut waiting = in_turns(addresses).into_iter();
    let mut running: Vec<Pin<Box<F>>> = Vec::new();
    let mut failures = Vec::new();
    loop {
        running.extend(waiting.next().map(|address| Box::pin(attempt(address))));
        if running.is_empty() {
            return Err(failures);
        }
        let is_last = waiting.as_slice().is_empty();
        tokio::select! {
            biased;
            (place, done) = first_done(&mut running) => {
                drop(running.swap_remove(place));
                match done {
                    Ok(reached) => return Ok(reached),
                    Err(error) => failures.push(error),
                }
            }
            () = sleep(ATTEMPT_DELAY), if !is_last => {}
        }
    }
}

/// Waits for the first of `running` to complete, and returns its index and its result.
async fn first_done<F: Future>(running: &mut [Pin<Box<F>>]) -> (usize, F::Output) {
    poll_fn(|context| {
        for (place, future) in running.iter_mut().enumerate() {
            if let Poll::Ready(done) = future.as_mut().poll(context) {
                return Poll::Ready((place, done));
            }
        }
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::future::pending;
    use tokio::time::Instant;

    fn v4(host: u8) -> SocketAddr {
        ([192, 0, 2, host], 1).into()
    }

    fn v6(host: u16) -> SocketAddr {
        ([0x2001, 0xdb8, 0, 0, 0, 0, 0, host], 1).into()
    }

    #[test]
    fn families_take_turns_and_no_address_comes_twice() {
        assert_eq!(in_turns([v6(1), v6(2), v6(1), v6(3), v4(1), v4(2)]), [v6(1), v4(1), v6(2), v4(2), v6(3)]);
        assert_eq!(in_turns([v4(1), v4(2), v6(1)]), [v4(1), v6(1), v4(2)]);
        assert_eq!(in_turns([]), []);
        let many = (0..100).map(v6).chain([v4(1)]);
        assert_eq!(in_turns(many), [v6(0), v4(1), v6(1), v6(2), v6(3), v6(4), v6(5), v6(6)]);
    }

    /// Attempts with their times in ms, and the outcome. The last digit of an address sets its behaviour: 1 answers
    /// after 100 ms, 2 never answers, 3 fails at once.
    async fn raced(addresses: &[SocketAddr]) -> (Vec<(SocketAddr, u128)>, Result<SocketAddr, usize>) {
        let began = Instant::now();
        let tried = RefCell::new(Vec::new());
        let reached = race(addresses.iter().copied(), async |address: SocketAddr| {
            tried.borrow_mut().push((address, began.elapsed().as_millis()));
            let SocketAddr::V4(v4) = address else { pending().await };
            match v4.ip().octets()[3] % 10 {
                1 => {
                    sleep(Duration::from_millis(100)).await;
                    Ok(address)
                }
                3 => Err(()),
                _ => pending().await,
            }
        })
        .await;
        (tried.into_inner(), reached.map_err(|failures| failures.len()))
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_does_not_answer_costs_a_quarter_of_a_second() {
        let (tried, reached) = raced(&[v6(2), v4(1), v4(2)]).await;
        assert_eq!(tried, [(v6(2), 0), (v4(1), 250)]);
        assert_eq!(reached, Ok(v4(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_answers_in_time_is_the_only_one_tried() {
        let (tried, reached) = raced(&[v4(1), v6(2)]).await;
        assert_eq!((tried, reached), (vec![(v4(1), 0)], Ok(v4(1))));
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_address_is_tried_as_soon_as_one_fails() {
        let (tried, reached) = raced(&[v4(3), v4(13), v4(1)]).await;
        assert_eq!((tried, reached), (vec![(v4(3), 0), (v4(13), 0), (v4(1), 0)], Ok(v4(1))));
        assert_eq!(raced(&[v4(3), v4(13)]).await.1, Err(2));
        assert_eq!(raced(&[]).await.1, Err(0));
    }
}
