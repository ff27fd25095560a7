/* core.rs, and search.rs, delay.rs, feedback.rs, steering.rs, states.rs beside it: the machine. */

#define RRE_USUAL_THRESHOLD_US 80000
#define RRE_MAX_THRESHOLD_US 100000
#define RRE_MIN_LOSS_THRESHOLD_US 10000
#define RRE_MIDDLE_RATE 31250
#define RRE_MAX_HALVINGS 4
#define RRE_ONE 1024
#define RRE_MIN_GAIN 10
#define RRE_MAX_GAIN 256
#define RRE_TOP_GAIN 512
#define RRE_MAX_BOOST 5
#define RRE_DELAY_LIFETIME_US 10000000
#define RRE_DELAY_PERIODS 3
#define RRE_LONG_ROUNDS 4
#define RRE_VAIN_US 6000000
#define RRE_VAIN_LIFETIME_US 60000000
#define RRE_GIVE_WAY 6
#define RRE_LOOK_US 2000000
#define RRE_COMPETE_US 30000000
#define RRE_SILENCE_US 1000000
#define RRE_MAX_SILENCES 16
#define RRE_SPARE_WINDOW 65536
#define RRE_MAX_HELD_US 60000000
#define RRE_MAX_DELAY_US 5000000
#define RRE_TRAIN_PACKETS 8
#define RRE_MIN_TRAIN_US 5000
#define RRE_MAX_TRAIN_US 20000
#define RRE_UNKNOWN_RTT_US 1000000
#define RRE_MIN_TOP_US 1000000
#define RRE_TOP_US 30000000
#define RRE_MAX_MSS 65535
#define RRE_MAX_TICK_US 1000000
#define RRE_MAX_RATE 12500000000ULL
#define RRE_MAX_WINDOW 0x7fffffff
/* i64::MAX and u64::MAX. */
#define RRE_NO_DELAY_US 0x7fffffffffffffffLL
#define RRE_NEVER_US 0xffffffffffffffffULL

#include "rre_client.h"

enum rre_state { RRE_START, RRE_FILL, RRE_DRAIN, RRE_REFRESH, RRE_MONITOR, RRE_COMPETE };

enum rre_event {
	RRE_FOUND,
	RRE_BELOW,
	RRE_ABOVE,
	RRE_LOSS,
	RRE_STALE,
	RRE_EMPTIED,
	RRE_LONG,
	RRE_REPAIRED,
	RRE_TIMEOUT,
	RRE_SILENCE,
	RRE_REFILLED,
};

struct rre_parameters {
	u32 mss;
	u32 initial_window;
	u32 handshake_rtt_us;
	u32 sender_tick_us;
	u32 target_us;
	u32 spare;
};

struct rre_ack {
	u64 now_us;
	u32 stamped;
	u32 value;
	u32 echo;
	u32 advanced;
	u32 delivered;
	u32 lost;
	u32 in_flight;
	u32 rtt_us;
	u32 smoothed_rtt_us;
	u32 limited;
	u32 repairing;
	u32 spare;
};

/* Everything a sender remembers. */
struct rre {
	struct rre_parameters parameters;
	u64 entered_us;
	struct rre_clock clock;
	struct rre_estimate estimate;
	u64 delivered;
	s64 delay_min_us;
	s64 delay_mins_us[RRE_DELAY_PERIODS];
	u64 delay_seen_us;
	u64 lowered_us;
	s64 fresh_min_us;
	u64 fresh_at_us;
	u64 adopt_us;
	u64 buffer_us;
	u64 repair_buffer_us;
	u64 repair_until_us;
	u64 round_end;
	struct rre_reading round_reading;
	u64 round_delivered;
	u64 round_at_us;
	u64 round_lost;
	u64 start_window;
	u64 start_rate;
	u64 boosted_us;
	u64 hold_us;
	u64 loss_us;
	u64 loss_threshold_us;
	u64 drained_rate;
	u64 vain_buffer_us;
	s64 vain_delay_us;
	u64 vain_at_us;
	struct rre_cubic cubic;
	u64 competed_us;
	u64 emptied_us;
	u64 smoothed_rtt_us;
	u64 latest_rtt_us;
	u64 longest_rtt_us;
	u64 heard_us;
	u64 top_rate;
	u64 last_top_rate;
	u64 top_until_us;
	u64 rate;
	u64 window;
	u32 state;
	u32 delay_known;
	u32 fresh_known;
	u32 round_read;
	u32 restarted;
	u32 boost;
	u32 lost_before;
	u32 silences;
	u32 collapsed;
	u32 lower;
	u32 competing;
	u32 spare;
	struct rre_uplink uplink;
};

