/* Which ACKs may wait, and for how long, the decisions alone: no kernel types, no clock, integers only.
 *
 * This is crates/core/between/src/ack_hold/{thin,uplink}.rs in C, function by function and number by number; the reasons are
 * there. The eBPF program includes it, and so does the test that compares both on the host
 * (crates/live/kernel/tests/thin_in_c.rs). Times are in nanoseconds. What Rust has as `None` is a flag here that is zero.
 */
#ifndef TACIT_THIN_H
#define TACIT_THIN_H

#include "integers.h"

#define THIN static __always_inline

/* The verdict that a packet goes to the queue now. Any other is the longest time that it may wait. */
#define THIN_PASS (~0ull)

#define THIN_FIRST_SEGMENTS 100
#define THIN_PAUSE 1000000000ull
#define THIN_MOST_SEGMENTS 64
#define THIN_WINDOW_PARTS 4
#define THIN_ROUND_TRIP_PARTS 4
#define THIN_LONGEST_HOLD 100000000ull
#define THIN_DEFAULT_MSS 536
#define THIN_ETHERNET_MSS 1460
#define THIN_PACKETS_MEASURED 4
#define THIN_AMOUNT_MAX (1ull << 31)
#define THIN_RATE_MAX 1000000000000ull
#define THIN_NANOBITS 8000000000ull

enum { THIN_FIN = 1, THIN_SYN = 2, THIN_RST = 4, THIN_PSH = 8, THIN_ACK = 16 };

struct thin_segment {
	u32 seq;
	u32 ack;
	u32 payload_len;
	u32 value;
	u32 echo;
	u16 window;
	u16 mss;
	u8 flags;
	u8 has_timestamps;
	u8 has_sack;
	u8 has_mss;
	u8 has_scale;
	u8 scale;
};

struct thin_uplink {
	u64 rate;
	u64 busy_since;
	u64 busy_sent;
	u64 largest;
	u64 last;
	u64 free_at;
	u64 data_until;
	u64 is_busy;
};

struct thin_flow {
	u64 last_at;
	u64 syn_at;
	u64 echo_at;
	u64 smoothed;
	/* Zero if no segment was seen. */
	u32 mss;
	u32 first;
	u32 last;
	u32 passed;
	u32 window;
	u32 finished;
	u32 echo;
	u32 stamped;
	u8 scale;
	u8 has_acks;
	u8 last_has_sack;
	u8 has_finished;
	u8 probed;
	u8 has_syn;
	u8 has_echo;
	u8 has_stamped;
	u8 has_smoothed;
	u8 spare[7];
};

THIN u64 thin_min(u64 a, u64 b)
{
	return a < b ? a : b;
}

THIN u64 thin_max(u64 a, u64 b)
{
	return a > b ? a : b;
}

THIN u64 thin_since(u64 now, u64 then)
{
	return now > then ? now - then : 0;
}

/* In the circular order of sequence numbers and timestamps. */
THIN int thin_before(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}

/* ACKs and nothing else, as AckInfo::of() has it: ECE and CWR may be set. */
THIN int thin_is_pure(const struct thin_segment *segment)
{
	return segment->payload_len == 0 && (segment->flags & THIN_ACK) &&
	       !(segment->flags & (THIN_FIN | THIN_SYN | THIN_RST | THIN_PSH | 32));
}

THIN int thin_is_plain(const struct thin_segment *segment)
{
	return thin_is_pure(segment) && segment->flags == THIN_ACK && !segment->has_sack;
}

/* --- The uplink --------------------------------------------------------------------------------- */

THIN u64 thin_time_for(const struct thin_uplink *uplink, u64 octets)
{
	u64 nanobits = thin_min(octets, THIN_AMOUNT_MAX) * THIN_NANOBITS;

	if (!uplink->rate)
		return 0;
	return nanobits / uplink->rate + (nanobits % uplink->rate ? 1 : 0);
}

