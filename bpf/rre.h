/* TCP-RRE, the algorithm alone: no kernel types, no clock, integers only.
 *
 * The eBPF program includes it, and so does the test that compares it with the Rust core on the host.
 */
#ifndef TACIT_RRE_H
#define TACIT_RRE_H

typedef __UINT8_TYPE__ u8;
typedef __UINT16_TYPE__ u16;
typedef __UINT32_TYPE__ u32;
typedef __UINT64_TYPE__ u64;
typedef __INT32_TYPE__ s32;
typedef __INT64_TYPE__ s64;

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/* What one ACK says. */
struct rre_ack {
	u64 now_us;
	u64 smoothed_rtt_us;
	u32 tsval;
	u32 tsecr;
	u32 delivered_octets;
	u32 lost_octets;
	u32 in_flight_octets;
	u32 outstanding_octets;
	u32 receiver_window_octets;
	u32 mss_octets;
	u32 has_timestamps;
	u32 app_limited;
};

/* Everything a flow remembers. */
struct rre_state {
	u64 last_us;
	u64 rate_octets_per_s;
	u64 receive_rate_octets_per_s;
	u64 window_octets;
	u64 buffer_delay_us;
	u32 phase;
	u32 timestamps;
};

static __always_inline void rre_start(struct rre_state *rre, u64 now_us, u32 mss_octets)
{
	rre->last_us = now_us;
	rre->rate_octets_per_s = 1000000;
	rre->window_octets = (u64)10 * mss_octets;
}

static __always_inline void rre_on_ack(struct rre_state *rre, const struct rre_ack *ack)
{
	u64 interval_us = ack->now_us - rre->last_us;

	rre->timestamps = ack->has_timestamps;
	if (interval_us < 10000)
		return;
	rre->receive_rate_octets_per_s = (u64)ack->delivered_octets * 1000000 / interval_us;
	rre->window_octets = (u64)100 * ack->mss_octets;
	rre->rate_octets_per_s = 20000000;
	rre->last_us = ack->now_us;
}

static __always_inline void rre_on_timeout(struct rre_state *rre, u64 now_us)
{
	rre->last_us = now_us;
}

#endif