RRE u32 rre_next(u32 state, u32 event)
{
	u32 fills = state == RRE_FILL, drains = state == RRE_DRAIN, refreshes = state == RRE_REFRESH;
	u32 starts = state == RRE_START, monitors = state == RRE_MONITOR, competes = state == RRE_COMPETE;

	if ((starts && event == RRE_FOUND) || ((drains || competes) && event == RRE_BELOW) ||
	    (refreshes && event == RRE_EMPTIED))
		return RRE_FILL;
	if (((starts || fills) && (event == RRE_ABOVE || event == RRE_LOSS)) ||
	    ((fills || refreshes || competes) && event == RRE_TIMEOUT))
		return RRE_DRAIN;
	if ((fills || drains || competes) && event == RRE_STALE)
		return RRE_REFRESH;
	if ((drains && event == RRE_LONG) ||
	    ((fills || drains || refreshes || competes) && event == RRE_SILENCE) ||
	    (starts && event == RRE_TIMEOUT))
		return RRE_MONITOR;
	if ((monitors || refreshes) && event == RRE_REFILLED)
		return RRE_COMPETE;
	if (monitors && event == RRE_REPAIRED)
		return RRE_START;
	return state;
}

/* The binary logarithm in 1024ths. */
RRE u64 rre_log2(u64 value)
{
	u64 whole = 0, rest = value;

	if (rest >> 32) {
		whole += 32;
		rest >>= 32;
	}
	if (rest >> 16) {
		whole += 16;
		rest >>= 16;
	}
	if (rest >> 8) {
		whole += 8;
		rest >>= 8;
	}
	if (rest >> 4) {
		whole += 4;
		rest >>= 4;
	}
	if (rest >> 2) {
		whole += 2;
		rest >>= 2;
	}
	if (rest >> 1)
		whole += 1;
	rest = whole >= 10 ? value >> (whole - 10) : value << (10 - whole);
	return whole * RRE_ONE + (rest - RRE_ONE);
}

RRE u64 rre_share_of(u64 rate)
{
	u64 halvings = rre_less(rre_log2(rre_max(rate, RRE_MIDDLE_RATE)), rre_log2(RRE_MIDDLE_RATE)) / 2;

	return (RRE_ONE - halvings % RRE_ONE / 2) >> rre_min(halvings / RRE_ONE, RRE_MAX_HALVINGS);
}

RRE u64 rre_smoothed_us(const struct rre *rre)
{
	u64 known = rre->smoothed_rtt_us == 0 ? RRE_UNKNOWN_RTT_US : rre->smoothed_rtt_us;

	return rre_clamp(known, 1000, RRE_MAX_DELAY_US);
}

RRE u64 rre_feedback_us(const struct rre *rre)
{
	u64 smoothed_us = rre_smoothed_us(rre);

	return rre->latest_rtt_us == 0 ? smoothed_us : rre_min(smoothed_us, rre_max(rre->latest_rtt_us, 1000));
}

RRE u64 rre_packet_us(const struct rre *rre)
{
	return (u64)rre->parameters.mss * 1000000 / rre_max(rre->estimate.rate, 1);
}

RRE_STEP u64 rre_threshold_us(const struct rre *rre)
{
	u64 base_us, own_us;

	RRE_GIVEN(rre);
	base_us = rre->parameters.target_us;
	if (base_us == 0)
		base_us = RRE_USUAL_THRESHOLD_US;
	if (rre->loss_threshold_us != 0)
		base_us = rre_min(base_us, rre->loss_threshold_us);
	own_us = rre_max(base_us * rre_share_of(rre->estimate.rate) / RRE_ONE, RRE_MIN_LOSS_THRESHOLD_US);
	return rre_max(own_us, rre_min(2 * rre_packet_us(rre), RRE_MAX_THRESHOLD_US));
}

RRE u64 rre_gain(const struct rre *rre, u64 threshold_us)
{
	return rre_clamp(threshold_us * (RRE_ONE / 2) / rre_feedback_us(rre), RRE_MIN_GAIN, RRE_MAX_GAIN);
}

