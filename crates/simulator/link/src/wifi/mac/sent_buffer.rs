//! MPDUs that a transmitter keeps after it sent them without acknowledgment, in case the recipient requests them.

use std::collections::VecDeque;

use tacit_packet::units::Instant;

use super::mpdu::Mpdu;
use super::{SEQUENCE_MODULUS, sequence_distance};
use crate::packet::Holders;
use crate::wifi::config::RepairConfig;

/// MPDUs of the largest aggregate with repair on request.
pub(crate) const MOST_REPAIRABLE: u32 = 64;
/// How far before the newest number a number counts as old and not as future: half the sequence number space, less the
/// largest aggregate.
pub(super) const MOST_BACK: u16 = SEQUENCE_MODULUS / 2 - MOST_REPAIRABLE as u16;

/// MPDUs that a transmitter keeps after sending them.
#[derive(Clone, Debug)]
pub(crate) struct SentBuffer {
    /// Each MPDU with the time of its first transmission, in the order of their numbers.
    kept: VecDeque<(Instant, Mpdu)>,
    bytes: u64,
    limits: RepairConfig,
}

impl SentBuffer {
    pub fn new(limits: RepairConfig) -> Self {
        Self { kept: VecDeque::new(), bytes: 0, limits }
    }

    pub(super) fn keep(&mut self, now: Instant, mpdu: Mpdu, holders: &mut Holders) {
        let newest = mpdu.sequence;
        self.bytes += u64::from(mpdu.bytes);
        self.kept.push_back((now, mpdu));
        self.expire(now, newest, holders);
    }

    /// Drops MPDUs that are too old, that exceed the size limit, or that are too far before sequence number `newest`.
    pub(super) fn expire(&mut self, now: Instant, newest: u16, holders: &mut Holders) {
        while let Some((at, mpdu)) = self.kept.front() {
            let is_old = now.saturating_since(*at) > self.limits.age
                || sequence_distance(mpdu.sequence, newest) > MOST_BACK;
            if !is_old && self.bytes <= self.limits.buffer.0 {
                break;
            }
            self.bytes -= u64::from(mpdu.bytes);
            if let Some((_, mpdu)) = self.kept.pop_front() {
                mpdu.msdus.release(holders);
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Mpdu> {
        self.kept.iter().map(|(_, mpdu)| mpdu)
    }

    pub(super) fn find(&self, sequence: u16) -> Option<&Mpdu> {
        let (_, first) = self.kept.front()?;
        let offset = sequence_distance(first.sequence, sequence);
        let at = |(_, mpdu): &(Instant, Mpdu)| sequence_distance(first.sequence, mpdu.sequence);
        let place = self.kept.binary_search_by_key(&offset, at).ok()?;
        Some(&self.kept[place].1)
    }
}
