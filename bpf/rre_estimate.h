/* estimate.rs: the receive rate. */

#define RRE_SAMPLE_PACKETS 30
#define RRE_SLOW_PACKETS 4
#define RRE_SLOW_US 250000
#define RRE_SAMPLE_TICKS 4
#define RRE_FALL 2
#define RRE_MOST_OCTETS (1ULL << 40)
#define RRE_MOST_FALL 2

struct rre_estimate {
	u64 rate;
	u64 mark_us;
	u64 mark_delivered;
	u32 marked;
	u32 used;
};

RRE void rre_estimate_mark(struct rre_estimate *estimate, u64 received_us, u64 delivered)
{
	estimate->marked = 1;
	estimate->mark_us = received_us;
	estimate->mark_delivered = delivered;
	estimate->used = 0;
}

/* 1 where the rate was updated. */
RRE u32 rre_estimate_on_reading(struct rre_estimate *estimate, u64 received_us, u64 delivered, u64 tick_us, u64 mss,
				u64 most, u64 stall_us, u32 in_use)
{
	u64 octets, span_us, sample;
	u32 complete, fallen, used;

	estimate->used |= in_use;
	if (!estimate->marked || received_us < estimate->mark_us) {
		rre_estimate_mark(estimate, received_us, delivered);
		return 0;
	}
	octets = rre_min(delivered - estimate->mark_delivered, RRE_MOST_OCTETS);
	span_us = received_us - estimate->mark_us;
	if (span_us < RRE_SAMPLE_TICKS * tick_us)
		return 0;
	sample = rre_max(rre_min(octets * 1000000 / span_us, most), 1);
	complete = octets >= RRE_SAMPLE_PACKETS * mss || (octets >= RRE_SLOW_PACKETS * mss && span_us >= RRE_SLOW_US);
	fallen = in_use && span_us >= stall_us &&
		 (octets + 2 * mss) * 1000000 / span_us < estimate->rate / RRE_FALL;
	if (!complete && !fallen)
		return 0;
	used = estimate->used;
	rre_estimate_mark(estimate, received_us, delivered);
	if (!used && sample < estimate->rate)
		return 0;
	if (estimate->rate == 0)
		estimate->rate = sample;
	else if (fallen)
		estimate->rate = rre_max(sample, estimate->rate / RRE_MOST_FALL);
	else
		estimate->rate = (estimate->rate + sample) / 2;
	return 1;
}