RRE void rre_forget_delays(struct rre *rre, u64 now_us)
{
	rre->estimate.marked = 0;
	rre->delay_known = 0;
	rre->delay_seen_us = now_us;
	rre->fresh_known = 0;
	rre->adopt_us = 0;
	rre->buffer_us = 0;
	rre->vain_at_us = 0;
	rre->round_read = 0;
	rre_uplink_forget(&rre->uplink);
}

RRE void rre_end_period(struct rre *rre, u64 now_us)
{
	s64 least_us;

	rre->adopt_us = 0;
	rre->delay_seen_us = now_us;
	if (!rre->fresh_known)
		return;
	if (now_us >= rre->loss_us + RRE_DELAY_LIFETIME_US)
		rre->loss_threshold_us = rre_min(rre->loss_threshold_us * 3 / 2, RRE_MAX_DELAY_US);
	rre->delay_seen_us = rre->fresh_at_us;
	rre->delay_mins_us[2] = rre->delay_mins_us[1];
	rre->delay_mins_us[1] = rre->delay_mins_us[0];
	rre->delay_mins_us[0] = rre->fresh_min_us;
	least_us = rre->delay_mins_us[0];
	if (rre->delay_mins_us[1] < least_us)
		least_us = rre->delay_mins_us[1];
	if (rre->delay_mins_us[2] < least_us)
		least_us = rre->delay_mins_us[2];
	rre->delay_min_us = least_us;
}

RRE void rre_no_delays(struct rre *rre)
{
	rre->delay_mins_us[0] = RRE_NO_DELAY_US;
	rre->delay_mins_us[1] = RRE_NO_DELAY_US;
	rre->delay_mins_us[2] = RRE_NO_DELAY_US;
}

RRE_STEP u32 rre_compete(struct rre *rre, u64 now_us)
{
	u64 known, smoothed_us, peak;

	RRE_GIVEN(rre);
	rre->competed_us = 0;
	if (rre->competing)
		return 0;
	rre->competing = 1;
	known = rre->estimate.rate;
	smoothed_us = rre_smoothed_us(rre);
	peak = rre_max(rre->drained_rate, known) * smoothed_us / 1000000;
	rre_cubic_new(&rre->cubic, now_us, known * smoothed_us / 1000000, peak, rre->parameters.mss);
	rre->delay_min_us = rre->vain_delay_us;
	rre->delay_mins_us[0] = rre->vain_delay_us;
	return 0;
}

RRE_STEP u32 rre_enter(struct rre *rre, u32 event, u64 now_us)
{
	u32 next;

	RRE_GIVEN(rre);
	next = rre_next(rre->state, event);
	if (next == rre->state)
		return 0;
	rre->state = next;
	rre->entered_us = now_us;
	rre->boost = 0;
	rre->boosted_us = now_us;
	if (next == RRE_START) {
		rre->restarted = 1;
		rre->estimate.marked = 0;
		rre->round_read = 0;
		rre->loss_threshold_us = 0;
		rre_no_delays(rre);
		rre_end_period(rre, now_us);
		rre->round_end = 0;
		rre->longest_rtt_us = rre->smoothed_rtt_us;
	} else if (next == RRE_REFRESH) {
		rre->emptied_us = now_us + 2 * rre_clamp(rre->buffer_us, rre_threshold_us(rre), RRE_MAX_DELAY_US);
		rre->fresh_known = 0;
		rre->adopt_us = rre->emptied_us + 2 * rre_feedback_us(rre);
	} else if (next == RRE_MONITOR) {
		rre->start_rate = event == RRE_SILENCE ? rre->rate : rre_max(rre->rate / 2, 1);
		rre->vain_buffer_us = event == RRE_LONG ? rre->buffer_us : 0;
		rre->competing = 0;
		rre->fresh_known = 0;
		rre->adopt_us = 0;
	} else if (next == RRE_COMPETE) {
		rre_compete(rre, now_us);
	} else {
		if (next == RRE_DRAIN && rre->vain_at_us == 0)
			rre->drained_rate = rre->estimate.rate;
		rre->competing = 0;
	}
	return 0;
}

