//! Pure TCP ACKs on the link that is idle for most of the time.

use std::cmp::Reverse;

use tacit_packet::units::{Duration, Instant};

use super::link::Link;
use crate::wifi::air::StationId;
use crate::wifi::config::MultiLinkConfig;
use crate::wifi::link_set::{LinkId, LinkSet, MOST_LINKS};
use crate::wifi::multi_link::AckLinks;

/// Chooses the link for pure TCP ACKs of each client and to it, once in [`AckLinks::INTERVAL`].
#[derive(Clone, Debug)]
pub(super) struct IdlestLink {
    /// How long each link was busy until the latest choice.
    busy: [Duration; MOST_LINKS],
    next: Instant,
}

impl IdlestLink {
    /// `None` unless ACKs use the idlest link.
    pub fn new(common: &MultiLinkConfig) -> Option<Self> {
        (common.acks == AckLinks::Idlest)
            .then(|| Self { busy: [Duration::ZERO; MOST_LINKS], next: Instant::ZERO + AckLinks::INTERVAL })
    }

    /// When it chooses next.
    pub fn poll_timeout(&self) -> Instant {
        self.next
    }

    /// Chooses links at `now`. Among equally busy links it takes the first.
    pub fn choose(&mut self, links: &mut [Link], now: Instant) {
        self.next = now + AckLinks::INTERVAL;
        let mut idle = [Duration::ZERO; MOST_LINKS];
        for ((link, busy), idle) in links.iter().zip(&mut self.busy).zip(&mut idle) {
            let until_now = link.cell.accounts.busy(now);
            *idle = AckLinks::INTERVAL.saturating_sub(until_now - std::mem::replace(busy, until_now));
        }
        let count = links.len() as u8;
        let clients = links.first().and_then(|link| link.cell.rules.multi_link.as_ref());
        let clients = clients.map_or(&[][..], |rules| &rules.common.clients);
        let chosen = clients.iter().map(|client| {
            let of_client = (0..count).map(LinkId).filter(|link| client.links.contains(*link));
            let idlest = of_client.max_by_key(|link| (idle[link.index()], Reverse(*link)));
            idlest.map_or(LinkSet::ALL, |link| LinkSet::NONE.with(link))
        });
        let chosen: Vec<LinkSet> = chosen.collect();
        for link in links {
            let (functions, rules) = (link.cell.stations.numbers(), link.cell.rules.multi_link.as_ref());
            let rules = rules.expect("one link of several");
            for station in link.cell.stations.iter_mut() {
                let is_down = station.is_access_point();
                for peer in &mut station.peers {
                    let client =
                        if is_down { functions.station(peer.id) } else { functions.station(station.id) };
                    debug_assert_ne!(client, StationId::AP);
                    let client = client.index() - 1;
                    peer.originator.role = rules.role(client, is_down, station.category, chosen[client]);
                }
            }
        }
    }
}
