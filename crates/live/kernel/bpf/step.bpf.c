/* The algorithm of rre.h as the kernel runs it, one event a call, for a test (crates/live/kernel/tests/same_in_c.rs): the event is
 * the context, and the state stands in a map with all that it comes to.
 */
#include "kernel.h"
#include "rre_words.h"

/* include/uapi/linux/bpf.h */
#define BPF_MAP_TYPE_ARRAY 2

char program_license[] SEC("license") = "Dual MIT/GPL";

struct state {
	struct rre rre;
	struct rre_client client;
	u64 words[RRE_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct state);
} step_state SEC(".maps");

PROGRAM
int rre_step(struct rre_told *context)
{
	struct rre_told event = *context;
	u32 first = 0;
	struct state *state = bpf_map_lookup_elem(&step_state, &first);

	if (!state)
		return 1;
	rre_happen(&state->rre, &state->client, &event);
	rre_words(&state->rre, &state->client, state->words);
	return 0;
}
