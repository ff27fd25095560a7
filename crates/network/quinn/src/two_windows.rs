//! One of two windows: that of quinn's own CUBIC while it keeps the path full, and the law's where losses have left the path
//! short of data; on short paths CUBIC's alone.
//!
//! From ACKs alone a sender cannot tell a queue of data from a queue of ACKs on a slow way back: both make round trips longer,
//! and both limit the rate at which ACKs arrive. Draining a queue of ACKs stops data that nothing else would stop. So a
//! queue stays as long as CUBIC keeps it.
//!
//! So does what follows when a queue overflows. The law's room for the interval of ACKs may be more than the queue of an
//! access point holds. With the larger window after an overflow, each round trip overflows again, each loss makes
//! CUBIC's window smaller, and it never leads again.
//!
//! On a short path the law's room and its standing queue are many times what the path holds. Where nothing but the buffer of
//! a socket takes them, as over loopback, half of the packets are lost.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn::congestion::{Controller, ControllerMetrics, Cubic, CubicConfig};
use quinn_proto::RttEstimator;

use crate::controller::TackController;

/// Paths with a smaller round-trip time are short: quinn advertises this time as the least that an ACK may wait
/// (`min_ack_delay`), and no Wi-Fi or mobile link with a queue is on such a path.
pub(crate) const SHORT: Duration = Duration::from_millis(1);

/// The law's losses are an overflow where they are this many packets at least,
const OVERFLOW_PACKETS: u64 = 16;
/// and more than twice CUBIC's share and one in 50 (as a full queue's in [`crate::controller`]), or one in eight, which is
/// never noise. In thousandths.
const OVERFLOW_ABOVE: u128 = 20;
const OVERFLOW_MOST: u128 = 125;
/// Rounds that CUBIC leads after an overflow of the law; each overflow doubles them.
const REST_ROUNDS: u32 = 8;
const REST_ROUNDS_MAX: u32 = 256;

/// Both controllers. Each hears of everything.
#[derive(Clone, Debug)]
pub(crate) struct TwoWindows {
    cubic: Cubic,
    tack: TackController,
    is_short: bool,
    mtu: u16,
    /// The law's window counts, where the path is not short.
    law_leads: bool,
    /// In rounds that CUBIC led, and in rounds that the law led.
    losses: [Losses; 2],
    /// The most bytes in flight in this round, and in the last one.
    most_in_flight: [u64; 2],
    /// Rounds for which CUBIC still leads, and those after the next overflow.
    rest_rounds: [u32; 2],
}

/// Bytes of rounds. Those of older rounds count less, an eighth less with each round.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    acked: u64,
    lost: u64,
}

impl Losses {
    const fn add(&mut self, (acked, lost): (u64, u64)) {
        self.acked = self.acked / 8 * 7 + acked;
        self.lost = self.lost / 8 * 7 + lost;
    }

    fn per_mille(&self) -> u128 {
        u128::from(self.lost) * 1_000 / u128::from(self.acked.max(1))
    }

    /// True if the difference from `other` is more than chance.
    fn exceed(&self, other: &Self) -> bool {
        self.per_mille() > (2 * other.per_mille() + OVERFLOW_ABOVE).min(OVERFLOW_MOST)
    }
}

impl TwoWindows {
    pub(crate) fn new(now: Instant, mtu: u16) -> Self {
        let cubic = Cubic::new(Arc::new(CubicConfig::default()), now, mtu);
        Self {
            cubic,
            tack: TackController::new(mtu),
            is_short: false,
            mtu,
            law_leads: false,
            losses: [Losses::default(); 2],
            most_in_flight: [0; 2],
            rest_rounds: [0, REST_ROUNDS],
        }
    }

    /// The law takes over where its window is the larger one and either both still start, which a loss at random ends for
    /// CUBIC alone, or the path runs short of data. CUBIC takes over when its window is the larger one.
    fn choose(&mut self) {
        self.law_leads = self.rest_rounds[0] == 0
            && self.tack.window() > self.cubic.window()
            && (self.law_leads || self.tack.is_starting() || self.tack.has_slowed());
    }

    /// Ends a round. CUBIC also takes over where the law overflows a queue: losses at random are alike under both.
    fn end_round(&mut self, now: Instant) {
        self.losses[usize::from(self.law_leads)].add(self.tack.last_round_bytes());
        let [by_cubic, by_law] = &mut self.losses;
        let is_overflow = self.law_leads
            && !self.tack.is_starting()
            && self.tack.has_queue()
            && by_law.lost >= OVERFLOW_PACKETS * u64::from(self.mtu)
            && by_law.exceed(by_cubic);
        let [rest, next_rest] = &mut self.rest_rounds;
        // Under CUBIC the path was short of data for as long as that: what it loses is no overflow.
        if *rest == 1 && self.tack.has_slowed() {
            *next_rest = REST_ROUNDS;
        }
        *rest = rest.saturating_sub(1);
        if is_overflow {
            *by_law = Losses::default();
            [*rest, *next_rest] = [*next_rest, (*next_rest * 2).min(REST_ROUNDS_MAX)];
            self.restart_cubic(now);
        }
        self.most_in_flight = [0, self.most_in_flight[0]];
    }

    /// A CUBIC that has just overflowed a queue which this path holds. The one that was has shrunk with each loss of the law.
    fn restart_cubic(&mut self, now: Instant) {
        let mut config = CubicConfig::default();
        config.initial_window(self.most_in_flight[0].max(self.most_in_flight[1]));
        self.cubic = Cubic::new(Arc::new(config), now, self.mtu);
        self.cubic.on_congestion_event(now, now, false, 0);
    }

    fn active(&self) -> &dyn Controller {
        if self.law_leads && !self.is_short { &self.tack } else { &self.cubic }
    }
}

impl Controller for TwoWindows {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.cubic.on_sent(now, bytes, last_packet_number);
        self.tack.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        // quinn forgets no minimum while the path lasts, so that a path does not become long again.
        self.is_short = rtt.min() < SHORT;
        self.cubic.on_ack(now, sent, bytes, app_limited, rtt);
        self.tack.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        self.cubic.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
        self.tack.lead(self.law_leads);
        self.most_in_flight[0] = self.most_in_flight[0].max(in_flight);
        let rounds = self.tack.rounds();
        self.tack.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
        if self.tack.rounds() != rounds {
            self.end_round(now);
        }
        self.choose();
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        self.cubic.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
        self.tack.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
        self.choose();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = new_mtu;
        self.cubic.on_mtu_update(new_mtu);
        self.tack.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.active().window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.active().metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.cubic.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
