//! States of the sender, and the events that change them.

/// State of the sender (slides 13 and 14: three phases, the second with two states).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum State {
    /// Searches for the receive rate: sends more with each answer, until data leaves faster than it arrives.
    #[default]
    Start,
    /// Sends faster than the receiver receives: the buffer fills.
    Fill,
    /// Sends more slowly than the receiver receives: the buffer drains.
    Drain,
    /// Empties the buffer deliberately, because its minimum delay has not been measured for a long time \[DERIVED\].
    Refresh,
    /// Sends little while the path recovers, then starts over.
    Monitor,
    /// Others keep the buffer full at any rate of this sender: uses CUBIC's window \[DERIVED\].
    Compete,
}

/// Event that may change the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Event {
    /// The receive rate was found: packets left faster than they arrived.
    Found,
    /// The buffer delay is below the threshold.
    Below,
    /// The buffer delay is above the threshold.
    Above,
    /// Packets were lost while the buffer was in use, more than a smoothed round-trip time after the previous loss
    /// event.
    Loss,
    /// The minimum relative delay was not measured for ten seconds.
    Stale,
    /// The time in which the buffer should have emptied has passed.
    Emptied,
    /// The buffer has been drained for more than four smoothed round-trip times.
    Long,
    /// A smoothed round-trip time has passed and no lost data is outstanding.
    Repaired,
    /// The retransmission timer expired.
    Timeout,
    /// No ACK arrived for a second, or for two smoothed round-trip times if that is longer.
    Silence,
    /// Half the rate did not empty the buffer, so others fill it.
    Refilled,
}

impl State {
    /// All states, in order.
    pub const ALL: [Self; 6] =
        [Self::Start, Self::Fill, Self::Drain, Self::Refresh, Self::Monitor, Self::Compete];

    /// Its name in plots.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Fill => "fill",
            Self::Drain => "drain",
            Self::Refresh => "refresh",
            Self::Monitor => "monitor",
            Self::Compete => "compete",
        }
    }

    /// The next state after `event`.
    #[must_use]
    pub const fn next(self, event: Event) -> Self {
        use Event as E;
        use State::{Compete, Drain, Fill, Monitor, Refresh, Start};
        match (self, event) {
            (Start, E::Found) | (Drain | Compete, E::Below) | (Refresh, E::Emptied) => Fill,
            (Start | Fill, E::Above) | (Start | Fill, E::Loss) => Drain,
            (Fill | Refresh | Compete, E::Timeout) => Drain,
            (Fill | Drain | Compete, E::Stale) => Refresh,
            (Drain, E::Long) | (Fill | Drain | Refresh | Compete, E::Silence) | (Start, E::Timeout) => {
                Monitor
            }
            (Monitor | Refresh, E::Refilled) => Compete,
            (Monitor, E::Repaired) => Start,
            (state, _) => state,
        }
    }
}

impl Event {
    /// All events, in order.
    pub const ALL: [Self; 11] = [
        Self::Found,
        Self::Below,
        Self::Above,
        Self::Loss,
        Self::Stale,
        Self::Emptied,
        Self::Long,
        Self::Repaired,
        Self::Timeout,
        Self::Silence,
        Self::Refilled,
    ];
}
