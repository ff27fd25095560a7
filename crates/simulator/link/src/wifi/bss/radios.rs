//! Clients with one radio for several links (enhanced multi-link single-radio operation, EMLSR, 802.11be clause 35.3.17):
//! what each link may begin with them, and what they hear.

use tacit_proto::units::{Duration, Instant};

use super::links::Link;
use crate::wifi::air::StationId;
use crate::wifi::cell::{Part, earliest};
use crate::wifi::functions::Functions;
use crate::wifi::mac::access::AWAY;
use crate::wifi::mac::exchange::Exchange;
use crate::wifi::mac::protection::{Handshake, Step};
use crate::wifi::mac::station::StallClock;
use crate::wifi::multi_link::{ClientLinks, Emlsr, LinkId, LinkMode, LinkSet, MultiLinkConfig, RadioReturn};
use crate::wifi::phy::Mode;

/// Most links of a device.
const MOST_LINKS: usize = 3;

/// The clients with one radio.
#[derive(Clone, Debug)]
pub(super) struct Radios {
    radios: Vec<Radio>,
    functions: Functions,
    /// When the frame on the air of each link began.
    began: [Instant; MOST_LINKS],
    /// When something changes that no link knows.
    next: Option<Instant>,
}

/// Time in which clients with one radio for several links heard nothing, as sums over them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RadioTimes {
    /// Number of these clients.
    pub clients: u32,
    /// Time on the way back from exchanges to listening.
    pub transition: Duration,
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
    /// Whether it senses nothing at home now.
    is_blind: bool,
    /// Since when it has heard nothing at home.
    deaf_since: Option<Instant>,
    /// It has lost medium synchronisation at home.
    unsynchronised: Option<Unsynchronised>,
    /// Time of return to listening.
    transition: StallClock,
    /// Time without hearing, by link.
    deaf: [StallClock; MOST_LINKS],
}

/// A medium synchronisation delay that runs (802.11be clause 35.3.16.8).
#[derive(Clone, Copy, Debug)]
struct Unsynchronised {
    until: Instant,
    /// The one TXOP that it may begin has begun.
    is_used: bool,
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
    /// The clients of `common` that have one radio for `links`.
    pub fn new(links: &[Link], common: &MultiLinkConfig) -> Self {
        let numbers = links[0].cell.stations.numbers();
        let radios = common.clients.iter().zip(1..).filter_map(|(client, number)| {
            let ClientLinks { links: own, mode: LinkMode::SingleRadio(emlsr) } = *client else { return None };
            let own: Vec<LinkId> =
                (0..links.len() as u8).map(LinkId).filter(|link| own.contains(*link)).collect();
            if own.len() < 2 {
                return None;
            }
            let rate = |link: &LinkId| {
                links[link.index()].cell.rules.config.stations[number as usize - 1].mode.rate()
            };
            let sends = common.map.up.and(common.acks);
            let is_chosen = |link: &LinkId| sends.contains(*link);
            let home = own.iter().copied().filter(is_chosen).max_by_key(rate);
            let home = home.or_else(|| own.iter().copied().max_by_key(rate));
            Some(Radio {
                client: StationId(number),
                emlsr,
                links: own.iter().fold(LinkSet::NONE, |set, link| set.with(*link)),
                home: home?,
                on: [Engagement::Nothing; MOST_LINKS],
                held_until: Instant::ZERO,
                unanswered_until: Instant::ZERO,
                deaf_until: Instant::ZERO,
                contends_from: Instant::ZERO,
                is_blind: false,
                deaf_since: None,
                unsynchronised: None,
                transition: StallClock::default(),
                deaf: [StallClock::default(); MOST_LINKS],
            })
        });
        Self { radios: radios.collect(), functions: numbers, began: [Instant::ZERO; MOST_LINKS], next: None }
    }

    /// True where no client has one radio.
    pub fn is_empty(&self) -> bool {
        self.radios.is_empty()
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
        self.update(links, Instant::ZERO);
    }

    /// `link` has processed an event at `at`, where the frame of `transmitter` was on the air.
    pub fn follow(&mut self, links: &mut [Link], link: usize, transmitter: Option<StationId>, at: Instant) {
        let began = std::mem::replace(&mut self.began[link], at);
        for radio in &mut self.radios {
            let now_on = engagement(&links[link], radio.client);
            if radio.home.index() == link
                && transmitter.is_some_and(|transmitter| transmitter != radio.client)
                && radio.hears_at_home(began)
            {
                radio.unsynchronised = None;
            }
            radio.engage(&links[link], link, now_on, at);
        }
        self.update(links, at);
    }

    /// Tells the links what radios permit and hear from `now` on.
    pub fn update(&mut self, links: &mut [Link], now: Instant) {
        self.next = None;
        for radio in &mut self.radios {
            radio.note(links, now);
            for number in 0..links.len() {
                if radio.links.contains(LinkId(number as u8)) {
                    radio.open(&mut links[number], self.functions, number, now);
                }
            }
            self.next = earliest(self.next, radio.changes_after(now));
        }
    }

