/* TCP-RRE, the algorithm alone: no kernel types, no clock, integers only.
 *
 * This is crates/core/congestion/src/rre in C, function by function and number by number; the reasons are there. The
 * eBPF program includes it, and so does the test that compares both on the host (crates/live/kernel/tests/same_in_c.rs).
 * eBPF divides unsigned numbers only, and so does this.
 */
#ifndef TACIT_RRE_H
#define TACIT_RRE_H

#include "integers.h"

#define RRE static __always_inline

/* Steps are functions of their own in eBPF: the verifier then looks at each once, from any path, instead of at
 * every way through all of them. For all it knows there, a pointer may be NULL. They return numbers only.
 */
#ifdef __bpf__
#define RRE_STEP __attribute__((noinline))
#define RRE_GIVEN(pointer)                                                                                             \
	if (!(pointer))                                                                                                \
	return 0
#else
#define RRE_STEP static
#define RRE_GIVEN(pointer)
#endif

RRE u64 rre_min(u64 a, u64 b)
{
	return a < b ? a : b;
}

RRE u64 rre_max(u64 a, u64 b)
{
	return a > b ? a : b;
}

RRE u64 rre_clamp(u64 value, u64 least, u64 most)
{
	return value < least ? least : value > most ? most : value;
}

/* a - b, or 0. */
RRE u64 rre_less(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

#include "rre_clock.h"
#include "rre_estimate.h"
#include "rre_compete.h"
#include "rre_core.h"

#endif