RRE u64 rre_rate_of_state(const struct rre *rre, u64 now_us)
{
	u64 known = rre->estimate.rate, threshold_us = rre_threshold_us(rre);
	u64 gain = rre_gain(rre, threshold_us), excess, train_us, window;

	switch (rre->state) {
	case RRE_START:
		if (rre->restarted)
			return rre->start_rate;
		train_us = rre_clamp(rre->parameters.handshake_rtt_us / 2, RRE_MIN_TRAIN_US, RRE_MAX_TRAIN_US);
		if (rre->start_window <= rre->parameters.initial_window)
			train_us = RRE_MIN_TRAIN_US;
		return rre->start_window * 1000000 / train_us;
	case RRE_FILL:
		if (now_us < rre->lowered_us + rre_feedback_us(rre))
			return known + known * RRE_MIN_GAIN / RRE_ONE;
		return known + known * rre_min(gain << (rre->boost & 31), RRE_TOP_GAIN) / RRE_ONE;
	case RRE_DRAIN:
		excess = gain * rre_min(rre->buffer_us, RRE_MAX_DELAY_US) / rre_max(threshold_us, 1);
		return known - known * rre_clamp(excess, gain, RRE_TOP_GAIN) / RRE_ONE;
	case RRE_REFRESH:
		return known / 2;
	case RRE_COMPETE:
		window = rre_min(rre_cubic_window(&rre->cubic, now_us, rre->parameters.mss), RRE_MAX_WINDOW);
		return rre_min(window * 1000000 / rre_smoothed_us(rre), 2 * known);
	default:
		return known > 0 ? rre_min(rre->start_rate, 2 * known) : rre->start_rate;
	}
}

RRE_STEP u32 rre_steer(struct rre *rre, u64 now_us)
{
	u64 mss, least, held_us, window;

	RRE_GIVEN(rre);
	mss = rre->parameters.mss;
	least = 2 * mss * 1000000 / rre_max(rre_feedback_us(rre), RRE_MAX_THRESHOLD_US);
	rre->rate = rre_clamp(rre_rate_of_state(rre, now_us) >> (rre->silences & 63), least, RRE_MAX_RATE);
	held_us = rre_clamp(rre->longest_rtt_us, rre_feedback_us(rre), RRE_MAX_HELD_US);
	if (rre->state == RRE_START && !rre->restarted)
		window = rre->start_window;
	else
		window = rre_max(rre->rate, rre->estimate.rate) * held_us / 1000000 + RRE_SPARE_WINDOW;
	if (rre->estimate.provisional && !rre->restarted)
		window = rre_min(window, rre->start_window);
	if (rre->uplink.bound > 0)
		window = rre_min(window, rre->uplink.bound);
	rre->window = rre->collapsed ? mss : rre_clamp(window, 2 * mss, RRE_MAX_WINDOW);
	if (now_us >= rre->top_until_us) {
		rre->last_top_rate = rre->top_rate;
		rre->top_rate = 0;
		rre->top_until_us = now_us + rre_clamp(4 * rre_smoothed_us(rre), RRE_MIN_TOP_US, RRE_TOP_US);
	}
	rre->top_rate = rre_max(rre->top_rate, rre->rate);
	return 0;
}

/* `rre` is all zeros. */
RRE void rre_start(struct rre *rre, const struct rre_parameters *parameters, u64 now_us)
{
	rre->parameters = *parameters;
	rre->parameters.mss = rre_clamp(parameters->mss, 1, RRE_MAX_MSS);
	rre->parameters.sender_tick_us = rre_clamp(parameters->sender_tick_us, 1, RRE_MAX_TICK_US);
	rre->parameters.target_us = rre_min(parameters->target_us, RRE_MAX_DELAY_US);
	rre->state = RRE_START;
	rre->entered_us = now_us;
	rre->delay_seen_us = now_us;
	rre->lowered_us = now_us;
	rre->start_window = rre_max(parameters->initial_window, rre->parameters.mss);
	rre->boosted_us = now_us;
	rre->smoothed_rtt_us = parameters->handshake_rtt_us;
	rre->longest_rtt_us = parameters->handshake_rtt_us;
	rre->repair_buffer_us = RRE_NEVER_US;
	rre->heard_us = now_us;
	rre->top_until_us = now_us;
	rre_steer(rre, now_us);
}

RRE void rre_on_handshake(struct rre *rre, u64 now_us, u32 value, u32 echo)
{
	rre_clock_on_ack(&rre->clock, now_us, value, echo, 1, rre->parameters.sender_tick_us);
}

