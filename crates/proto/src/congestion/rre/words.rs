//! All that the machine remembers as numbers, to be compared with what it remembers in C.

use super::super::clock::{Clock, Reading};
use super::super::estimate::Estimate;
use super::{Core, Parameters};

/// How many numbers.
pub const WORDS: usize = 55;

impl Core {
    /// The whole state, in the order of the fields. A field that is added here is missed in C by the tests.
    pub fn words(&self) -> [u64; WORDS] {
        let Self {
            parameters: Parameters { mss, initial_window, handshake_rtt_us, sender_tick_us, target_us },
            state,
            entered_us,
            clock,
            estimate: Estimate { rate: estimated, marked, mark_us, mark_delivered, used },
            delivered,
            delay_known,
            delay_min_us,
            delay_seen_us,
            fresh_known,
            fresh_min_us,
            adopt_us,
            buffer_us,
            round_end,
            round_read,
            round_reading: Reading { received_us, sent_us },
            round_delivered,
            start_window,
            start_rate,
            restarted,
            boost,
            boosted_us,
            hold_us,
            loss_us,
            lost_before,
            loss_threshold_us,
            emptied_us,
            smoothed_rtt_us,
            longest_rtt_us,
            heard_us,
            silences,
            collapsed,
            top_rate,
            last_top_rate,
            top_until_us,
            rate,
            window,
        } = *self;
        let [trust, tick_us, seen, value, echo, first_us, refused_us, ticks, edge, sent] =
            clock_words(&clock);
        [
            mss.into(),
            initial_window.into(),
            handshake_rtt_us.into(),
            sender_tick_us.into(),
            target_us.into(),
            state as u64,
            entered_us,
            trust,
            tick_us,
            seen,
            value,
            echo,
            first_us,
            refused_us,
            ticks,
            edge,
            sent,
            estimated,
            marked.into(),
            mark_us,
            mark_delivered,
            used.into(),
            delivered,
            delay_known.into(),
            delay_min_us as u64,
            delay_seen_us,
            fresh_known.into(),
            fresh_min_us as u64,
            adopt_us,
            buffer_us,
            round_end,
            round_read.into(),
            received_us,
            sent_us,
            round_delivered,
            start_window,
            start_rate,
            restarted.into(),
            boost.into(),
            boosted_us,
            hold_us,
            loss_us,
            lost_before.into(),
            loss_threshold_us,
            emptied_us,
            smoothed_rtt_us,
            longest_rtt_us,
            heard_us,
            silences.into(),
            collapsed.into(),
            top_rate,
            last_top_rate,
            top_until_us,
            rate,
            window,
        ]
    }
}

fn clock_words(clock: &Clock) -> [u64; 10] {
    let Clock {
        trust,
        tick_us,
        seen,
        last_value,
        last_echo,
        first_at_us,
        refused_at_us,
        ticks,
        edge_ticks,
        sent_us,
    } = *clock;
    [
        trust as u64,
        tick_us.into(),
        seen.into(),
        last_value.into(),
        last_echo.into(),
        first_at_us,
        refused_at_us,
        ticks,
        edge_ticks,
        sent_us as u64,
    ]
}
