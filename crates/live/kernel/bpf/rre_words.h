/* For tests: events as they are told, and all that the algorithm remembers as numbers, in the order of
 * crates/core/congestion/src/rre/words.rs; then when silence is due, and what is known of the client.
 */
#ifndef TACIT_RRE_WORDS_H
#define TACIT_RRE_WORDS_H

#include "rre.h"

#define RRE_WORDS 96

/* As crates/live/kernel/tests/same_in_c.rs writes it. */
struct rre_told {
	u64 now_us;
	u32 kind;
	u32 numbers[13];
};

enum rre_told_kind {
	RRE_TOLD_START,
	RRE_TOLD_HANDSHAKE,
	RRE_TOLD_ACK,
	RRE_TOLD_TIMEOUT,
	RRE_TOLD_UNDO,
	RRE_TOLD_TRANSMIT_START,
	RRE_TOLD_SILENCE,
	RRE_TOLD_RECALL,
	RRE_TOLD_ANOTHER_CLIENT,
};

RRE void rre_happen_start(struct rre *rre, const struct rre_told *event)
{
	const u32 *n = event->numbers;
	struct rre_parameters parameters = {
		.mss = n[0],
		.initial_window = n[1],
		.handshake_rtt_us = n[2],
		.sender_tick_us = n[3],
		.target_us = n[4],
	};

	__builtin_memset(rre, 0, sizeof(*rre));
	rre_start(rre, &parameters, event->now_us);
}

RRE void rre_happen_ack(struct rre *rre, const struct rre_told *event)
{
	const u32 *n = event->numbers;
	struct rre_ack ack = {
		.now_us = event->now_us,
		.stamped = n[0],
		.value = n[1],
		.echo = n[2],
		.advanced = n[3],
		.delivered = n[4],
		.lost = n[5],
		.in_flight = n[6],
		.rtt_us = n[7],
		.smoothed_rtt_us = n[8],
		.limited = n[9],
		.repairing = n[10],
	};

	rre_on_ack(rre, &ack);
}

/* `client` is known across connections. */
RRE void rre_happen(struct rre *rre, struct rre_client *client, const struct rre_told *event)
{
	switch (event->kind) {
	case RRE_TOLD_START:
		rre_happen_start(rre, event);
		break;
	case RRE_TOLD_HANDSHAKE:
		rre_on_handshake(rre, event->now_us, event->numbers[0], event->numbers[1]);
		break;
	case RRE_TOLD_ACK:
		rre_happen_ack(rre, event);
		break;
	case RRE_TOLD_TIMEOUT:
		rre_on_timeout(rre, event->now_us);
		break;
	case RRE_TOLD_UNDO:
		rre_on_undo(rre);
		break;
	case RRE_TOLD_TRANSMIT_START:
		rre_on_transmit_start(rre, event->now_us);
		break;
	case RRE_TOLD_RECALL:
		rre_recall(rre, client, event->now_us, event->numbers[0]);
		break;
	case RRE_TOLD_ANOTHER_CLIENT:
		__builtin_memset(client, 0, sizeof(*client));
		return;
	default:
		rre_on_silence(rre, event->now_us);
	}
	if (rre_tells(rre))
		rre_tell(rre, client);
}

RRE void rre_words(const struct rre *rre, const struct rre_client *client, u64 words[RRE_WORDS])
{
	words[0] = rre->parameters.mss;
	words[1] = rre->parameters.initial_window;
	words[2] = rre->parameters.handshake_rtt_us;
	words[3] = rre->parameters.sender_tick_us;
	words[4] = rre->parameters.target_us;
	words[5] = rre->state;
	words[6] = rre->entered_us;
	words[7] = rre->clock.trust;
	words[8] = rre->clock.tick_us;
	words[9] = rre->clock.seen;
	words[10] = rre->clock.last_value;
	words[11] = rre->clock.last_echo;
	words[12] = rre->clock.least_tick_us;
	words[13] = rre->clock.first_at_us;
	words[14] = rre->clock.refused_at_us;
	words[15] = rre->clock.ticks;
	words[16] = rre->clock.edge_ticks;
	words[17] = rre->clock.sent_us;
	words[18] = rre->clock.lead_known;
	words[19] = rre->clock.lead_us;
	words[20] = rre->estimate.rate;
	words[21] = rre->estimate.provisional;
	words[22] = rre->estimate.marked;
	words[23] = rre->estimate.mark_us;
	words[24] = rre->estimate.mark_sent_us;
	words[25] = rre->estimate.mark_delivered;
	words[26] = rre->estimate.used_once;
	words[27] = rre->estimate.used_throughout;
	words[28] = rre->estimate.lost;
	words[29] = rre->delivered;
	words[30] = rre->delay_known;
	words[31] = rre->delay_min_us;
	words[32] = rre->delay_mins_us[0];
	words[33] = rre->delay_mins_us[1];
	words[34] = rre->delay_mins_us[2];
	words[35] = rre->delay_seen_us;
	words[36] = rre->lowered_us;
	words[37] = rre->fresh_known;
	words[38] = rre->fresh_min_us;
	words[39] = rre->fresh_at_us;
	words[40] = rre->adopt_us;
	words[41] = rre->lower;
	words[42] = rre->buffer_us;
	words[43] = rre->repair_buffer_us;
	words[44] = rre->repair_until_us;
	words[45] = rre->round_end;
	words[46] = rre->round_read;
	words[47] = rre->round_reading.received_us;
	words[48] = rre->round_reading.sent_us;
	words[49] = rre->round_delivered;
	words[50] = rre->round_at_us;
	words[51] = rre->round_lost;
	words[52] = rre->start_window;
	words[53] = rre->start_rate;
	words[54] = rre->restarted;
	words[55] = rre->boost;
	words[56] = rre->boosted_us;
	words[57] = rre->hold_us;
	words[58] = rre->loss_us;
	words[59] = rre->lost_before;
	words[60] = rre->loss_threshold_us;
	words[61] = rre->drained_rate;
	words[62] = rre->vain_buffer_us;
	words[63] = rre->vain_delay_us;
	words[64] = rre->vain_at_us;
	words[65] = rre->cubic.peak;
	words[66] = rre->cubic.plateau_us;
	words[67] = rre->competing;
	words[68] = rre->competed_us;
	words[69] = rre->emptied_us;
	words[70] = rre->smoothed_rtt_us;
	words[71] = rre->latest_rtt_us;
	words[72] = rre->longest_rtt_us;
	words[73] = rre->heard_us;
	words[74] = rre->silences;
	words[75] = rre->collapsed;
	words[76] = rre->top_rate;
	words[77] = rre->last_top_rate;
	words[78] = rre->top_until_us;
	words[79] = rre->rate;
	words[80] = rre->window;
	words[81] = rre->uplink.acks;
	words[82] = rre->uplink.first_us;
	words[83] = rre->uplink.lag_known;
	words[84] = rre->uplink.least_lag_us;
	words[85] = rre->uplink.wait_us;
	words[86] = rre->uplink.bound;
	words[87] = rre->uplink.round_end;
	words[88] = rre->uplink.round_us;
	words[89] = rre->uplink.is_fresh;
	words[90] = rre->uplink.read_us;
	words[91] = rre_silent_at_us(rre);
	words[92] = client->heard_us;
	words[93] = client->wait_us;
	words[94] = client->excess_us;
	words[95] = client->vain_us;
}

#endif
