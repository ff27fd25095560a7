/* compete.rs: the window of CUBIC. */

#define RRE_BETA_TENTHS 7
#define RRE_FAR_MS 30000
#define RRE_INVERSE_C 2500000000ULL
#define RRE_MAX_SEGMENTS (1ULL << 31)
#define RRE_ROOT_BITS 21

struct rre_cubic {
	u64 peak;
	u64 plateau_us;
};

RRE_STEP u64 rre_cube_root(u64 value)
{
	u64 root = 0, tried;
	s32 bit;

	for (bit = RRE_ROOT_BITS - 1; bit >= 0; bit--) {
		tried = root | 1ULL << bit;
		if (tried * tried * tried <= value)
			root = tried;
	}
	return root;
}

RRE void rre_cubic_new(struct rre_cubic *cubic, u64 now_us, u64 window, u64 peak, u64 mss)
{
	u64 segments = rre_min(rre_less(peak, window) / mss, RRE_MAX_SEGMENTS);

	cubic->peak = rre_max(peak, window);
	cubic->plateau_us = now_us + rre_cube_root(segments * RRE_INVERSE_C) * 1000;
}

RRE u64 rre_cubic_window(const struct rre_cubic *cubic, u64 now_us, u64 mss)
{
	u32 before = now_us < cubic->plateau_us;
	u64 far_ms = (before ? cubic->plateau_us - now_us : now_us - cubic->plateau_us) / 1000;
	u64 apart;

	far_ms = rre_min(far_ms, RRE_FAR_MS);
	apart = far_ms * far_ms * far_ms / 1000 * mss / (RRE_INVERSE_C / 1000);
	return before ? rre_less(cubic->peak, apart) : cubic->peak + apart;
}

RRE void rre_cubic_on_lost(struct rre_cubic *cubic, u64 now_us, u64 mss)
{
	u64 window = rre_cubic_window(cubic, now_us, mss);
	u64 peak = window < cubic->peak ? window * (10 + RRE_BETA_TENTHS) / 20 : window;

	rre_cubic_new(cubic, now_us, window * RRE_BETA_TENTHS / 10, peak, mss);
}
