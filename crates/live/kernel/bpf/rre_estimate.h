/* estimate.rs: the receive rate. */

#define RRE_SAMPLE_PACKETS 30
#define RRE_SLOW_PACKETS 4
#define RRE_SLOW_US 250000
#define RRE_SAMPLE_TICKS 4
#define RRE_FALL 2
#define RRE_MUCH_LOST 8
#define RRE_MOST_OCTETS (1ULL << 40)
#define RRE_MOST_FALL 2

struct rre_estimate {
	u64 rate;
	u64 mark_us;
	u64 mark_sent_us;
	u64 mark_delivered;
	u64 lost;
	u32 provisional;
	u32 marked;
	u32 used_once;
	u32 used_throughout;
};

RRE void rre_estimate_mark(struct rre_estimate *estimate, const struct rre_reading *reading, u64 delivered)
{
	estimate->marked = 1;
	estimate->mark_us = reading->received_us;
	estimate->mark_sent_us = reading->sent_us;
	estimate->mark_delivered = delivered;
	estimate->used_once = 0;
	estimate->used_throughout = 1;
	estimate->lost = 0;
}

RRE u32 rre_estimate_is_path_limited(const struct rre_estimate *estimate, const struct rre_reading *reading,
				     u64 span_us, u64 octets)
{
	u64 sent_us = rre_less(reading->sent_us, estimate->mark_sent_us);
	u32 left_faster = span_us > sent_us + sent_us / 8;

	return estimate->used_throughout || (estimate->used_once && (left_faster || estimate->lost > 0)) ||
	       estimate->lost > octets / RRE_MUCH_LOST;
}

/* Whether the rate was updated by a sample, and much of that was lost. */
enum rre_taken { RRE_NOT_TAKEN, RRE_WHOLE, RRE_LOSSY };

RRE u32 rre_estimate_on_reading(struct rre_estimate *estimate, const struct rre_reading *reading, u64 delivered,
				u64 tick_us, u64 mss, u64 most, u64 stall_us, u32 in_use)
{
	u64 octets, span_us, sample;
	u32 complete, fallen, provisional, path_limited, taken;

	estimate->used_once |= in_use;
	estimate->used_throughout &= in_use;
	if (!estimate->marked || reading->received_us < estimate->mark_us) {
		rre_estimate_mark(estimate, reading, delivered);
		return 0;
	}
	octets = rre_min(delivered - estimate->mark_delivered, RRE_MOST_OCTETS);
	span_us = reading->received_us - estimate->mark_us;
	if (span_us < RRE_SAMPLE_TICKS * tick_us)
		return 0;
	sample = rre_max(rre_min(octets * 1000000 / span_us, most), 1);
	complete = octets >= RRE_SAMPLE_PACKETS * mss || (octets >= RRE_SLOW_PACKETS * mss && span_us >= RRE_SLOW_US);
	fallen = in_use && span_us >= stall_us &&
		 (octets + 2 * mss) * 1000000 / span_us < estimate->rate / RRE_FALL;
	if (!complete && !fallen)
		return 0;
	provisional = estimate->provisional;
	path_limited = rre_estimate_is_path_limited(estimate, reading, span_us, octets);
	taken = estimate->lost > octets / RRE_MUCH_LOST ? RRE_LOSSY : RRE_WHOLE;
	rre_estimate_mark(estimate, reading, delivered);
	estimate->provisional = 0;
	if (sample < estimate->rate && !path_limited)
		return 0;
	if (estimate->rate == 0 || provisional)
		estimate->rate = sample;
	else if (fallen)
		estimate->rate = rre_max(sample, estimate->rate / RRE_MOST_FALL);
	else
		estimate->rate = (estimate->rate + sample) / 2;
	return taken;
}
