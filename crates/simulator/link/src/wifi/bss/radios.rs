//! Clients with one radio for several links (enhanced multi-link single-radio operation, EMLSR, 802.11be clause 35.3.17), or
//! with radios that deafen each other: what each link may begin with them, and what they hear.

use tacit_packet::units::{Duration, Instant};

use super::deafened::Deafened;
use super::hearing::{Hearing, deaf};
use super::link::Link;
use crate::wifi::air::StationId;
use crate::wifi::cell::SequenceFrame;
use crate::wifi::cell::earliest;
use crate::wifi::config::MultiLinkConfig;
use crate::wifi::functions::Functions;
use crate::wifi::link_set::{LinkId, LinkSet, MOST_LINKS};
use crate::wifi::mac::access::AWAY;
use crate::wifi::mac::exchange::Exchange;
use crate::wifi::mac::protection::{Handshake, Step};
use crate::wifi::mac::station::StallClock;
use crate::wifi::multi_link::{Emlsr, LinkMode, RadioReturn};
use crate::wifi::phy::Mode;

/// The clients that cannot do everything on all links at once.
#[derive(Clone, Debug)]
pub(super) struct Radios {
    radios: Vec<Radio>,
    deafened: Vec<Deafened>,
    functions: Functions,
    /// When the frame on the air of each link began.
    began: [Instant; MOST_LINKS],
    /// When something changes that no link knows.
    next: Option<Instant>,
}

/// Time in which clients that cannot do everything on all links at once heard nothing, as sums over them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RadioTimes {
    /// Number of these clients.
    pub clients: u32,
    /// Time on the way back from exchanges to listening.
    pub transition: Duration,
    /// Time of clients with one radio in which it was called, exchanged frames or was on that way.
    pub busy: Duration,
    /// Time without hearing on a link, as a mean over the links of a client.
    pub deaf: Duration,
}

/// A client with one radio.
#[derive(Clone, Debug)]
struct Radio {
    client: StationId,
    emlsr: Emlsr,
    links: LinkSet,
    /// Where its main radio rests, and the only link on which it contends.
    home: LinkId,
    /// What each link does with it.
    on: [Engagement; MOST_LINKS],
    /// The access point begins nothing with it before this, because it returns to listening.
    held_until: Instant,
    /// The access point knows before this that its last call was not answered.
    unanswered_until: Instant,
    /// It hears nothing that begins before this.
    deaf_until: Instant,
    /// It contends again.
    contends_from: Instant,
    /// Time of return to listening.
    transition: StallClock,
    /// Time in which its radio is called, is on a link or returns to listening.
    busy: StallClock,
    /// What it hears on each link.
    hearing: [Hearing; MOST_LINKS],
}

/// What a link does with a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Engagement {
    Nothing,
    /// An initial control frame for it is on the air. It receives that from then on, and begins nothing itself.
    Called {
        heard_from: Instant,
    },
    /// It answers that frame.
    Answers,
    /// It receives, or sends in a TXOP of the access point.
    Down,
    /// It sends; the access point knows from that time on.
    Up {
        known_from: Instant,
    },
}

impl Engagement {
    /// Whether the radio of the client is on that link.
    fn has_radio(self) -> bool {
        !matches!(self, Self::Nothing | Self::Called { .. })
    }

    /// Whether the client receives a call at `now`.
    fn calls(self, now: Instant) -> bool {
        matches!(self, Self::Called { heard_from } if heard_from <= now)
    }

    /// Whether the access point knows at `now` that its exchange keeps the client from other links.
    fn is_known(self, now: Instant) -> bool {
        match self {
            Self::Nothing => false,
            Self::Called { .. } | Self::Answers | Self::Down => true,
            Self::Up { known_from } => known_from <= now,
        }
    }
}

