//! What happens next.

use tacit_proto::units::Instant;

/// Orders events by time, then by the order in which they were scheduled.
///
/// Events belong to components, numbered from 0. A component has one valid event at most: asking for
/// an earlier one supersedes the later, which is skipped when its turn comes; asking for a later one
/// changes nothing, as an early wake-up is harmless. A timer that moves forward with every packet
/// thus costs nothing until it fires.
///
/// A world has few events at a time and most of them are soon, so they stand in a list, the next one last: a new
/// event passes the few before it, which costs less than a heap does at every event.
#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    /// Latest first; of one instant the one asked for last.
    queue: Vec<(Instant, u32)>,
    /// The valid event of each component.
    due: Vec<Option<Instant>>,
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
        let mut place = self.queue.len();
        self.queue.push((at, component));
        while place > 0 && self.queue[place - 1].0 <= at {
            self.queue.swap(place, place - 1);
            place -= 1;
        }
    }

    /// True where `component`, woken at `at` now, would be the next to wake, and nothing else is asked of it: waking it
    /// and taking that event would come to nothing but itself.
    #[inline]
    pub fn would_be_next(&self, component: u32, at: Instant) -> bool {
        self.due[component as usize].is_none() && self.queue.last().is_none_or(|(next, _)| at < *next)
    }

    /// When the next component wakes.
    pub fn peek(&mut self) -> Option<Instant> {
        while let Some((at, component)) = self.queue.last() {
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
        while let Some((at, component)) = self.queue.pop() {
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
    fn a_thousand_events_come_in_order() {
        let time = |component: u64| component * 7_919 % 97;
        let mut scheduler = Scheduler::new(1_000);
        (0..1_000).for_each(|component| scheduler.wake(component, at(time(component.into()))));
        let mut expected: Vec<u32> = (0..1_000).collect();
        expected.sort_by_key(|component| time((*component).into()));
        let order: Vec<_> = std::iter::from_fn(|| scheduler.next()).map(|(_, component)| component).collect();
        assert_eq!(order, expected);
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
