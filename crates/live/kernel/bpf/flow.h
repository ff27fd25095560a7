/* The program's state of a socket, and the part that status prints. */
#ifndef TACIT_FLOW_H
#define TACIT_FLOW_H

#include "rre.h"

struct flow {
	struct rre rre;
	/* How much of the connection has been counted as delivered and as lost. */
	u64 counted_acked_octets;
	u64 counted_octets;
	u32 counted_lost_packets;
	u32 is_started;
};

/* One flow as status reads it. crates/live/kernel/src/flows.rs reads these octets by their offsets. */
struct flow_record {
	u64 sending_rate_octets_per_s;
	u64 receive_rate_octets_per_s;
	u64 buffer_delay_us;
	u64 window_octets;
	u32 state;
	u32 trust;
	u32 namespace_inode;
	u16 family;
	u16 local_port;
	u16 peer_port;
	u8 tcp_state;
	u8 spare;
	u32 tick_us;
	u8 local_address[16];
	u8 peer_address[16];
	char control[16];
};

#endif