impl Radios {
    /// The clients of `common` that cannot do everything on `links` at once.
    pub fn new(links: &[Link], common: &MultiLinkConfig) -> Self {
        let (mut radios, mut deafened) = (Vec::new(), Vec::new());
        for (client, number) in common.clients.iter().zip(1..) {
            let client_links = (0..links.len() as u8).map(LinkId).filter(|link| client.links.contains(*link));
            let client_links: Vec<LinkId> = client_links.collect();
            let set = client_links.iter().fold(LinkSet::NONE, |set, link| set.with(*link));
            match client.mode {
                LinkMode::SingleRadio(emlsr) if client_links.len() > 1 => {
                    let home = home(links, common, &client_links, number);
                    radios.push(Radio::new(StationId(number), emlsr, set, home));
                }
                LinkMode::SendOrReceive { medium_sync } if client_links.len() > 1 => {
                    deafened.push(Deafened::new(StationId(number), set, medium_sync));
                }
                LinkMode::Simultaneous | LinkMode::SingleRadio(_) | LinkMode::SendOrReceive { .. } => {}
            }
        }
        let functions = links[0].cell.stations.numbers();
        Self { radios, deafened, functions, began: [Instant::ZERO; MOST_LINKS], next: None }
    }

    /// True where clients can do everything.
    pub fn is_empty(&self) -> bool {
        self.radios.is_empty() && self.deafened.is_empty()
    }

    /// When something changes that no link knows.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }

    /// Opens and closes links before the first event.
    pub fn start(&mut self, links: &mut [Link]) {
        for radio in &self.radios {
            for link in links.iter_mut().filter(|link| radio.links.contains(link.cell.rules.link())) {
                let ap = self.functions.of_station(StationId::AP);
                for (ap, client) in ap.zip(self.functions.of_station(radio.client)) {
                    let station = &mut link.cell.stations[ap];
                    let peer = station.peer_index(client);
                    station.peers[peer].originator.gate.padding = Some(radio.emlsr.padding);
                }
            }
        }
        self.update(links, 0, Instant::ZERO);
    }

    /// `link` has processed an event at `at`, where the frame of `transmitter` was on the air.
    pub fn follow(&mut self, links: &mut [Link], link: usize, transmitter: Option<StationId>, at: Instant) {
        let began = std::mem::replace(&mut self.began[link], at);
        for radio in &mut self.radios {
            let now_on = engagement(&links[link], radio.client);
            if transmitter.is_some_and(|transmitter| transmitter != radio.client) {
                radio.hearing[link].hear(began);
            }
            radio.engage(&links[link], link, now_on, at);
        }
        for client in &mut self.deafened {
            client.follow(&links[link], link, (transmitter, began));
        }
        self.update(links, link, at);
    }

    /// Tells `links` what radios permit and hear from `now` on; `holder` has the queues.
    pub fn update(&mut self, links: &mut [Link], holder: usize, now: Instant) {
        self.next = None;
        for radio in &mut self.radios {
            radio.note(links, now);
            for (number, link) in links.iter_mut().enumerate() {
                if radio.links.contains(LinkId(number as u8)) {
                    radio.open(link, self.functions, number, now);
                }
            }
            self.next = earliest(self.next, radio.changes_after(now));
        }
        for client in &mut self.deafened {
            client.update(links, holder, self.functions, now);
            self.next = earliest(self.next, client.changes_after(now));
        }
    }

    /// Starts measuring at `at`.
    pub fn start_measuring(&mut self, at: Instant) {
        for radio in &mut self.radios {
            radio.transition.start_measuring(at);
            radio.busy.start_measuring(at);
            radio.hearing.iter_mut().for_each(|hearing| hearing.deaf.start_measuring(at));
        }
        self.deafened.iter_mut().for_each(|client| client.start_measuring(at));
    }

    /// What these clients could not hear before `now`.
    pub fn times(&self, now: Instant) -> RadioTimes {
        let transition = self.radios.iter().map(|radio| radio.transition.until(now)).sum();
        let busy = self.radios.iter().map(|radio| radio.busy.until(now)).sum();
        let deaf = self.radios.iter().map(|radio| deaf(&radio.hearing, radio.links, now));
        let deafened = self.deafened.iter().map(|client| client.deaf(now));
        let clients = (self.radios.len() + self.deafened.len()) as u32;
        RadioTimes { clients, transition, busy, deaf: deaf.chain(deafened).sum() }
    }
}

