//! What a client hears on one of several links, and what it has lost by not hearing.

use tacit_packet::units::{Duration, Instant};

use super::link::Link;
use crate::wifi::air::StationId;
use crate::wifi::link_set::{LinkId, LinkSet, MOST_LINKS};
use crate::wifi::mac::access::AWAY;
use crate::wifi::mac::link_role::Gate;
use crate::wifi::mac::station::StallClock;
use crate::wifi::multi_link::Emlsr;

/// A client on one of its links.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hearing {
    /// Whether it senses nothing, so that its backoff stands still.
    is_blind: bool,
    /// Since when it has heard nothing.
    deaf_since: Option<Instant>,
    /// It hears no frame that begins before this.
    hears_from: Instant,
    unsynchronised: Option<Unsynchronised>,
    /// Time without hearing.
    pub deaf: StallClock,
}

/// A medium synchronisation delay that runs (802.11be clause 35.3.16.8).
#[derive(Clone, Copy, Debug)]
struct Unsynchronised {
    until: Instant,
    /// The one TXOP that it may begin has begun.
    is_used: bool,
}

impl Hearing {
    /// From `now` on it hears nothing on this link, or it hears; what it loses while it `senses` nothing lasts for `medium_sync`.
    pub fn note(&mut self, is_deaf: bool, senses: bool, medium_sync: Duration, now: Instant) {
        self.deaf.note(now, is_deaf);
        if is_deaf {
            self.deaf_since.get_or_insert(now);
            self.hears_from = AWAY;
        } else if let Some(since) = self.deaf_since.take() {
            self.hears_from = now;
            if !senses && now.saturating_since(since) > Emlsr::MEDIUM_SYNC_THRESHOLD {
                self.unsynchronised = Some(Unsynchronised { until: now + medium_sync, is_used: false });
            }
        }
        if self.unsynchronised.is_some_and(|lost| lost.until <= now) {
            self.unsynchronised = None;
        }
    }

    /// The backoff of `client` on `link` stands still from `now` on, or runs again.
    pub fn sense(&mut self, is_blind: bool, link: &mut Link, client: StationId, now: Instant) {
        if is_blind == std::mem::replace(&mut self.is_blind, is_blind) {
            return;
        }
        let Link { cell, medium } = link;
        for function in cell.stations.numbers().of_station(client) {
            if is_blind {
                medium.sense_nothing(cell, now, function);
            } else {
                let phy = cell.rules.phy;
                let contention = &mut cell.stations[function].contention;
                let aifs = contention.aifs(phy);
                contention.sense_from(now + aifs);
            }
        }
    }

    /// It has begun a TXOP.
    pub fn begins(&mut self) {
        if let Some(lost) = &mut self.unsynchronised {
            lost.is_used = true;
        }
    }

    /// A frame that began at `began` has reached it.
    pub fn hear(&mut self, began: Instant) {
        if began >= self.hears_from {
            self.unsynchronised = None;
        }
    }

    /// From when on it hears frames that begin then.
    pub fn hears_from(&self) -> Instant {
        self.hears_from
    }

    /// Opens `gate` of its data, unless it must wait for another reason or for synchronisation.
    pub fn open(&self, gate: &mut Gate, waits: bool) {
        gate.closed = waits || self.unsynchronised.is_some_and(|lost| lost.is_used);
        gate.rts_due = self.unsynchronised.is_some();
    }

    /// When the loss of synchronisation ends.
    pub fn synchronised_at(&self) -> Option<Instant> {
        self.unsynchronised.map(|lost| lost.until)
    }
}

/// Time without hearing on a link before `now`, as a mean over `links`.
pub(super) fn deaf(hearing: &[Hearing; MOST_LINKS], links: LinkSet, now: Instant) -> Duration {
    let selected = hearing.iter().zip(0..).filter(|(_, link)| links.contains(LinkId(*link)));
    let times: Vec<Duration> = selected.map(|(hearing, _)| hearing.deaf.until(now)).collect();
    times.iter().copied().sum::<Duration>() / times.len() as u64
}