/* Considers, before the first data, what is known of the client. */
RRE void rre_recall(struct rre *rre, const struct rre_client *client, u64 now_us, u32 repeated)
{
	if (!rre_client_bounds(client, now_us, rre->parameters.handshake_rtt_us, repeated))
		return;
	rre->uplink.bound = rre->start_window;
	rre->uplink.is_fresh = 1;
	rre_steer(rre, now_us);
}

RRE u32 rre_tells(const struct rre *rre)
{
	return rre_uplink_tells(&rre->uplink, rre->delivered, rre->parameters.mss);
}

/* Adds what this connection shows, if rre_tells, to what is known of its client. */
RRE void rre_tell(const struct rre *rre, struct rre_client *client)
{
	rre_uplink_tell(&rre->uplink, client, rre->heard_us, rre->delivered, rre->parameters.mss);
}

RRE void rre_hear(struct rre *rre, const struct rre_ack *ack)
{
	u32 halvings = rre->silences & 63;

	rre->delivered += ack->delivered;
	if (ack->smoothed_rtt_us > 0)
		rre->smoothed_rtt_us = ack->smoothed_rtt_us;
	rre->longest_rtt_us = rre_max(rre->longest_rtt_us, ack->rtt_us);
	if (ack->rtt_us > 0)
		rre->latest_rtt_us = ack->rtt_us;
	rre->heard_us = ack->now_us;
	if (halvings > 0) {
		rre->estimate.rate = rre_max(rre->estimate.rate >> halvings, rre_min(rre->estimate.rate, 1));
		rre->start_rate = rre_max(rre->start_rate >> halvings, 1);
		rre->estimate.marked = 0;
		rre->silences = 0;
	}
	if (ack->delivered > 0) {
		rre->collapsed = 0;
		rre_uplink_count(&rre->uplink, ack->now_us);
	}
}

RRE_STEP u32 rre_read(struct rre *rre, const struct rre_ack *ack, struct rre_reading *reading)
{
	u32 trust;
	u64 sent_us;

	RRE_GIVEN(rre);
	RRE_GIVEN(ack);
	RRE_GIVEN(reading);
	trust = rre->clock.trust;
	sent_us = ack->rtt_us == 0 ? 0 : rre_less(ack->now_us, ack->rtt_us);
	if (ack->stamped) {
		if (!rre_clock_on_ack(&rre->clock, ack->now_us, ack->value, ack->echo, ack->advanced,
				      rre->parameters.sender_tick_us) ||
		    rre_clock_begin_anew(&rre->clock, ack->now_us, sent_us))
			rre_forget_delays(rre, ack->now_us);
	} else if (trust != RRE_REFUSED && rre->delivered >= (u64)2 * RRE_SAMPLE_TICKS * rre->parameters.mss) {
		rre->clock.trust = RRE_REFUSED;
		rre->clock.tick_us = 0;
		rre_forget_delays(rre, ack->now_us);
	}
	if (!ack->advanced && ack->delivered == 0)
		return 0;
	if (rre->clock.trust == RRE_REFUSED) {
		reading->received_us = ack->now_us;
		reading->sent_us = sent_us;
		return ack->rtt_us > 0;
	}
	return rre_clock_read(&rre->clock, sent_us, reading);
}

RRE void rre_use_buffer(struct rre *rre, u64 now_us, u64 buffer_us, u32 repairing)
{
	if (!repairing) {
		rre->buffer_us = buffer_us;
		rre->repair_until_us = 0;
	} else if (rre->repair_until_us == 0) {
		rre->repair_buffer_us = buffer_us;
		rre->repair_until_us = now_us + rre_feedback_us(rre);
	} else {
		rre->repair_buffer_us = rre_min(rre->repair_buffer_us, buffer_us);
		if (now_us >= rre->repair_until_us) {
			rre->buffer_us = rre->repair_buffer_us;
			rre->repair_until_us = 0;
		}
	}
}

