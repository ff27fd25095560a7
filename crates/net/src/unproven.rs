//! Bytes of answers that lost the head which says of which state of a file they are.
//!
//! Requests are numbered as they are made. A reader that gets bytes without such a head notes the next number: an answer to
//! that request or a later one was made after those bytes were, and with the old validator in its head it says that they too
//! are of the old state. (A file that changes and changes back in between has other bytes under the same strong
//! validator, which RFC 9110 section 8.8.1 forbids.)

use std::collections::VecDeque;

/// UnprovenRanges kept apart; beyond that the newest are one.
const DOUBTS_MAX: usize = 256;

/// Ranges in doubt.
#[derive(Debug, Default)]
pub struct UnprovenRanges {
    /// Numbers of the requests that would settle them, in order, and their first bytes.
    open: VecDeque<(u64, u64)>,
}

impl UnprovenRanges {
    /// Bytes from `start` on are in doubt until the answer to request `number`, or to a later one, names their file.
    pub fn add(&mut self, number: u64, start: u64) {
        let is_full = self.open.len() >= DOUBTS_MAX;
        match self.open.back_mut() {
            Some((last, lowest)) if *last >= number || is_full => {
                (*last, *lowest) = ((*last).max(number), (*lowest).min(start));
            }
            _ => self.open.push_back((number, start)),
        }
    }

    /// The head of the answer to request `number` names the file that all bytes are to be of.
    pub fn settle(&mut self, number: u64) {
        while self.open.front().is_some_and(|(settled_by, _)| *settled_by <= number) {
            self.open.pop_front();
        }
    }

    /// The first byte in doubt.
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
