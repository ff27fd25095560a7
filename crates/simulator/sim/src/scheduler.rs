//! The order of events.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tacit_packet::units::Instant;

/// Most events that a new one passes on its way to its place in the list; if it is further, the event goes to the heap.
const PASSED: usize = 16;

/// Orders events by time, then by the order in which they were scheduled.
///
/// Events belong to components, numbered from 0. A component has at most one valid event. Scheduling an earlier one
/// supersedes the later one, which is skipped when its turn comes; scheduling a later one changes nothing, because an
/// early wake-up is harmless. A timer that moves forward with every packet therefore costs nothing until it fires. A
/// superseded event that is scheduled again at its old time has its old turn.
///
/// Most events are soon, so they are in a sorted list with the next one last: a new event passes the few before it,
/// which costs less than a heap. If many events are sooner, as with the timers of a thousand connections, a heap is
/// used.
#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    /// Latest first; among equal times, the one scheduled last is first.
    soon: Vec<Event>,
    late: BinaryHeap<Reverse<Event>>,
    /// Number of events scheduled so far.
    inserted: u64,
    /// Time of the valid event of each component.
    due: Vec<Option<Instant>>,
}

/// Sorted by turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    at: Instant,
    /// Number of events scheduled before, then the component, in one integer of the same size as the time.
    turn: u64,
}

/// Bits for the component in [`Event::turn`]; the others can count a million million events.
const COMPONENT_BITS: u32 = 24;

impl Event {
    fn component(self) -> u32 {
        (self.turn & ((1 << COMPONENT_BITS) - 1)) as u32
    }
}

impl Scheduler {
    pub fn new(components: usize) -> Self {
        assert!(components < 1 << COMPONENT_BITS, "a world has no more components than can be numbered");
        Self { due: vec![None; components], ..Self::default() }
    }

    /// Wakes `component` at `at`, or earlier if that was scheduled before.
    // Always inlined: usually nothing changes.
    #[inline(always)]
    pub fn wake(&mut self, component: u32, at: Option<Instant>) {
        let Some(at) = at else { return };
        let due = &mut self.due[component as usize];
        if due.is_some_and(|due| due <= at) {
            return;
        }
        *due = Some(at);
        self.insert(component, at);
    }

    #[inline(never)]
    fn insert(&mut self, component: u32, at: Instant) {
        let event = Event { at, turn: self.inserted << COMPONENT_BITS | u64::from(component) };
        self.inserted += 1;
        let sooner = self.soon.iter().rev().take(PASSED + 1).take_while(|other| other.at <= at).count();
        if sooner > PASSED {
            self.late.push(Reverse(event));
            return;
        }
        let mut place = self.soon.len();
        self.soon.push(event);
        for _ in 0..sooner {
            self.soon.swap(place, place - 1);
            place -= 1;
        }
    }

    /// True if `component`, scheduled at `at` now, would be the next to wake, without any other event of its own.
    /// Scheduling and then removing that event would have no other effect.
    #[inline]
    pub fn would_be_next(&self, component: u32, at: Instant) -> bool {
        self.due[component as usize].is_none() && self.first().is_none_or(|first| at < first.at)
    }

    /// Time of the next event.
    pub fn peek(&mut self) -> Option<Instant> {
        while let Some(first) = self.first() {
            if self.due[first.component() as usize] == Some(first.at) {
                return Some(first.at);
            }
            self.pop();
        }
        None
    }

    /// The next component to wake up to `now`, and its time.
    #[inline]
    pub fn next_by(&mut self, now: Instant) -> Option<(Instant, u32)> {
        if self.peek()? > now { None } else { self.next() }
    }

    /// The next component to wake, and its time.
    #[inline]
    pub fn next(&mut self) -> Option<(Instant, u32)> {
        while let Some(event) = self.pop() {
            let (at, component) = (event.at, event.component());
            let due = &mut self.due[component as usize];
            if *due == Some(at) {
                *due = None;
                return Some((at, component));
            }
        }
        None
    }

    /// The next event, valid or not.
    fn first(&self) -> Option<Event> {
        let soon = self.soon.last();
        match self.late.peek() {
            None => soon.copied(),
            Some(Reverse(late)) => Some(soon.map_or(*late, |soon| *soon.min(late))),
        }
    }

    fn pop(&mut self) -> Option<Event> {
        let soon = self.soon.last().copied();
        let late = self.late.peek().map(|late| late.0);
        if late.is_some_and(|late| soon.is_none_or(|soon| late < soon)) {
            return self.late.pop().map(|late| late.0);
        }
        self.soon.pop()
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

    proptest::proptest! {
        /// The order is the same as that of one sorted list of all scheduled events.
        #[test]
        fn turns_are_by_time_then_by_asking(
            steps in proptest::collection::vec((0_u32..100, 0_u64..400, 0_u8..8), 0..600),
        ) {
            let mut scheduler = Scheduler::new(100);
            let mut due = [None; 100];
            let mut all: Vec<(Instant, usize, u32)> = Vec::new();
            let mut now = 0;
            for (number, (component, later, kind)) in steps.into_iter().enumerate() {
                if kind > 0 {
                    let at = Instant::from_nanos(now + later);
                    scheduler.wake(component, Some(at));
                    let due = &mut due[component as usize];
                    if due.is_none_or(|due| at < due) {
                        *due = Some(at);
                        all.push((at, number, component));
                    }
                    continue;
                }
                all.sort_unstable();
                let valid = |(at, _, component): &(Instant, usize, u32)| due[*component as usize] == Some(*at);
                let place = all.iter().position(valid).unwrap_or(all.len());
                let expected = all.drain(..all.len().min(place + 1)).nth(place);
                proptest::prop_assert_eq!(scheduler.peek(), expected.map(|(at, _, _)| at));
                let next = scheduler.next();
                proptest::prop_assert_eq!(next, expected.map(|(at, _, component)| (at, component)));
                if let Some((at, component)) = next {
                    due[component as usize] = None;
                    now = at.as_nanos();
                }
            }
        }
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
