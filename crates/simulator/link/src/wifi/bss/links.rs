//! The links of a basic service set: one, or those of multi-link devices. Each link contends alone, as a channel of its
//! own. Queues, windows and reorder buffers exist once; the link that uses them holds them, and lends them to the next.

use tacit_packet::units::Instant;

use super::idlest::IdlestLink;
use super::link::Link;
use super::radios::Radios;
use crate::packet::Holders;
use crate::wifi::cell::Cell;
use crate::wifi::config::BssConfig;
use crate::wifi::config::MultiLinkConfig;
use crate::wifi::functions::FunctionId;
use crate::wifi::link_set::LinkId;
use crate::wifi::mac::block_ack::Recipient;
use crate::wifi::mac::rules::Rules;
use crate::wifi::multi_link::{BlockAckScope, WindowShare};

/// The links of a basic service set, at least one.
#[derive(Clone, Debug)]
pub(super) struct Links {
    all: Vec<Link>,
    /// The link that holds queues, windows and reorder buffers.
    holder: usize,
    scope: BlockAckScope,
    /// Clients with one radio for several links.
    radios: Option<Box<Radios>>,
    idlest: Option<Box<IdlestLink>>,
}

impl Links {
    /// The links of `config`; see [`Bss::new`](super::Bss::new).
    pub fn new(
        mut config: BssConfig,
        seed: u64,
        name: &str,
        station_names: &[&str],
        measure: (Instant, Instant),
    ) -> Self {
        let common = config.multi_link.take();
        let Some(mut common) = common else {
            let link = Link::new(Rules::new(config), seed, name, station_names, measure);
            return Self {
                all: vec![link],
                holder: 0,
                scope: BlockAckScope::OwnLink,
                radios: None,
                idlest: None,
            };
        };
        let further = std::mem::take(&mut common.further);
        let configs: Vec<BssConfig> = std::iter::once(config).chain(further).collect();
        assert!(
            configs.iter().all(|link| link.stations.len() == configs[0].stations.len()),
            "a link for each client"
        );
        let shares: Vec<Vec<Option<u32>>> = (0..configs.len())
            .map(|link| {
                (0..configs[0].stations.len()).map(|client| share(&configs, &common, link, client)).collect()
            })
            .collect();
        let all = configs.into_iter().zip(shares).zip(0..).map(|((config, shares), number)| {
            let rules = Rules::of_link(config, LinkId(number), &common, shares);
            // The first link has the random streams of a set without others.
            let name = if number == 0 { name.into() } else { format!("{name} link {}", number + 1) };
            Link::new(rules, seed, &name, station_names, measure)
        });
        let mut all: Vec<Link> = all.collect();
        let mut radios = Radios::new(&all, &common);
        radios.start(&mut all);
        let radios = (!radios.is_empty()).then(|| Box::new(radios));
        let idlest = IdlestLink::new(&common).map(Box::new);
        Self { all, holder: 0, scope: common.block_acks, radios, idlest }
    }

