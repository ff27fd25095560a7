//! What happens next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tacit_proto::units::Instant;

/// Orders events by time, then by the order in which they were scheduled.
///
/// Events belong to components, numbered from 0. A component has one valid event at most: asking for
/// an earlier one supersedes the later, which is skipped when its turn comes; asking for a later one
/// changes nothing, as an early wake-up is harmless. A timer that moves forward with every packet
/// thus costs nothing until it fires.
#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    queue: BinaryHeap<Reverse<(Instant, u64, u32)>>,
    /// The valid event of each component.
    due: Vec<Option<Instant>>,
    sequence: u64,
}

impl Scheduler {
    pub fn new(components: usize) -> Self {
        Self { due: vec![None; components], ..Self::default() }
    }

    /// Wakes `component` at `at`, or earlier if that was asked for before.
    #[inline]
    pub fn wake(&mut self, component: u32, at: Option<Instant>) {
        let Some(at) = at else { return };
        let due = &mut self.due[component as usize];
        if due.is_some_and(|due| due <= at) {
            return;
        }
        *due = Some(at);
        self.queue.push(Reverse((at, self.sequence, component)));
        self.sequence += 1;
    }

    /// When the next component wakes.
    pub fn peek(&mut self) -> Option<Instant> {
        while let Some(Reverse((at, _, component))) = self.queue.peek() {
            if self.due[*component as usize] == Some(*at) {
                return Some(*at);
            }
            self.queue.pop();
        }
        None
    }

    /// The next component to wake not after `now`, and when.
    #[inline]
    pub fn next_by(&mut self, now: Instant) -> Option<(Instant, u32)> {
        if self.peek()? > now { None } else { self.next() }
    }

    /// The next component to wake, and when.
    #[inline]
    pub fn next(&mut self) -> Option<(Instant, u32)> {
        while let Some(Reverse((at, _, component))) = self.queue.pop() {
            let due = &mut self.due[component as usize];
            if *due == Some(at) {
                *due = None;
                return Some((at, component));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Option<Instant> {
        Some(Instant::from_nanos(nanos))
    }

    #[test]
    fn events_come_in_order_of_time_then_of_asking() {
        let mut scheduler = Scheduler::new(3);
        scheduler.wake(2, at(5));
        scheduler.wake(0, at(5));
        scheduler.wake(1, at(3));
        let order: Vec<_> = std::iter::from_fn(|| scheduler.next()).map(|(_, component)| component).collect();
        assert_eq!(order, [1, 2, 0]);
    }

    #[test]
    fn an_earlier_event_supersedes_a_later_one_of_the_same_component() {
        let mut scheduler = Scheduler::new(1);
        scheduler.wake(0, at(5));
        scheduler.wake(0, at(9));
        scheduler.wake(0, at(3));
        scheduler.wake(0, None);
        assert_eq!(scheduler.next(), Some((Instant::from_nanos(3), 0)));
        assert_eq!(scheduler.next(), None);
    }
}