/// Where the main radio of `client` rests among `client_links`: the fastest link that carries all it sends, if one does.
fn home(links: &[Link], common: &MultiLinkConfig, client_links: &[LinkId], client: u16) -> LinkId {
    let rate =
        |link: &LinkId| links[link.index()].cell.rules.config.stations[usize::from(client) - 1].mode.rate();
    let categories = &links[0].cell.rules.config.categories;
    let maps = categories.iter().map(|category| common.map.get(*category).up);
    let sends = maps.fold(common.acks.possible(), LinkSet::and);
    let chosen = client_links.iter().copied().filter(|link| sends.contains(*link)).max_by_key(rate);
    chosen.or_else(|| client_links.iter().copied().max_by_key(rate)).unwrap_or(LinkId::FIRST)
}

impl Radio {
    fn new(client: StationId, emlsr: Emlsr, links: LinkSet, home: LinkId) -> Self {
        Self {
            client,
            emlsr,
            links,
            home,
            on: [Engagement::Nothing; MOST_LINKS],
            held_until: Instant::ZERO,
            unanswered_until: Instant::ZERO,
            deaf_until: Instant::ZERO,
            contends_from: Instant::ZERO,
            transition: StallClock::default(),
            busy: StallClock::default(),
            hearing: [Hearing::default(); MOST_LINKS],
        }
    }

    /// Its engagement on `link` becomes `now_on` at `at`.
    fn engage(&mut self, link: &Link, number: usize, now_on: Engagement, at: Instant) {
        let before = self.on[number];
        match (before, now_on) {
            // The access point learned of it when it began.
            (Engagement::Up { .. }, Engagement::Up { .. })
            | (Engagement::Called { .. }, Engagement::Called { .. }) => {
                return;
            }
            (Engagement::Called { .. }, Engagement::Nothing) => self.unanswered_until = at + timeout(link),
            // Its answer was lost: it waits for data, and then goes back.
            (Engagement::Answers, Engagement::Nothing) => {
                self.unanswered_until = at + timeout(link);
                self.go_back(at + timeout(link));
            }
            (Engagement::Down, Engagement::Nothing | Engagement::Called { .. }) => {
                self.go_back(at);
                self.held_until = self.deaf_until;
            }
            (Engagement::Up { known_from }, Engagement::Nothing | Engagement::Called { .. }) => {
                self.go_back(at);
                if known_from <= at {
                    self.held_until = self.deaf_until;
                }
            }
            _ => {}
        }
        if let (Engagement::Nothing, Engagement::Up { .. }) = (before, now_on) {
            self.hearing[number].begins();
        }
        self.on[number] = match now_on {
            // A chain that hears nothing when the frame begins does not receive it.
            Engagement::Called { .. } if self.is_deaf(number, at) => Engagement::Called { heard_from: AWAY },
            other => other,
        };
    }

    /// Its exchange is over at `at`: it returns to listening.
    fn go_back(&mut self, at: Instant) {
        self.deaf_until = at + self.emlsr.transition;
        self.contends_from = match self.emlsr.radio_return {
            RadioReturn::WithTransition => self.deaf_until,
            RadioReturn::After(time) => at + time,
        };
    }

    /// Whether its radio is on a link other than `number`.
    fn is_elsewhere(&self, number: usize) -> bool {
        self.on.iter().enumerate().any(|(link, on)| link != number && on.has_radio())
    }

    /// Whether it hears nothing on link `number` at `now`.
    fn is_deaf(&self, number: usize, now: Instant) -> bool {
        !self.on[number].has_radio() && (self.is_elsewhere(number) || now < self.deaf_until)
    }