RRE_STEP u32 rre_measure(struct rre *rre, u64 now_us, const struct rre_reading *reading, u32 repairing)
{
	s64 delay_us;
	u64 threshold_us;

	RRE_GIVEN(rre);
	RRE_GIVEN(reading);
	delay_us = (s64)reading->received_us - (s64)reading->sent_us;
	if (!rre->fresh_known || delay_us < rre->fresh_min_us) {
		rre->fresh_known = 1;
		rre->fresh_min_us = delay_us;
		rre->fresh_at_us = now_us;
	}
	if (rre->adopt_us != 0 &&
	    now_us >= rre_min(rre->adopt_us, rre->emptied_us + 2 * rre_feedback_us(rre)))
		rre_end_period(rre, now_us);
	if (!rre->delay_known) {
		rre->delay_known = 1;
		rre_no_delays(rre);
		rre->delay_min_us = RRE_NO_DELAY_US;
	}
	threshold_us = rre_threshold_us(rre);
	rre->lower = rre->delay_min_us != RRE_NO_DELAY_US &&
		     delay_us + (s64)(threshold_us / 8) < rre->delay_min_us;
	if (rre->state == RRE_REFRESH && rre->lower) {
		rre->emptied_us = rre_max(rre->emptied_us, now_us + 4 * threshold_us);
		rre->adopt_us = rre->emptied_us + 2 * rre_feedback_us(rre);
	}
	if (delay_us < rre->delay_min_us)
		rre->lowered_us = now_us;
	if (delay_us <= rre->delay_min_us) {
		rre->delay_min_us = delay_us;
		rre->delay_mins_us[0] = delay_us;
		rre->delay_seen_us = now_us;
	}
	if (delay_us - rre->vain_delay_us < (s64)threshold_us || now_us >= rre->vain_at_us + RRE_VAIN_LIFETIME_US)
		rre->vain_at_us = 0;
	rre_use_buffer(rre, now_us, delay_us - rre->delay_min_us, repairing);
	return 0;
}

RRE u64 rre_longer_tick_us(const struct rre *rre)
{
	return rre_max(rre->clock.tick_us, rre->parameters.sender_tick_us);
}

RRE_STEP u32 rre_estimate_rate(struct rre *rre, u64 now_us, const struct rre_reading *reading)
{
	u64 most, threshold_us;
	u32 taken;

	RRE_GIVEN(rre);
	RRE_GIVEN(reading);
	if (rre->state == RRE_REFRESH) {
		rre->estimate.marked = 0;
		return 0;
	}
	most = rre_max(rre->top_rate, rre->last_top_rate);
	threshold_us = rre_threshold_us(rre);
	taken = rre_estimate_on_reading(&rre->estimate, reading, rre->delivered, rre_longer_tick_us(rre),
					rre->parameters.mss, most, 2 * threshold_us,
					rre->buffer_us > threshold_us / 2);
	if (taken == RRE_NOT_TAKEN)
		return 0;
	if (taken == RRE_LOSSY) {
		rre->hold_us = now_us + rre_feedback_us(rre);
		rre_enter(rre, RRE_LOSS, now_us);
	}
	if (rre->state != RRE_FILL || rre->buffer_us >= rre_threshold_us(rre) / 4) {
		rre->boost = 0;
		rre->boosted_us = now_us;
	} else if (now_us >= rre->boosted_us + rre_feedback_us(rre)) {
		rre->boost = rre_min(rre->boost + 1, RRE_MAX_BOOST);
		rre->boosted_us = now_us;
	}
	return 0;
}

RRE_STEP u32 rre_is_found(struct rre *rre, u64 now_us, const struct rre_reading *reading)
{
	u64 octets, received_us, sent_us, tick_us, slower_us;
	u32 lossy;

	RRE_GIVEN(rre);
	RRE_GIVEN(reading);
	octets = rre->delivered - rre->round_delivered;
	received_us = rre_less(reading->received_us, rre->round_reading.received_us);
	sent_us = rre_less(reading->sent_us, rre->round_reading.sent_us);
	tick_us = rre_longer_tick_us(rre);
	slower_us = tick_us;
	if (rre->buffer_us <= rre_threshold_us(rre))
		slower_us = sent_us / 4 + RRE_SAMPLE_TICKS * tick_us;
	lossy = rre->round_lost > octets / RRE_MUCH_LOST && received_us >= RRE_SAMPLE_TICKS * tick_us;
	if (octets < (u64)RRE_TRAIN_PACKETS * rre->parameters.mss || (received_us < sent_us + slower_us && !lossy))
		return 0;
	rre->estimate.rate = rre_clamp(octets * 1000000 / received_us, 1, RRE_MAX_RATE);
	rre->estimate.provisional = 1;
	if (rre_less(now_us, rre->round_at_us) > 2 * received_us + tick_us)
		rre->start_window = RRE_MAX_WINDOW;
	return 1;
}

