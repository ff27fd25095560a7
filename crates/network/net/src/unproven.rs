//! Bytes whose answer lost the head that names the version of the file.
//!
//! Requests are numbered in the order in which they are sent. When bytes arrive without such a head, the reader records
//! the next request number. An answer to that request or a later one was generated after those bytes, so if its head
//! has the old validator, those bytes are of the old version, too. (A file that changes and then changes back would
//! have had other bytes under the same strong validator, which RFC 9110 section 8.8.1 forbids.)

use std::collections::VecDeque;

/// Most ranges that are kept apart; beyond that the newest are merged.
const DOUBTS_MAX: usize = 256;

/// Unproven ranges.
#[derive(Debug, Default)]
pub struct UnprovenRanges {
    /// In order: the number of the request that would prove the range, and the range's first byte.
    open: VecDeque<(u64, u64)>,
}

impl UnprovenRanges {
    /// Marks the bytes from `start` on as unproven until the answer to request `number`, or to a later one, names their
    /// file.
    pub fn add(&mut self, number: u64, start: u64) {
        let is_full = self.open.len() >= DOUBTS_MAX;
        match self.open.back_mut() {
            Some((last, lowest)) if *last >= number || is_full => {
                (*last, *lowest) = ((*last).max(number), (*lowest).min(start));
            }
            _ => self.open.push_back((number, start)),
        }
    }

    /// The head of the answer to request `number` names the expected version of the file.
    pub fn settle(&mut self, number: u64) {
        while self.open.front().is_some_and(|(settled_by, _)| *settled_by <= number) {
            self.open.pop_front();
        }
    }

    /// The first unproven byte.
    pub fn first(&self) -> Option<u64> {
        self.open.iter().map(|(_, start)| *start).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_settles_what_was_heard_before_it_was_asked_for() {
        let mut doubts = UnprovenRanges::default();
        assert_eq!(doubts.first(), None);
        doubts.add(3, 700);
        doubts.add(5, 200);
        doubts.add(5, 900);
        assert_eq!(doubts.first(), Some(200));
        doubts.settle(2);
        assert_eq!(doubts.first(), Some(200));
        doubts.settle(4);
        assert_eq!(doubts.first(), Some(200), "the first is settled, the lowest is not");
        doubts.add(6, 100);
        doubts.settle(5);
        assert_eq!(doubts.first(), Some(100));
        doubts.settle(9);
        assert_eq!(doubts.first(), None);
    }

    #[test]
    fn however_many_there_are_few_are_kept_and_none_is_forgotten() {
        let mut doubts = UnprovenRanges::default();
        for number in 0..10_000 {
            doubts.add(number, 20_000 - number);
        }
        assert!(doubts.open.len() <= DOUBTS_MAX);
        assert_eq!(doubts.first(), Some(10_001));
        doubts.settle(9_998);
        assert_eq!(doubts.first(), Some(10_001), "those that became one are settled with the last");
        doubts.settle(9_999);
        assert_eq!(doubts.first(), None);
    }
}
