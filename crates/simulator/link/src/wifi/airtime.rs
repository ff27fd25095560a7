//! Accounting of the time on a channel.

use tacit_packet::units::{Duration, Instant};

use crate::packet::PayloadClass;

/// Use of channel time. The categories cover every moment exactly once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AirtimeUse {
    /// PPDUs of data: preamble, headers and payload of MPDUs on their first transmission.
    Data,
    /// PPDUs of pure TCP ACKs, first transmission.
    TcpAck,
    /// PPDUs of retransmitted MPDUs.
    Retransmission,
    /// Link-layer acknowledgments: the SIFS before and the ACK or Block Ack; also Block Ack Requests.
    LinkAck,
    /// RTS, CTS and the SIFS after each.
    Protection,
    /// Time that compressed TCP ACKs add to link-layer acknowledgments (TCP/HACK).
    CompressedAck,
    /// Waiting for the medium with something to send: AIFS, backoff, timeouts.
    Acquisition,
    /// PPDUs that overlapped.
    Collision,
    /// Beacons.
    Beacon,
    /// No station has data to send.
    Idle,
}

impl AirtimeUse {
    /// All uses, in table order.
    pub const ALL: [Self; 10] = [
        Self::Data,
        Self::TcpAck,
        Self::Retransmission,
        Self::LinkAck,
        Self::Protection,
        Self::CompressedAck,
        Self::Acquisition,
        Self::Collision,
        Self::Beacon,
        Self::Idle,
    ];

    /// Name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::TcpAck => "tcp_ack",
            Self::Retransmission => "retransmission",
            Self::LinkAck => "link_ack",
            Self::Protection => "protection",
            Self::CompressedAck => "compressed_ack",
            Self::Acquisition => "acquisition",
            Self::Collision => "collision",
            Self::Beacon => "beacon",
            Self::Idle => "idle",
        }
    }
}

/// Time per use in a window; the sum over the uses is exactly the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Airtime {
    spent: [Duration; AirtimeUse::ALL.len()],
}

impl Airtime {
    /// Time spent on `what`.
    pub const fn get(&self, what: AirtimeUse) -> Duration {
        self.spent[what as usize]
    }

    /// The sum, use by use.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self { spent: std::array::from_fn(|what| self.spent[what] + other.spent[what]) }
    }

    /// Total time: equal to the length of the window.
    pub fn total(&self) -> Duration {
        self.spent.iter().copied().sum()
    }
}

/// A channel's time charged to one station, with PPDUs that contain only pure TCP ACKs separate from the rest.
///
/// A station is charged for its PPDUs and for the frames that belong to them: RTS and CTS before them, and the
/// link-layer ACKs that answer them. It is also charged for the idle time in which some station waited (AIFS or EIFS,
/// backoff slots, timeouts) since the access before its own, even if others counted down in it or a beacon was sent in
/// between. A station that counts down while others win is therefore not charged, and no idle time counts twice.
/// Stations that collide share the wait and the collision equally. A Block Ack Request is charged like the PPDU it
/// refers to. Bytes appended to a link-layer ACK are charged to the station that appends them.
///
/// Summed over all stations the uses equal those of the channel, except [`AirtimeUse::Idle`], and except a wait or an
/// exchange that the end of the window cuts off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StationAirtime {
    data: Airtime,
    acks: Airtime,
}

impl StationAirtime {
    /// Time for PPDUs of `class`: [`PayloadClass::Ack`] for those that contain only pure TCP ACKs, and for bytes
    /// appended to link-layer ACKs.
    pub const fn of_class(&self, class: PayloadClass) -> &Airtime {
        match class {
            PayloadClass::Data => &self.data,
            PayloadClass::Ack => &self.acks,
        }
    }

    /// Time spent on `what`, for PPDUs of both classes.
    pub fn get(&self, what: AirtimeUse) -> Duration {
        self.data.get(what) + self.acks.get(what)
    }

    /// Sum of both classes, use by use.
    #[must_use]
    pub(crate) fn plus(&self, other: &Self) -> Self {
        Self { data: self.data.plus(&other.data), acks: self.acks.plus(&other.acks) }
    }

    pub(crate) fn spend(&mut self, class: PayloadClass, what: AirtimeUse, time: Duration) {
        let airtime = match class {
            PayloadClass::Data => &mut self.data,
            PayloadClass::Ack => &mut self.acks,
        };
        airtime.spent[what as usize] += time;
    }
}

/// Accounts for consecutive time intervals, and counts the part within a window.
#[derive(Clone, Debug)]
pub(crate) struct AirtimeLedger {
    from: Instant,
    to: Instant,
    booked_until: Instant,
    airtime: Airtime,
    /// Time in which the channel was busy, in the window and before it.
    busy: Duration,
}

impl AirtimeLedger {
    pub(crate) fn new(from: Instant, to: Instant) -> Self {
        Self { from, to, booked_until: Instant::ZERO, airtime: Airtime::default(), busy: Duration::ZERO }
    }

    /// Accounts the time from the last call to `until` as `what`; nothing if `until` is not later. Returns the part
    /// that is within the window.
    pub(crate) fn book(&mut self, what: AirtimeUse, until: Instant) -> Duration {
        if until <= self.booked_until {
            return Duration::ZERO;
        }
        let start = self.booked_until.max(self.from);
        let end = until.min(self.to);
        let inside = end.saturating_since(start);
        self.airtime.spent[what as usize] += inside;
        if !matches!(what, AirtimeUse::Acquisition | AirtimeUse::Idle) {
            self.busy += until - self.booked_until;
        }
        self.booked_until = until;
        inside
    }

    pub(crate) fn booked_until(&self) -> Instant {
        self.booked_until
    }

    pub(crate) fn airtime(&self) -> Airtime {
        self.airtime
    }

    /// Time in which the channel was busy since the start.
    pub(crate) fn busy(&self) -> Duration {
        self.busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bookings_are_clipped_to_the_window() {
        let at = |us| Instant::ZERO + Duration::from_micros(us);
        let mut ledger = AirtimeLedger::new(at(10), at(30));
        assert_eq!(ledger.book(AirtimeUse::Idle, at(15)), Duration::from_micros(5));
        ledger.book(AirtimeUse::Data, at(25));
        ledger.book(AirtimeUse::Beacon, at(25));
        ledger.book(AirtimeUse::LinkAck, at(40));
        let airtime = ledger.airtime();
        assert_eq!(airtime.get(AirtimeUse::Idle), Duration::from_micros(5));
        assert_eq!(airtime.get(AirtimeUse::Data), Duration::from_micros(10));
        assert_eq!(airtime.get(AirtimeUse::LinkAck), Duration::from_micros(5));
        assert_eq!(airtime.total(), Duration::from_micros(20));
    }
}