RRE_STEP u32 rre_seek(struct rre *rre, u64 now_us, const struct rre_reading *reading, const struct rre_ack *ack)
{
	u32 new_round;

	RRE_GIVEN(rre);
	RRE_GIVEN(reading);
	RRE_GIVEN(ack);
	if (rre->round_read && rre_is_found(rre, now_us, reading)) {
		rre->estimate.marked = 0;
		rre_enter(rre, RRE_FOUND, now_us);
		return 0;
	}
	new_round = rre->delivered > rre->round_end;
	if (new_round) {
		rre->round_end = rre->delivered + ack->in_flight;
		if (!rre->restarted && !ack->limited)
			rre->start_window = rre_min(3 * rre->start_window, RRE_MAX_WINDOW);
	}
	if (new_round || !rre->round_read) {
		rre->round_read = 1;
		rre->round_reading = *reading;
		rre->round_delivered = rre->delivered;
		rre->round_at_us = now_us;
		rre->round_lost = 0;
	}
	return 0;
}

RRE_STEP u32 rre_on_lost(struct rre *rre, u64 now_us, u32 lost)
{
	u64 feedback_us;

	RRE_GIVEN(rre);
	rre->estimate.lost = rre_min(rre->estimate.lost + lost, RRE_MOST_OCTETS);
	rre->round_lost += lost;
	feedback_us = rre_feedback_us(rre);
	if (rre->buffer_us < RRE_MIN_LOSS_THRESHOLD_US || now_us < rre->loss_us + feedback_us)
		return 0;
	rre->loss_us = now_us;
	if (rre->state == RRE_COMPETE) {
		rre_cubic_on_lost(&rre->cubic, now_us, rre->parameters.mss);
		return 0;
	}
	rre->hold_us = now_us + (rre->lost_before ? feedback_us * 3 / 4 : feedback_us);
	rre->lost_before = 1;
	if (rre->buffer_us * 3 / 4 < rre_threshold_us(rre))
		rre->loss_threshold_us = rre->buffer_us * 3 / 4 * RRE_ONE / rre_share_of(rre->estimate.rate);
	if (rre->state == RRE_START && rre->estimate.rate == 0)
		rre->estimate.rate = rre_clamp(rre->start_window / 3 * 1000000 / feedback_us, 1, RRE_MAX_RATE);
	rre_enter(rre, RRE_LOSS, now_us);
	return 0;
}

RRE_STEP u32 rre_is_refilled(struct rre *rre, u64 now_us)
{
	u32 again;
	s64 path_us;

	RRE_GIVEN(rre);
	if (rre->vain_buffer_us == 0 || !rre->fresh_known || !rre->delay_known)
		return 0;
	again = rre->vain_at_us != 0;
	path_us = rre->delay_min_us;
	if (again && rre->vain_delay_us < path_us)
		path_us = rre->vain_delay_us;
	if (rre->fresh_min_us - path_us <= (s64)rre_threshold_us(rre)) {
		rre->vain_at_us = 0;
		return 0;
	}
	rre->vain_delay_us = path_us;
	if (!again)
		rre->vain_at_us = now_us;
	return again && now_us >= rre->vain_at_us + RRE_VAIN_US;
}

RRE u32 rre_is_stale(struct rre *rre, u64 now_us)
{
	u32 give_way;

	if (rre->state != RRE_COMPETE)
		return now_us >= rre->delay_seen_us + RRE_DELAY_LIFETIME_US;
	rre->competed_us = rre_max(rre->competed_us, rre->buffer_us);
	give_way = rre->buffer_us < rre->competed_us - rre->competed_us / RRE_GIVE_WAY;
	if (give_way)
		rre->competed_us = rre->buffer_us;
	return now_us >= rre->entered_us + (give_way ? RRE_LOOK_US : RRE_COMPETE_US);
}

