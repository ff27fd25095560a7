/* The algorithm of bpf/rre.h on the host: reads events, writes the whole state after each. */
#include <stdio.h>
#include <string.h>

#include "../../../bpf/rre.h"

/* As crates/kernel/tests/same_in_c.rs writes it. */
struct event {
	u64 now_us;
	u32 kind;
	u32 numbers[13];
};

enum kind { START, HANDSHAKE, ACK, TIMEOUT, UNDO, TRANSMIT_START, SILENCE };

static void put(u64 word)
{
	fwrite(&word, sizeof(word), 1, stdout);
}

static void put_clock(const struct rre_clock *clock)
{
	put(clock->trust);
	put(clock->tick_us);
	put(clock->seen);
	put(clock->last_value);
	put(clock->last_echo);
	put(clock->least_tick_us);
	put(clock->first_at_us);
	put(clock->refused_at_us);
	put(clock->ticks);
	put(clock->edge_ticks);
	put(clock->sent_us);
	put(clock->lead_known);
	put(clock->lead_us);
}

static void put_all(const struct rre *rre)
{
	put(rre->parameters.mss);
	put(rre->parameters.initial_window);
	put(rre->parameters.handshake_rtt_us);
	put(rre->parameters.sender_tick_us);
	put(rre->parameters.target_us);
	put(rre->state);
	put(rre->entered_us);
	put_clock(&rre->clock);
	put(rre->estimate.rate);
	put(rre->estimate.marked);
	put(rre->estimate.mark_us);
	put(rre->estimate.mark_delivered);
	put(rre->estimate.used);
	put(rre->delivered);
	put(rre->delay_known);
	put(rre->delay_min_us);
	put(rre->delay_mins_us[0]);
	put(rre->delay_mins_us[1]);
	put(rre->delay_mins_us[2]);
	put(rre->delay_seen_us);
	put(rre->fresh_known);
	put(rre->fresh_min_us);
	put(rre->fresh_at_us);
	put(rre->adopt_us);
	put(rre->lower);
	put(rre->buffer_us);
	put(rre->repair_buffer_us);
	put(rre->repair_until_us);
	put(rre->round_end);
	put(rre->round_read);
	put(rre->round_reading.received_us);
	put(rre->round_reading.sent_us);
	put(rre->round_delivered);
	put(rre->start_window);
	put(rre->start_rate);
	put(rre->restarted);
	put(rre->boost);
	put(rre->boosted_us);
	put(rre->hold_us);
	put(rre->loss_us);
	put(rre->lost_before);
	put(rre->loss_threshold_us);
	put(rre->emptied_us);
	put(rre->smoothed_rtt_us);
	put(rre->latest_rtt_us);
	put(rre->longest_rtt_us);
	put(rre->heard_us);
	put(rre->silences);
	put(rre->collapsed);
	put(rre->top_rate);
	put(rre->last_top_rate);
	put(rre->top_until_us);
	put(rre->rate);
	put(rre->window);
	put(rre_silent_at_us(rre));
}

static void start(struct rre *rre, const struct event *event)
{
	const u32 *n = event->numbers;
	struct rre_parameters parameters = {
		.mss = n[0],
		.initial_window = n[1],
		.handshake_rtt_us = n[2],
		.sender_tick_us = n[3],
		.target_us = n[4],
	};

	memset(rre, 0, sizeof(*rre));
	rre_start(rre, &parameters, event->now_us);
}

static void on_ack(struct rre *rre, const struct event *event)
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

int main(void)
{
	struct event event;
	struct rre rre;

	memset(&rre, 0, sizeof(rre));
	while (fread(&event, sizeof(event), 1, stdin) == 1) {
		switch (event.kind) {
		case START:
			start(&rre, &event);
			break;
		case HANDSHAKE:
			rre_on_handshake(&rre, event.now_us, event.numbers[0], event.numbers[1]);
			break;
		case ACK:
			on_ack(&rre, &event);
			break;
		case TIMEOUT:
			rre_on_timeout(&rre, event.now_us);
			break;
		case UNDO:
			rre_on_undo(&rre);
			break;
		case TRANSMIT_START:
			rre_on_transmit_start(&rre, event.now_us);
			break;
		default:
			rre_on_silence(&rre, event.now_us);
		}
		put_all(&rre);
	}
	return 0;
}
