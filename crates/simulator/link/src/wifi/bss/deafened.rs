//! Clients whose own signal deafens them on other links (nonsimultaneous transmit and receive, NSTR, 802.11be clause 35.3.16).

use tacit_packet::units::{Duration, Instant};

use super::hearing::{Hearing, deaf};
use super::link::Link;
use crate::wifi::air::StationId;
use crate::wifi::cell::SequenceFrame;
use crate::wifi::cell::earliest;
use crate::wifi::functions::{FunctionId, Functions};
use crate::wifi::link_set::{LinkId, LinkSet, MOST_LINKS};
use crate::wifi::mac::exchange::Exchange;
use crate::wifi::mac::plan::Outgoing;
use crate::wifi::mac::protection::Handshake;

/// Such a client.
#[derive(Clone, Debug)]
pub(super) struct Deafened {
    client: StationId,
    links: LinkSet,
    medium_sync: Duration,
    on: [Talk; MOST_LINKS],
    hearing: [Hearing; MOST_LINKS],
    /// When a link may begin that waits for the backoff of another.
    opens_at: Option<Instant>,
}

/// What a link does with a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Talk {
    Nothing,
    /// The access point sends, and with data alone another link may join when it begins.
    Down {
        begins: Instant,
        ends: Option<Instant>,
    },
    Up,
}

impl Deafened {
    /// `client` on `links`.
    pub fn new(client: StationId, links: LinkSet, medium_sync: Duration) -> Self {
        Self {
            client,
            links,
            medium_sync,
            on: [Talk::Nothing; MOST_LINKS],
            hearing: [Hearing::default(); MOST_LINKS],
            opens_at: None,
        }
    }

    /// `link`, which has this number, has processed an event, before which the frame of `transmitter` was on the air since `began`.
    pub fn follow(&mut self, link: &Link, number: usize, (transmitter, began): (Option<StationId>, Instant)) {
        if transmitter.is_some_and(|transmitter| transmitter != self.client) {
            self.hearing[number].hear(began);
        }
        let before = std::mem::replace(&mut self.on[number], talk(link, self.client));
        if (before, self.on[number]) == (Talk::Nothing, Talk::Up) {
            self.hearing[number].begins();
        }
    }

    /// Tells `links` what may begin from `now` on; `holder` has the queues.
    pub fn update(&mut self, links: &mut [Link], holder: usize, functions: Functions, now: Instant) {
        self.opens_at = None;
        let links_of_client = self.links;
        for number in (0..links.len()).filter(|number| links_of_client.contains(LinkId(*number as u8))) {
            let is_deaf = self.others(number).any(|(_, talk)| talk == Talk::Up);
            self.hearing[number].note(is_deaf, false, self.medium_sync, now);
            self.hearing[number].sense(is_deaf, &mut links[number], self.client, now);
            let pairs = functions.of_station(StationId::AP).zip(functions.of_station(self.client));
            for (ap, client) in pairs {
                let waits = self.others(number).any(|(_, talk)| talk != Talk::Nothing);
                let gate = &mut links[number].cell.stations[client].peers[0].originator.gate;
                self.hearing[number].open(gate, waits);
                let hears_from = self.hearing[number].hears_from();
                let station = &mut links[number].cell.stations[ap];
                let peer = station.peer_index(client);
                station.peers[peer].deaf_until = hears_from;
                if self.on[number] == Talk::Nothing {
                    self.open_down(links, holder, number, (ap, peer), now);
                }
            }
        }
    }

    /// Opens or closes link `number` for `peer` of the access point's function `ap`.
    fn open_down(
        &mut self,
        links: &mut [Link],
        holder: usize,
        number: usize,
        (ap, peer): (FunctionId, usize),
        now: Instant,
    ) {
        let rate = |link: &Link| link.cell.stations[ap].peers[peer].originator.mode.rate().as_bps();
        let link_rate = rate(&links[number]);
        let (mut waits_until, mut all) = (now, link_rate);
        let (mut closed, mut ends_at) = (false, None);
        for (other, talk) in self.others(number) {
            match talk {
                // Until it knows who sends there, the access point does not begin here.
                Talk::Up => closed = true,
                Talk::Down { begins, ends: Some(end) } if begins == now => ends_at = Some(end),
                Talk::Down { .. } => closed = true,
                Talk::Nothing => {
                    let Link { cell, medium } = &links[other];
                    let carries = cell.stations[ap].peers[peer].originator.role.data;
                    if let Some(ready) = medium.ready_at(cell, ap).filter(|_| carries) {
                        waits_until = waits_until.max(ready);
                        all += rate(&links[other]);
                    }
                }
            }
        }
        if let Some(end) = ends_at {
            let upper = &links[holder].cell.stations[ap].peers[peer].originator.upper;
            closed |= !links[number].cell.stations[ap].peers[peer].originator.fits(upper, now, end);
        } else if waits_until > now {
            closed = true;
            self.opens_at = earliest(self.opens_at, Some(waits_until));
        }
        let gate = &mut links[number].cell.stations[ap].peers[peer].originator.gate;
        (gate.closed, gate.ends_at) = (closed, ends_at);
        gate.part = (all > link_rate).then_some([link_rate, all]);
    }

    /// The other links.
    fn others(&self, number: usize) -> impl Iterator<Item = (usize, Talk)> + use<> {
        let links = self.links;
        let is_other =
            move |(link, _): &(usize, Talk)| *link != number && links.contains(LinkId(*link as u8));
        self.on.into_iter().enumerate().filter(is_other)
    }

    /// When something changes after `now`.
    pub fn changes_after(&self, now: Instant) -> Option<Instant> {
        let synchronised = self.hearing.iter().filter_map(Hearing::synchronised_at);
        synchronised.chain(self.opens_at).filter(|at| *at > now).min()
    }

    /// Starts measuring at `at`.
    pub fn start_measuring(&mut self, at: Instant) {
        self.hearing.iter_mut().for_each(|hearing| hearing.deaf.start_measuring(at));
    }

    /// Time without hearing on a link before `now`, as a mean over its links.
    pub fn deaf(&self, now: Instant) -> Duration {
        deaf(&self.hearing, self.links, now)
    }
}

/// What `link` does with `client`.
fn talk(link: &Link, client: StationId) -> Talk {
    let station_of = |function| link.cell.stations.station_of(function);
    let mut found = Talk::Nothing;
    for (frame, exchange) in link.medium.on_air() {
        let Exchange { from, to, begins, end, .. } = *exchange;
        if station_of(from) == client && exchange.handshake != Handshake::Granted {
            return Talk::Up;
        }
        if station_of(to) == client || station_of(from) == client {
            let is_data = matches!(exchange.outgoing, Outgoing::Data { .. });
            let joins =
                is_data && exchange.handshake == Handshake::None && frame == Some(SequenceFrame::Data);
            found = Talk::Down { begins, ends: joins.then_some(end) };
        }
    }
    found
}
