/* client.rs: what connections to a client showed about its uplink, and the bound that follows for the next one. */

#define RRE_SEGMENTS_PER_ACK 2
#define RRE_MANY_ACKS 4
#define RRE_JUDGED_ACKS 64
#define RRE_WAIT_US 250000
#define RRE_SYN_WAIT_US 500000
#define RRE_MAX_EXCESS_US 60000000
#define RRE_VAIN_BOUND_US 600000000
#define RRE_STANDING_ACKS 1
#define RRE_STANDING_US 4000
#define RRE_GROWTH 2
#define RRE_QUICK_GROWTH 4

/* What is known of a client. */
struct rre_client {
	u64 heard_us;
	u64 wait_us;
	u64 excess_us;
	u64 vain_us;
};

/* The ACKs of a connection, and its bound. */
struct rre_uplink {
	u64 acks;
	u64 first_us;
	s64 least_lag_us;
	u64 wait_us;
	u64 read_us;
	u64 bound;
	u64 round_end;
	u64 round_us;
	u32 lag_known;
	u32 is_fresh;
};

RRE u32 rre_client_bounds(const struct rre_client *client, u64 now_us, u64 handshake_rtt_us, u32 repeated)
{
	u64 idle_us = rre_less(rre_less(now_us, handshake_rtt_us), client->heard_us);
	u64 pause_us = repeated ? 0 : rre_less(client->wait_us, RRE_SYN_WAIT_US);

	if (idle_us >= RRE_WAIT_US)
		pause_us = idle_us + client->wait_us;
	return pause_us < client->excess_us && handshake_rtt_us <= client->excess_us + client->wait_us;
}

RRE void rre_uplink_forget(struct rre_uplink *uplink)
{
	uplink->lag_known = 0;
	uplink->wait_us = 0;
}

RRE void rre_uplink_count(struct rre_uplink *uplink, u64 now_us)
{
	if (uplink->acks == 0)
		uplink->first_us = now_us;
	uplink->acks++;
}

RRE u64 rre_spacing_us(const struct rre_uplink *uplink, u64 now_us)
{
	return (now_us - uplink->first_us) / rre_max(uplink->acks, 1);
}

RRE_STEP u32 rre_uplink_on_reading(struct rre_uplink *uplink, u64 now_us, const struct rre_reading *reading,
				   u64 delivered, u64 in_flight)
{
	u64 standing_us, last_us, growth;
	s64 lag_us;
	u32 grows;

	RRE_GIVEN(uplink);
	RRE_GIVEN(reading);
	lag_us = (s64)now_us - (s64)reading->received_us;
	if (!uplink->lag_known || lag_us < uplink->least_lag_us) {
		uplink->lag_known = 1;
		uplink->least_lag_us = lag_us;
	}
	last_us = uplink->read_us;
	uplink->read_us = now_us;
	uplink->wait_us = lag_us - uplink->least_lag_us;
	if (uplink->bound == 0 || delivered <= uplink->round_end)
		return 0;
	standing_us = rre_max(RRE_STANDING_ACKS * rre_spacing_us(uplink, now_us), RRE_STANDING_US);
	grows = !uplink->is_fresh && uplink->wait_us <= standing_us;
	if (grows) {
		growth = RRE_GROWTH;
		if (RRE_QUICK_GROWTH * (last_us - uplink->round_us) <= now_us - uplink->round_us)
			growth = RRE_QUICK_GROWTH;
		uplink->bound = rre_min(growth * uplink->bound, RRE_MAX_WINDOW);
	}
	uplink->is_fresh = grows;
	uplink->round_end = delivered + in_flight;
	uplink->round_us = now_us;
	return 0;
}

RRE u64 rre_excess(const struct rre_uplink *uplink, u64 delivered, u64 mss)
{
	u64 excess = rre_less(uplink->acks, delivered / (RRE_SEGMENTS_PER_ACK * mss));

	return uplink->acks >= RRE_JUDGED_ACKS && excess > uplink->acks / RRE_MANY_ACKS ? excess : 0;
}

RRE u32 rre_uplink_tells(const struct rre_uplink *uplink, u64 delivered, u64 mss)
{
	return uplink->bound > 0 || (uplink->wait_us >= RRE_WAIT_US && rre_excess(uplink, delivered, mss) > 0);
}

RRE void rre_uplink_tell(const struct rre_uplink *uplink, struct rre_client *client, u64 now_us, u64 delivered,
			 u64 mss)
{
	u64 excess_us = rre_excess(uplink, delivered, mss) * rre_spacing_us(uplink, now_us);

	if (uplink->bound > 0 && excess_us > client->excess_us / 2) {
		client->excess_us = 0;
		client->vain_us = now_us;
	} else if (uplink->bound == 0) {
		excess_us = rre_min(rre_min(excess_us, uplink->wait_us), RRE_MAX_EXCESS_US);
		if (now_us < client->heard_us + client->excess_us)
			excess_us = rre_max(excess_us, client->excess_us);
		if (client->vain_us > 0 && now_us < client->vain_us + RRE_VAIN_BOUND_US)
			excess_us = 0;
		client->excess_us = excess_us;
	}
	client->heard_us = now_us;
	client->wait_us = uplink->wait_us;
}