THIN void thin_measure(struct thin_uplink *uplink, u64 now, u64 sent, u64 waiting)
{
	u64 amount, span, sample;

	if (!waiting) {
		uplink->is_busy = uplink->busy_since = uplink->busy_sent = 0;
		return;
	}
	if (uplink->is_busy) {
		amount = sent > uplink->busy_sent ? sent - uplink->busy_sent : 0;
		if (amount < THIN_PACKETS_MEASURED * thin_max(uplink->largest, 1))
			return;
		span = thin_since(now, uplink->busy_since);
		if (!span)
			return;
		sample = thin_min(thin_min(amount, THIN_AMOUNT_MAX) * THIN_NANOBITS / span, THIN_RATE_MAX);
		if (!sample)
			return;
		uplink->rate = uplink->rate ? (3 * uplink->rate + sample) / 4 : sample;
	}
	uplink->is_busy = 1;
	uplink->busy_since = now;
	uplink->busy_sent = sent;
	uplink->largest = uplink->last;
}

THIN void thin_observe(struct thin_uplink *uplink, u64 now, u64 sent, u64 waiting)
{
	u64 least;

	thin_measure(uplink, now, sent, waiting);
	least = now + thin_time_for(uplink, waiting);
	uplink->free_at = thin_min(thin_max(uplink->free_at, least), least + thin_time_for(uplink, uplink->last));
}

THIN void thin_note_queued(struct thin_uplink *uplink, u64 now, u32 len)
{
	uplink->last = len;
	uplink->largest = thin_max(uplink->largest, len);
	uplink->free_at = thin_max(uplink->free_at, now) + thin_time_for(uplink, len);
}

THIN void thin_note_data(struct thin_uplink *uplink)
{
	uplink->data_until = uplink->free_at;
}

THIN int thin_has_only_acks(const struct thin_uplink *uplink, u64 now)
{
	return thin_min(uplink->data_until, uplink->free_at) <= now && now < uplink->free_at;
}

/* --- A flow ------------------------------------------------------------------------------------- */

THIN u32 thin_mss(const struct thin_flow *flow)
{
	return flow->mss ? flow->mss : THIN_DEFAULT_MSS;
}

THIN u32 thin_window(const struct thin_flow *flow, const struct thin_segment *segment)
{
	return (u32)segment->window << (segment->flags & THIN_SYN ? 0 : flow->scale & 15);
}

THIN int thin_tells_of_window(const struct thin_flow *flow, const struct thin_segment *segment)
{
	u32 window = thin_window(flow, segment);
	u32 smaller = window < flow->window ? window : flow->window;
	u32 acknowledged = segment->ack - flow->passed;
	u32 part = smaller / THIN_WINDOW_PARTS;
	s64 moved = (s64)acknowledged + (s64)window - (s64)flow->window;

	return smaller < 2 * thin_mss(flow) || moved < 0 || acknowledged >= part || moved >= (s64)part;
}

THIN void thin_note_offered(struct thin_flow *flow, u64 now, const struct thin_segment *segment)
{
	if (!flow->has_acks) {
		flow->has_acks = 1;
		flow->first = flow->last = flow->passed = segment->ack;
		flow->last_at = now;
		flow->window = thin_window(flow, segment);
	}
	if (thin_since(now, flow->last_at) >= THIN_PAUSE)
		flow->first = flow->last;
	flow->last = segment->ack;
	flow->last_has_sack = segment->has_sack;
	flow->last_at = now;
}

/* The host sends a segment of the flow. If the verdict is to pass it, thin_note_passed() follows. */
THIN u64 thin_offer(struct thin_flow *flow, const struct thin_uplink *uplink, u64 now,
		    const struct thin_segment *segment)
{
	u32 mss = thin_mss(flow);
	int may_wait = flow->has_acks && thin_is_plain(segment) && thin_before(flow->last, segment->ack) &&
		       !flow->last_has_sack && thin_since(now, flow->last_at) < THIN_PAUSE &&
		       segment->ack - flow->first > THIN_FIRST_SEGMENTS * mss &&
		       segment->ack - flow->passed < THIN_MOST_SEGMENTS * mss && !flow->probed &&
		       !(flow->has_finished && !thin_before(segment->ack, flow->finished)) &&
		       !thin_tells_of_window(flow, segment);

	if (segment->flags & THIN_ACK)
		thin_note_offered(flow, now, segment);
	if (!may_wait || !flow->has_smoothed || !thin_has_only_acks(uplink, now))
		return THIN_PASS;
	return thin_min(flow->smoothed / THIN_ROUND_TRIP_PARTS, THIN_LONGEST_HOLD);
}

