//! Whether datagrams leave by a radio. A packet that a Wi-Fi station's own queue drops
//! does not slow its sender down until a round trip later, as a loss in the network does. So senders leave little in that
//! queue, and send in aggregates.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use nix::ifaddrs::getifaddrs;
use tacit_packet::units::{Duration, Instant};
use tacit_tack_proto::OwnQueue;

use crate::happy_eyeballs::source_for;

/// Bytes that the system is asked to hold for a socket whose datagrams leave by a radio: those of an A-MPDU of 802.11n. Linux holds
/// twice as many, headers of its own included, and says that there is room again once half of that is gone: an A-MPDU is on the air and
/// the next one lies behind it.
pub(crate) const SEND_BUFFER: usize = 65_535;

/// Full-sized packets of an A-MPDU of 802.11n, which is all that a program can know of it.
const AGGREGATE: u32 = 42;

/// How often the way is looked up again: a host moves from cable to Wi-Fi. Ours.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What a connection to `remote` leaves to the queue of its host, if a radio follows.
pub(crate) fn own_queue(remote: SocketAddr) -> Option<OwnQueue> {
    leads_to(remote).then(|| OwnQueue::before(AGGREGATE, None))
}

/// True where datagrams to `remote` leave by a radio, as far as the system says.
fn leads_to(remote: SocketAddr) -> bool {
    source_for(remote).is_ok_and(|source| has_radio(source, Path::new("/sys/class/net")))
}

/// True where an interface with this address is a radio's, by its directory in `interfaces` (Linux: cfg80211 links each to its PHY).
fn has_radio(address: IpAddr, interfaces: &Path) -> bool {
    let Ok(all) = getifaddrs() else { return false };
    all.filter(|interface| {
        let storage = interface.address.as_ref();
        let v4 = storage.and_then(|storage| storage.as_sockaddr_in()).map(|v4| IpAddr::from(v4.ip()));
        let v6 = storage.and_then(|storage| storage.as_sockaddr_in6()).map(|v6| IpAddr::from(v6.ip()));
        v4.or(v6) == Some(address)
    })
    .any(|interface| interfaces.join(interface.interface_name).join("phy80211").exists())
}

/// Looks up, from time to time, whether the datagrams of a socket leave by a radio.
#[derive(Default)]
pub(crate) struct Lookout {
    next_at: Instant,
    own_queue: Option<OwnQueue>,
}

impl Lookout {
    /// Something is sent to `remote` at `now`: its [`own_queue`], where that is not as before.
    pub fn on_sent(&mut self, now: Instant, remote: SocketAddr) -> Option<Option<OwnQueue>> {
        if now < self.next_at {
            return None;
        }
        self.next_at = now + LOOK_AGAIN;
        let before = std::mem::replace(&mut self.own_queue, own_queue(remote));
        (self.own_queue != before).then_some(self.own_queue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn a_radio_is_an_interface_with_a_phy() {
        let interfaces = tempfile::tempdir().unwrap();
        let loopback = IpAddr::from(Ipv4Addr::LOCALHOST);
        let names = getifaddrs().unwrap().filter(|interface| {
            let v4 = interface.address.as_ref().and_then(|storage| storage.as_sockaddr_in());
            v4.is_some_and(|v4| v4.ip() == Ipv4Addr::LOCALHOST)
        });
        let name = names.map(|interface| interface.interface_name).next().unwrap();
        std::fs::create_dir(interfaces.path().join(&name)).unwrap();
        assert!(!has_radio(loopback, interfaces.path()));
        std::fs::create_dir(interfaces.path().join(&name).join("phy80211")).unwrap();
        assert!(has_radio(loopback, interfaces.path()));
        assert!(!has_radio(IpAddr::from([192, 0, 2, 1]), interfaces.path()), "no interface has that address");
    }

    #[test]
    fn datagrams_to_this_host_leave_by_no_radio() {
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
        assert_eq!(source_for(here).unwrap(), IpAddr::from(Ipv4Addr::LOCALHOST));
        assert_eq!(own_queue(here), None);
        let mut lookout = Lookout::default();
        assert_eq!(lookout.on_sent(Instant::ZERO, here), None);
    }
}