    /// Notes what it hears at `now`, and what it has lost by not hearing.
    fn note(&mut self, links: &mut [Link], now: Instant) {
        let is_away = self.on.iter().any(|on| on.has_radio());
        self.transition.note(now, !is_away && now < self.deaf_until);
        let is_busy = self.on.iter().any(|on| *on != Engagement::Nothing) || now < self.deaf_until;
        self.busy.note(now, is_busy);
        let senses_always = matches!(self.emlsr.radio_return, RadioReturn::After(_));
        for number in 0..links.len() {
            let is_deaf = self.is_deaf(number, now);
            self.hearing[number].note(is_deaf, senses_always, self.emlsr.medium_sync, now);
        }
        let home = self.home.index();
        let is_blind = !senses_always
            && !self.on[home].has_radio()
            && (self.is_elsewhere(home) || now < self.contends_from);
        self.hearing[home].sense(is_blind, &mut links[home], self.client, now);
    }

    /// Opens or closes `link`.
    fn open(&self, link: &mut Link, functions: Functions, number: usize, now: Instant) {
        let others = self.on.iter().enumerate().filter(|(link, _)| *link != number);
        let is_held = now < self.held_until
            || now < self.unanswered_until
            || others.clone().any(|(_, on)| on.is_known(now));
        let waits = self.is_elsewhere(number)
            || others.clone().any(|(_, on)| on.calls(now))
            || !self.on[number].has_radio() && now < self.contends_from;
        for (ap, client) in functions.of_station(StationId::AP).zip(functions.of_station(self.client)) {
            let station = &mut link.cell.stations[ap];
            let peer = station.peer_index(client);
            station.peers[peer].originator.gate.closed = is_held;
            station.peers[peer].deaf_until = self.hearing[number].hears_from();
            let gate = &mut link.cell.stations[client].peers[0].originator.gate;
            self.hearing[number].open(gate, number != self.home.index() || waits);
        }
    }

    /// When something changes after `now`.
    fn changes_after(&self, now: Instant) -> Option<Instant> {
        let learns = self.on.iter().filter_map(|on| match on {
            Engagement::Up { known_from: at } | Engagement::Called { heard_from: at } => Some(*at),
            _ => None,
        });
        [self.held_until, self.unanswered_until, self.deaf_until, self.contends_from]
            .into_iter()
            .chain(self.hearing[self.home.index()].synchronised_at())
            .chain(learns)
            .filter(|at| (*at > now) && *at < AWAY)
            .min()
    }
}

/// What `link` does with `client`.
fn engagement(link: &Link, client: StationId) -> Engagement {
    let station_of = |function| link.cell.stations.station_of(function);
    let mut found = Engagement::Nothing;
    for (frame, exchange) in link.medium.on_air() {
        if station_of(exchange.from) == client && exchange.handshake != Handshake::Granted {
            return Engagement::Up {
                known_from: if frame.is_some() { first_known(link, exchange) } else { AWAY },
            };
        }
        if station_of(exchange.to) == client || station_of(exchange.from) == client {
            found = match frame {
                None | Some(SequenceFrame::Protection(Step::Rts)) => {
                    Engagement::Called { heard_from: exchange.begins + answers_in(link).rx_start_delay() }
                }
                Some(SequenceFrame::Protection(_)) => Engagement::Answers,
                Some(_) => Engagement::Down,
            };
        }
    }
    found
}

/// When the access point has received the first MPDU of `exchange`, or its RTS.
fn first_known(link: &Link, exchange: &Exchange) -> Instant {
    if exchange.handshake == Handshake::Rts {
        return exchange.first_end;
    }
    let originator = link.cell.stations.originator(exchange);
    let first = originator.in_flight().next().map_or(0, |mpdu| originator.subframe_len(mpdu.len));
    (exchange.start + originator.mode.time_before(first)).min(exchange.end)
}

/// How long the access point waits for the CTS, and a client for data behind it.
fn timeout(link: &Link) -> Duration {
    link.cell.rules.phy.ack_timeout(&answers_in(link))
}

/// Mode of the CTS that answers a call.
fn answers_in(link: &Link) -> Mode {
    let phy = link.cell.rules.phy;
    let [_, answer] = phy.calling_modes(&phy.beacon_mode());
    answer
}
