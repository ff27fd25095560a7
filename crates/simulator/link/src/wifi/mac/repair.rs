//! Repair of unacknowledged data (future work in the FWP paper: the access point buffers, and a Block Ack releases or
//! retransmits). The transmitter keeps sent MPDUs for a while. The recipient sees gaps in the sequence numbers. From
//! time to time it sends an unsolicited Block Ack, at an access of its own, and the missing MPDUs are sent once more.

use std::collections::VecDeque;

use tacit_packet::units::Instant;

use super::mpdu::{Mpdu, MpduState};
use super::originator::{Originator, Settled};
use super::sent_buffer::MOST_BACK;
use super::{SEQUENCE_MODULUS, sequence_distance};
use crate::packet::Holders;
use crate::wifi::bitmap::AckBitmap;
use crate::wifi::config::RepairConfig;
use crate::wifi::phy::block_ack_len;

/// Sequence numbers that one request covers.
const MOST_ASKED: u16 = 1024;

impl Originator {
    /// The MPDUs in flight were sent at `now` without acknowledgment: they leave the window, or are kept for a
    /// recipient that may request them. Returns the number of packets sent for the first time.
    pub fn settle_no_ack(&mut self, now: Instant, holders: &mut Holders) -> u32 {
        let Some(mut sent) = self.upper.sent.take() else {
            return self.settle_streams(|stream| stream.acknowledged(holders)).first_try;
        };
        let mut first_try = 0;
        for _ in 0..self.upper.window.len() {
            let Some(mpdu) = self.upper.window.pop_front() else { break };
            match mpdu.state {
                MpduState::Waiting => self.upper.window.push_back(mpdu),
                // It is kept already.
                _ if mpdu.retries > 0 => drop(mpdu.msdus.release(holders)),
                _ => {
                    first_try += mpdu.msdus.count();
                    sent.keep(now, mpdu, holders);
                }
            }
        }
        self.upper.sent = Some(sent);
        first_try
    }

    /// The recipient is missing the sequence numbers `wanted`, in order: those still kept are sent next, once. Returns
    /// true if there are any.
    pub fn repair(&mut self, now: Instant, wanted: impl Iterator<Item = u16>, holders: &mut Holders) -> bool {
        let Some(mut sent) = self.upper.sent.take() else { return false };
        sent.expire(now, self.upper.next_sequence, holders);
        let before = self.upper.waiting;
        for sequence in wanted {
            let is_after = |mpdu: &Mpdu| sequence_distance(sequence, mpdu.sequence) < SEQUENCE_MODULUS / 2;
            let place = self.upper.window.iter().position(is_after).unwrap_or(self.upper.window.len());
            let is_there = self.upper.window.get(place).is_some_and(|mpdu| mpdu.sequence == sequence);
            if let Some(mpdu) = sent.find(sequence).filter(|_| !is_there) {
                let (msdus, retries) = (mpdu.msdus.held_twice(holders), mpdu.retries + 1);
                self.upper.window.insert(place, Mpdu { msdus, state: MpduState::Waiting, retries, ..*mpdu });
                self.upper.waiting += 1;
            }
        }
        self.upper.sent = Some(sent);
        self.upper.waiting > before
    }

    /// Whether `mpdu` was counted on its first transmission and is only a copy.
    pub(super) fn is_copy(&self, mpdu: &Mpdu) -> bool {
        self.upper.sent.is_some() && mpdu.retries > 0
    }

    /// A request to the peer for missing data is due.
    pub fn request_repair(&mut self) {
        self.asks_due = true;
    }

    /// The request was sent or failed; in both cases the next one is due a period later.
    pub fn repair_requested(&mut self) -> Settled {
        self.asks_due = false;
        Settled::default()
    }
}

/// A recipient's record of the MPDUs that it is missing.
#[derive(Clone, Debug)]
pub(crate) struct RepairRecipient {
    /// The sequence number after the highest one received.
    next: u16,
    /// Earlier sequence numbers that were not received, each with the time when that became known.
    missing: VecDeque<(u16, Instant)>,
    requested_at: Option<Instant>,
    /// Sequence numbers given up and not yet reported.
    given_up: u64,
    limits: RepairConfig,
}

impl RepairRecipient {
    pub fn new(limits: RepairConfig) -> Self {
        Self { next: 0, missing: VecDeque::new(), requested_at: None, given_up: 0, limits }
    }

    /// How many sequence numbers before `sequence` are newly missing; `None` if `sequence` is late.
    pub fn gap_before(&self, sequence: u16) -> Option<u16> {
        let gap = sequence_distance(self.next, sequence);
        (gap < SEQUENCE_MODULUS / 2).then_some(gap)
    }

    /// Handles the MPDU `sequence`, received at `now`; false if it is a duplicate or was given up.
    pub fn takes(&mut self, now: Instant, sequence: u16) -> bool {
        let Some(gap) = self.gap_before(sequence) else {
            let place = self.missing.iter().position(|(number, _)| *number == sequence);
            return place.and_then(|place| self.missing.remove(place)).is_some();
        };
        for step in 0..gap {
            self.missing.push_back((super::sequence_add(self.next, step), now));
        }
        self.next = super::sequence_add(sequence, 1);
        self.give_up(now);
        true
    }

    /// Gives up sequence numbers that the transmitter no longer keeps at `now`.
    pub fn give_up(&mut self, now: Instant) {
        while let Some((number, since)) = self.missing.front() {
            let is_old = now.saturating_since(*since) > self.limits.age;
            if !is_old && sequence_distance(*number, self.next) <= MOST_BACK {
                break;
            }
            self.missing.pop_front();
            self.given_up += 1;
        }
    }

    /// How many sequence numbers were given up since the last call.
    pub fn take_given_up(&mut self) -> u64 {
        std::mem::take(&mut self.given_up)
    }

    /// When the next request is due.
    pub fn due(&self) -> Option<Instant> {
        let (_, since) = self.missing.front()?;
        Some(self.requested_at.map_or(*since, |asked| (asked + self.limits.period).max(*since)))
    }

    /// Starts a request at `now`; false if nothing is missing any more.
    pub fn begin_request(&mut self, now: Instant) -> bool {
        self.give_up(now);
        self.requested_at = Some(now);
        !self.missing.is_empty()
    }

    /// The sequence numbers to request, as many as one request covers.
    pub fn wanted(&self) -> impl Iterator<Item = u16> {
        let first = self.missing.front().map_or(self.next, |(number, _)| *number);
        let numbers = self.missing.iter().map(|(number, _)| *number);
        numbers.take_while(move |number| sequence_distance(first, *number) < MOST_ASKED)
    }

    /// The first sequence number of the request's bitmap, and the bitmap of the numbers received.
    pub fn scoreboard(&self) -> (u16, AckBitmap) {
        let start = self.wanted().next().unwrap_or(self.next);
        let mut bitmap = AckBitmap::new(self.span());
        bitmap.insert_run(0, sequence_distance(start, self.next));
        self.wanted().for_each(|number| bitmap.remove(sequence_distance(start, number)));
        (start, bitmap)
    }

    /// Sequence numbers from the first to the last requested one.
    fn span(&self) -> u32 {
        let first = self.wanted().next().unwrap_or(self.next);
        self.wanted().last().map_or(1, |last| u32::from(sequence_distance(first, last)) + 1)
    }

    /// Bytes of the request: a Block Ack with the shortest bitmap that covers the requested numbers.
    pub fn request_len(&self) -> u32 {
        block_ack_len(self.span())
    }
}