    /// Starts measuring at `at`.
    pub fn start_measuring(&mut self, at: Instant) {
        for radio in &mut self.radios {
            radio.transition.start_measuring(at);
            radio.deaf.iter_mut().for_each(|clock| clock.start_measuring(at));
        }
    }

    /// What these clients could not hear before `now`.
    pub fn times(&self, now: Instant) -> RadioTimes {
        let transition = self.radios.iter().map(|radio| radio.transition.until(now)).sum();
        let deaf = self.radios.iter().map(|radio| {
            let links = (0..MOST_LINKS).filter(|link| radio.links.contains(LinkId(*link as u8)));
            let clocks: Vec<Duration> = links.map(|link| radio.deaf[link].until(now)).collect();
            clocks.iter().copied().sum::<Duration>() / clocks.len() as u64
        });
        RadioTimes { clients: self.radios.len() as u32, transition, deaf: deaf.sum() }
    }
}

impl Radio {
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
        if let (Engagement::Nothing, Engagement::Up { .. }, Some(lost)) =
            (before, now_on, &mut self.unsynchronised)
        {
            lost.is_used = true;
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

    /// Whether it hears a frame that began at `began`, at home.
    fn hears_at_home(&self, began: Instant) -> bool {
        self.on[self.home.index()].has_radio() || !self.is_deaf(self.home.index(), began)
    }

    /// Notes what it hears at `now`, and what it has lost by not hearing.
    fn note(&mut self, links: &mut [Link], now: Instant) {
        let is_away = self.on.iter().any(|on| on.has_radio());
        self.transition.note(now, !is_away && now < self.deaf_until);
        for number in 0..links.len() {
            let deaf = self.is_deaf(number, now);
            self.deaf[number].note(now, deaf);
        }
        let home = self.home.index();
        let senses_always = matches!(self.emlsr.radio_return, RadioReturn::After(_));
        if self.is_deaf(home, now) {
            self.deaf_since.get_or_insert(now);
        } else if let Some(since) = self.deaf_since.take()
            && !senses_always
            && now.saturating_since(since) > Emlsr::MEDIUM_SYNC_THRESHOLD
        {
            self.unsynchronised =
                Some(Unsynchronised { until: now + self.emlsr.medium_sync, is_used: false });
        }
        if self.unsynchronised.is_some_and(|lost| lost.until <= now) {
            self.unsynchronised = None;
        }
        let blind = !senses_always
            && !self.on[home].has_radio()
            && (self.is_elsewhere(home) || now < self.contends_from);
        if blind != std::mem::replace(&mut self.is_blind, blind) {
            let Link { cell, medium } = &mut links[home];
            let functions: Vec<_> = cell.stations.numbers().of_station(self.client).collect();
            for function in functions {
                if blind {
                    medium.sense_nothing(cell, now, function);
                } else {
                    let phy = cell.rules.phy;
                    let contention = &mut cell.stations[function].contention;
                    let aifs = contention.aifs(phy);
                    contention.sense_from(now + aifs);
                }
            }
        }
    }

    /// Opens or closes `link`.
    fn open(&self, link: &mut Link, functions: Functions, number: usize, now: Instant) {
        let others = self.on.iter().enumerate().filter(|(link, _)| *link != number);
        let is_held = now < self.held_until
            || now < self.unanswered_until
            || others.clone().any(|(_, on)| on.is_known(now));
        let waits = self.is_elsewhere(number)
            || others.clone().any(|(_, on)| on.calls(now))
            || !self.on[number].has_radio() && now < self.contends_from
            || self.unsynchronised.is_some_and(|lost| lost.is_used) && !self.on[number].has_radio();
        let deaf_until = match self.on[number] {
            on if on.has_radio() => Instant::ZERO,
            _ if self.is_elsewhere(number) => AWAY,
            _ => self.deaf_until,
        };
        for (ap, client) in functions.of_station(StationId::AP).zip(functions.of_station(self.client)) {
            let station = &mut link.cell.stations[ap];
            let peer = station.peer_index(client);
            station.peers[peer].originator.gate.closed = is_held;
            station.peers[peer].deaf_until = deaf_until;
            let gate = &mut link.cell.stations[client].peers[0].originator.gate;
            gate.closed = number != self.home.index() || waits;
            gate.rts_due = self.unsynchronised.is_some();
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
            .chain(self.unsynchronised.map(|lost| lost.until))
            .chain(learns)
            .filter(|at| (*at > now) && *at < AWAY)
            .min()
    }
}

/// What `link` does with `client`.
fn engagement(link: &Link, client: StationId) -> Engagement {
    let station_of = |function| link.cell.stations.station_of(function);
    let mut found = Engagement::Nothing;
    for (part, exchange) in link.medium.on_air() {
        if station_of(exchange.from) == client && exchange.handshake != Handshake::Granted {
            return Engagement::Up {
                known_from: if part.is_some() { first_known(link, exchange) } else { AWAY },
            };
        }
        if station_of(exchange.to) == client || station_of(exchange.from) == client {
            found = match part {
                None | Some(Part::Protection(Step::Rts)) => {
                    Engagement::Called { heard_from: exchange.begins + answers_in(link).rx_start_delay() }
                }
                Some(Part::Protection(_)) => Engagement::Answers,
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