RRE_STEP u32 rre_decide(struct rre *rre, const struct rre_ack *ack)
{
	u64 now_us, feedback_us, per_delay, emptied_us, threshold_us;
	u32 repairs, stands, stale;

	RRE_GIVEN(rre);
	RRE_GIVEN(ack);
	now_us = ack->now_us;
	feedback_us = rre_feedback_us(rre);
	/* Losses may be many: monitoring repairs faster too while the buffer is empty. */
	repairs = rre->state == RRE_MONITOR && rre->estimate.rate > 0 &&
		  rre->buffer_us < rre_threshold_us(rre) / 2;
	if ((rre->state == RRE_START || repairs) && !ack->limited) {
		per_delay = (u64)ack->delivered * 1000000 / feedback_us;
		rre->start_rate = rre_clamp(rre_min(rre->start_rate + per_delay, 2 * rre->estimate.rate), 1,
					    RRE_MAX_RATE);
	}
	emptied_us = rre->entered_us +
		     rre_max(feedback_us, 2 * rre_min(rre->vain_buffer_us, feedback_us));
	if (rre->state == RRE_MONITOR && !ack->repairing && now_us >= emptied_us)
		rre_enter(rre, rre_is_refilled(rre, now_us) ? RRE_REFILLED : RRE_REPAIRED, now_us);
	if (rre->state == RRE_REFRESH && now_us >= rre->emptied_us) {
		stands = rre->competing && rre->buffer_us > rre_threshold_us(rre);
		rre_enter(rre, stands ? RRE_REFILLED : RRE_EMPTIED, now_us);
	}
	if (rre->state == RRE_DRAIN && rre->buffer_us > rre_threshold_us(rre) &&
	    now_us >= rre->entered_us + RRE_LONG_ROUNDS * rre_smoothed_us(rre))
		rre_enter(rre, RRE_LONG, now_us);
	if (!rre->delay_known || rre->estimate.rate == 0)
		return 0;
	threshold_us = rre_threshold_us(rre);
	if (rre->buffer_us > threshold_us)
		rre_enter(rre, RRE_ABOVE, now_us);
	else if (rre->buffer_us < threshold_us / 2 + rre_packet_us(rre) && now_us >= rre->hold_us)
		rre_enter(rre, RRE_BELOW, now_us);
	stale = rre_is_stale(rre, now_us);
	if (rre->adopt_us == 0 && (stale || rre->lower))
		rre_enter(rre, RRE_STALE, now_us);
	return 0;
}

RRE void rre_on_ack(struct rre *rre, const struct rre_ack *ack)
{
	struct rre_reading reading = {};
	/* Where ACKs were lost, the ACK that ends a timeout or silence answers data sent long before it. */
	u32 ends_wait = rre->collapsed || rre->silences > 0;

	rre_hear(rre, ack);
	if (rre_read(rre, ack, &reading) && !ends_wait) {
		rre_uplink_on_reading(&rre->uplink, ack->now_us, &reading, rre->delivered, ack->in_flight);
		rre_measure(rre, ack->now_us, &reading, ack->repairing);
		if (rre->state != RRE_START || rre->restarted)
			rre_estimate_rate(rre, ack->now_us, &reading);
		if (rre->state == RRE_START)
			rre_seek(rre, ack->now_us, &reading, ack);
	}
	if (ack->lost > 0)
		rre_on_lost(rre, ack->now_us, ack->lost);
	rre_decide(rre, ack);
	rre_steer(rre, ack->now_us);
}

RRE void rre_on_timeout(struct rre *rre, u64 now_us)
{
	rre->collapsed = 1;
	rre->hold_us = now_us + rre_feedback_us(rre);
	rre_enter(rre, RRE_TIMEOUT, now_us);
	rre_steer(rre, now_us);
}

RRE void rre_on_undo(struct rre *rre)
{
	rre->collapsed = 0;
	rre_steer(rre, rre->heard_us);
}

RRE u64 rre_silent_at_us(const struct rre *rre)
{
	return rre->heard_us +
	       rre_max(RRE_SILENCE_US, 2 * rre_feedback_us(rre)) * (u64)(rre->silences + 1);
}

RRE void rre_on_transmit_start(struct rre *rre, u64 now_us)
{
	rre->heard_us = now_us;
	rre->silences = 0;
	rre->estimate.marked = 0;
	rre_steer(rre, now_us);
}

RRE void rre_on_silence(struct rre *rre, u64 now_us)
{
	rre->silences = rre_min(rre->silences + 1, RRE_MAX_SILENCES);
	rre_enter(rre, RRE_SILENCE, now_us);
	rre_steer(rre, now_us);
}
