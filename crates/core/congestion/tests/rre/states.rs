//! Every combination of state and event, as a table.

use std::fmt::Write;

use tacit_congestion::rre::{Event, State};

/// One line per event, one column per state; `-` if the state does not change.
#[test]
fn every_event_in_every_state() {
    let mut table = format!("{:8}", "");
    for state in State::ALL {
        let _ = write!(table, "  {:8}", format!("{state:?}"));
    }
    for event in Event::ALL {
        table.truncate(table.trim_end().len());
        let _ = write!(table, "\n{:8}", format!("{event:?}"));
        for state in State::ALL {
            let next = state.next(event);
            let next = if next == state { "-".to_owned() } else { format!("{next:?}") };
            let _ = write!(table, "  {next:8}");
        }
    }
    insta::assert_snapshot!(table.trim_end());
}

/// From each state a sequence of events leads to each other state, so no state is a dead end.
#[test]
fn every_state_is_left_and_reached() {
    for from in State::ALL {
        let mut reached = vec![from];
        let mut looked = 0;
        while let Some(state) = reached.get(looked).copied() {
            looked += 1;
            for next in Event::ALL.map(|event| state.next(event)) {
                if !reached.contains(&next) {
                    reached.push(next);
                }
            }
        }
        assert_eq!(reached.len(), State::ALL.len(), "from {from:?} only {reached:?}");
    }
}