THIN void thin_note_mss(struct thin_flow *flow, const struct thin_segment *segment)
{
	u32 mss = thin_max(segment->has_mss ? segment->mss : THIN_DEFAULT_MSS, 1);

	if (!flow->mss || mss < flow->mss)
		flow->mss = mss;
}

/* The segment goes to the uplink's queue now. */
THIN void thin_note_passed(struct thin_flow *flow, u64 now, const struct thin_segment *segment)
{
	u32 window;

	if (segment->flags & THIN_SYN) {
		flow->scale = segment->has_scale ? thin_min(segment->scale, 14) : 0;
		thin_note_mss(flow, segment);
		flow->has_syn = 1;
		flow->syn_at = now;
	}
	window = thin_window(flow, segment);
	if (flow->has_acks && (segment->flags & THIN_ACK)) {
		flow->passed = segment->ack;
		flow->window = window;
		if (flow->has_finished && !thin_before(segment->ack, flow->finished))
			flow->has_finished = 0;
		flow->probed = 0;
	}
	if (segment->has_timestamps && !flow->has_echo &&
	    (!flow->has_stamped || thin_before(flow->stamped, segment->value))) {
		flow->has_echo = flow->has_stamped = 1;
		flow->echo = flow->stamped = segment->value;
		flow->echo_at = now;
	}
}

THIN void thin_sample(struct thin_flow *flow, u64 sample)
{
	if (!flow->has_smoothed)
		flow->smoothed = sample;
	else if (sample < flow->smoothed)
		flow->smoothed = (flow->smoothed + sample) / 2;
	else
		flow->smoothed += (sample - flow->smoothed) / 8;
	flow->has_smoothed = 1;
}

/* A segment of the other direction arrived. */
THIN void thin_hear(struct thin_flow *flow, u64 now, const struct thin_segment *segment)
{
	u32 end = segment->seq + segment->payload_len + !!(segment->flags & THIN_SYN) + !!(segment->flags & THIN_FIN);

	if (segment->flags & THIN_SYN) {
		thin_note_mss(flow, segment);
		if (!segment->has_scale)
			flow->scale = 0;
	} else if (segment->payload_len > 0 && !flow->mss) {
		flow->mss = thin_min(thin_max(segment->payload_len, THIN_DEFAULT_MSS), THIN_ETHERNET_MSS);
	}
	if (flow->has_acks) {
		if ((segment->flags & THIN_FIN) && thin_before(flow->last, end)) {
			flow->has_finished = 1;
			flow->finished = end;
		}
		if (thin_before(segment->seq, flow->last))
			flow->probed = 1;
	}
	if (flow->has_syn && (segment->flags & THIN_ACK)) {
		flow->has_syn = 0;
		thin_sample(flow, thin_since(now, flow->syn_at));
	}
	if (segment->has_timestamps && segment->payload_len > 0 && flow->has_echo &&
	    !thin_before(segment->echo, flow->echo)) {
		flow->has_echo = 0;
		thin_sample(flow, thin_since(now, flow->echo_at));
	}
}

/* A packet goes to the uplink's queue now: a segment of the flow, or anything else. */
THIN void thin_pass(struct thin_flow *flow, struct thin_uplink *uplink, u64 now, const struct thin_segment *segment,
		    u32 len)
{
	if (flow && segment)
		thin_note_passed(flow, now, segment);
	thin_note_queued(uplink, now, len);
	if (!segment || !thin_is_pure(segment))
		thin_note_data(uplink);
}

#endif
