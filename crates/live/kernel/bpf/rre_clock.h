/* clock.rs: the receiver's clock, and how long its ticks are. */

#define RRE_SHORTEST_TICK_US 1000
#define RRE_TICKS_TO_JUDGE 10
#define RRE_STOPPED_US 2000000
#define RRE_BEHIND_US 250000
#define RRE_SLACK_US 60000000
#define RRE_EARLY_US 2000000
#define RRE_FORGIVE_US 10000000

enum rre_trust { RRE_UNKNOWN, RRE_TRUSTED, RRE_REFUSED };

struct rre_reading {
	u64 received_us;
	u64 sent_us;
};

struct rre_clock {
	u32 trust;
	u32 tick_us;
	u32 seen;
	u32 last_value;
	u32 last_echo;
	u32 least_tick_us;
	u64 first_at_us;
	u64 refused_at_us;
	u64 ticks;
	u64 edge_ticks;
	s64 sent_us;
	s64 lead_us;
	u32 lead_known;
};

RRE u32 rre_clock_refuse(struct rre_clock *clock, u64 now_us)
{
	u32 known = clock->trust == RRE_REFUSED;

	clock->trust = RRE_REFUSED;
	clock->tick_us = 0;
	clock->refused_at_us = now_us;
	clock->seen = 0;
	return known;
}

RRE u64 rre_behind_us(u64 span_us)
{
	return rre_min(span_us / 4, RRE_BEHIND_US + span_us / 20);
}

RRE u32 rre_tick_of(u64 ticks, u64 span_us, u32 least_tick_us)
{
	u64 least_us = span_us - rre_behind_us(span_us);

	if (1000 >= least_tick_us && ticks * 1000 >= least_us)
		return 1000;
	if (2000 >= least_tick_us && ticks * 2000 >= least_us)
		return 2000;
	if (4000 >= least_tick_us && ticks * 4000 >= least_us)
		return 4000;
	if (10000 >= least_tick_us && ticks * 10000 >= least_us)
		return 10000;
	if (100000 >= least_tick_us && ticks * 100000 >= least_us)
		return 100000;
	return 0;
}

RRE u32 rre_clock_judge(struct rre_clock *clock, u64 now_us)
{
	u64 span_us = clock->sent_us;
	u32 tick_us, known;

	if (clock->sent_us < 0 ||
	    (clock->trust == RRE_REFUSED && now_us < clock->refused_at_us + RRE_FORGIVE_US))
		return 1;
	if (span_us < RRE_EARLY_US)
		clock->least_tick_us =
			rre_max(clock->least_tick_us, (u32)((span_us - span_us / 4) / (clock->ticks + 1)));
	else
		clock->least_tick_us = 0;
	if (clock->ticks < RRE_TICKS_TO_JUDGE)
		return span_us < RRE_STOPPED_US || rre_clock_refuse(clock, now_us);
	tick_us = rre_tick_of(clock->ticks, span_us, clock->least_tick_us);
	if (tick_us == 0)
		return rre_clock_refuse(clock, now_us);
	known = clock->trust == RRE_TRUSTED && tick_us == clock->tick_us;
	clock->trust = RRE_TRUSTED;
	clock->tick_us = tick_us;
	return known;
}

/* 0 where the clock turns out to be another than thought. */
RRE u32 rre_clock_on_ack(struct rre_clock *clock, u64 now_us, u32 value, u32 echo, u32 advanced,
			 u32 sender_tick_us)
{
	s64 ticks, echoed;
	u64 most_us;

	if (!clock->seen) {
		clock->seen = 1;
		clock->last_value = value;
		clock->last_echo = echo;
		clock->first_at_us = now_us;
		clock->ticks = 0;
		clock->edge_ticks = 0;
		clock->sent_us = 0;
		clock->least_tick_us = 0;
		clock->lead_known = 0;
		clock->lead_us = 0;
		return 1;
	}
	ticks = (s32)(value - clock->last_value);
	if (ticks < 0 && !advanced)
		return 1;
	if (ticks < 0) {
		clock->seen = 0;
		return 0;
	}
	clock->last_value = value;
	clock->ticks += ticks;
	if (advanced) {
		echoed = (s32)(echo - clock->last_echo);
		clock->last_echo = echo;
		clock->sent_us += echoed * sender_tick_us;
	}
	most_us = rre_less(now_us, clock->first_at_us) + RRE_SLACK_US;
	if (clock->sent_us > (s64)most_us || clock->sent_us < -(s64)RRE_SLACK_US ||
	    clock->ticks > most_us / RRE_SHORTEST_TICK_US)
		return rre_clock_refuse(clock, now_us);
	return !advanced || rre_clock_judge(clock, now_us);
}

/* 1 where it counts from this ACK on. */
RRE u32 rre_clock_begin_anew(struct rre_clock *clock, u64 now_us, u64 latest_us)
{
	u64 first_rtt_us;
	s64 lead_us;

	if (!clock->seen || latest_us == 0 || clock->sent_us < 0)
		return 0;
	lead_us = (s64)latest_us - clock->sent_us;
	if (!clock->lead_known || lead_us < clock->lead_us) {
		clock->lead_known = 1;
		clock->lead_us = lead_us;
	}
	first_rtt_us = (s64)clock->first_at_us > clock->lead_us ? clock->first_at_us - clock->lead_us : 0;
	if (first_rtt_us <= rre_behind_us(clock->sent_us) || first_rtt_us / 2 < rre_less(now_us, latest_us))
		return 0;
	if (clock->trust != RRE_REFUSED)
		clock->trust = RRE_UNKNOWN;
	clock->tick_us = 0;
	clock->first_at_us = now_us;
	clock->ticks = 0;
	clock->edge_ticks = 0;
	clock->least_tick_us = 0;
	clock->lead_us += clock->sent_us;
	clock->sent_us = 0;
	return 1;
}

/* 0 where the ACK is not the first of a tick. */
RRE u32 rre_clock_read(struct rre_clock *clock, u64 latest_us, struct rre_reading *reading)
{
	s64 sent_us;

	if (clock->trust != RRE_TRUSTED || !clock->seen || clock->ticks == clock->edge_ticks)
		return 0;
	clock->edge_ticks = clock->ticks;
	reading->received_us = RRE_SLACK_US + clock->ticks * clock->tick_us;
	sent_us = clock->sent_us;
	if (latest_us > 0 && clock->lead_known && (s64)latest_us - clock->lead_us > sent_us)
		sent_us = (s64)latest_us - clock->lead_us;
	reading->sent_us = sent_us + RRE_SLACK_US;
	return 1;
}