    /// The cells of all links.
    pub fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.all.iter().map(|link| &link.cell)
    }

    /// All links.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Link> {
        self.all.iter_mut()
    }

    /// The cell that holds queues, windows and reorder buffers.
    #[inline]
    pub fn holder(&self) -> &Cell {
        &self.all[self.holder].cell
    }

    /// The cell that holds queues, windows and reorder buffers.
    #[inline]
    pub fn holder_mut(&mut self) -> &mut Cell {
        &mut self.all[self.holder].cell
    }

    /// The first link, which has what is common to all: numbers of functions, what waits to be polled.
    #[inline]
    pub fn first(&self) -> &Cell {
        &self.all[0].cell
    }

    /// The first link.
    #[inline]
    pub fn first_mut(&mut self) -> &mut Cell {
        &mut self.all[0].cell
    }

    /// The link with this number.
    pub(super) fn link(&self, number: usize) -> &Link {
        &self.all[number]
    }

    /// Two different links.
    pub(super) fn two(&mut self, first: usize, second: usize) -> [&mut Cell; 2] {
        let [first, second] = self.all.get_disjoint_mut([first, second]).expect("two different links");
        [&mut first.cell, &mut second.cell]
    }

    /// Clients with one radio for several links.
    pub fn radios(&self) -> Option<&Radios> {
        self.radios.as_deref()
    }

    /// Starts measuring their times at `at`.
    pub fn start_measuring(&mut self, at: Instant) {
        if let Some(radios) = &mut self.radios {
            radios.start_measuring(at);
        }
    }

    /// Number of links.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// When the state of a link changes next.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.all.as_slice() {
            [only] => only.poll_timeout(),
            several => {
                let radios = self.radios.as_ref().and_then(|radios| radios.poll_timeout());
                let idlest = self.idlest.as_ref().map(|idlest| idlest.poll_timeout());
                several.iter().filter_map(Link::poll_timeout).chain(radios).chain(idlest).min()
            }
        }
    }

    /// Processes everything due by `now`; returns [`Links::poll_timeout`] after it.
    #[inline]
    pub fn handle_timeout(&mut self, now: Instant, holders: &mut Holders) -> Option<Instant> {
        let [only] = self.all.as_mut_slice() else { return self.handle_several(now, holders) };
        std::mem::swap(&mut only.cell.holders, holders);
        let next = loop {
            let next = only.poll_timeout();
            let Some(at) = next.filter(|at| *at <= now) else { break next };
            only.step(at);
        };
        std::mem::swap(&mut only.cell.holders, holders);
        next
    }

    /// The earliest event first, and of events at the same time that of the first link.
    fn handle_several(&mut self, now: Instant, holders: &mut Holders) -> Option<Instant> {
        loop {
            let timeouts =
                self.all.iter().enumerate().filter_map(|(link, it)| Some((it.poll_timeout()?, link)));
            let due = timeouts.min();
            let radios = self.radios.as_ref().and_then(|radios| radios.poll_timeout());
            let idlest = self.idlest.as_ref().map(|idlest| idlest.poll_timeout());
            let next = due.map(|(at, _)| at).into_iter().chain(radios).chain(idlest).min();
            let Some(at) = next.filter(|at| *at <= now) else { return next };
            if idlest == Some(at)
                && let Some(idlest) = &mut self.idlest
            {
                idlest.choose(&mut self.all, at);
                self.follow(at);
                continue;
            }
            if radios == Some(at)
                && let Some(radios) = &mut self.radios
            {
                radios.update(&mut self.all, self.holder, at);
                self.follow(at);
                continue;
            }
            let (_, link) = due?;
            self.lend_to(link);
            self.all[link].cell.holders = std::mem::take(holders);
            if self.scope == BlockAckScope::Shared {
                self.receive_early(link, at);
            }
            let transmitter = self.radios.as_ref().and_then(|_| {
                let Link { cell, medium } = &self.all[link];
                medium.transmitter(cell)
            });
            self.all[link].step(at);
            if let Some(radios) = &mut self.radios {
                radios.follow(&mut self.all, link, transmitter, at);
            }
            *holders = std::mem::take(&mut self.all[link].cell.holders);
            self.gather(link);
            self.follow(at);
        }
    }

    /// Lends queues, windows and reorder buffers to `link`.
    fn lend_to(&mut self, link: usize) {
        let Ok([holder, borrower]) = self.all.get_disjoint_mut([self.holder, link]) else { return };
        for (from, to) in holder.cell.stations.iter_mut().zip(borrower.cell.stations.iter_mut()) {
            std::mem::swap(&mut from.hook, &mut to.hook);
            for (from, to) in from.peers.iter_mut().zip(&mut to.peers) {
                std::mem::swap(&mut from.originator.upper, &mut to.originator.upper);
                if let (Recipient::Block(from), Recipient::Block(to)) =
                    (&mut from.recipient, &mut to.recipient)
                {
                    from.lend(to, self.scope);
                }
            }
        }
        self.holder = link;
    }

    /// What waits to be polled on `link` moves to the first one.
    fn gather(&mut self, link: usize) {
        if let Ok([first, other]) = self.all.get_disjoint_mut([0, link]) {
            first.cell.outbox.append(&mut other.cell.outbox);
        }
    }

    /// All links take into account what the holder of queues and windows did until `at`.
    fn follow(&mut self, at: Instant) {
        self.first().stations.numbers().all().for_each(|function| {
            self.follow_function(function, at);
        });
    }

    /// All links take into account what the holder of queues and windows did for `function` until `at`. Returns true if one
    /// begins to contend.
    pub fn follow_function(&mut self, function: FunctionId, at: Instant) -> bool {
        let mut contends = self.all[self.holder].follow(None, function, at);
        for link in 0..self.all.len() {
            let Ok([holder, other]) = self.all.get_disjoint_mut([self.holder, link]) else { continue };
            contends |= other.follow(Some(&holder.cell), function, at);
        }
        contends
    }

    /// `function` of the holder of queues and windows contends from `now` on.
    pub fn start_contending(&mut self, now: Instant, function: FunctionId) {
        let Link { cell, medium } = &mut self.all[self.holder];
        medium.start_contending(cell, now, function);
    }

    /// Checks the packets, windows and turns on all links.
    ///
    /// # Errors
    /// The station and the violated invariant.
    pub fn check(&self) -> Result<(), String> {
        let holder = self.holder();
        for station in holder.stations.iter() {
            let counters = self.all.iter().map(|link| link.cell.stations[station.id].counters);
            let sum = counters.reduce(|sum, more| sum.plus(&more)).unwrap_or_default();
            station.check_books(&sum)?;
        }
        self.all.iter().try_for_each(|link| link.medium.check(&link.cell, holder))
    }
}

/// The most MPDUs of the window that an A-MPDU of `client` takes on `link`.
fn share(configs: &[BssConfig], common: &MultiLinkConfig, link: usize, client: usize) -> Option<u32> {
    if common.share == WindowShare::Greedy {
        return None;
    }
    let rate = |config: &BssConfig| u128::from(config.stations[client].mode.rate().as_bps());
    let all: u128 = configs.iter().map(rate).sum();
    let window = u128::from(configs[0].window_at(&configs[0].stations[client].mode));
    Some((window * rate(&configs[link]) / all.max(1)).max(1) as u32)
}
