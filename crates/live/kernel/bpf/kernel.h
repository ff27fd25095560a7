/* The few fields of the kernel's types that are used. Their offsets are filled in when the program is loaded
 * (CO-RE), so no header of any kernel is needed.
 */
#ifndef TACIT_KERNEL_H
#define TACIT_KERNEL_H

#include "linux_types.h"
#include "rre.h"

/* include/uapi/linux/bpf.h */
enum { BPF_MAP_TYPE_LRU_HASH = 9, BPF_MAP_TYPE_SK_STORAGE = 24 };
enum { BPF_ANY = 0 };
enum { BPF_F_NO_PREALLOC = 1, BPF_SK_STORAGE_GET_F_CREATE = 1 };

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#define CORE __attribute__((preserve_access_index))

typedef struct {
	struct net *net;
} CORE possible_net_t;

struct ns_common {
	u32 inum;
} CORE;

struct net {
	struct ns_common ns;
} CORE;

struct in6_addr {
	u8 octets[16];
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	u16 skc_num;
	u16 skc_family;
	u8 skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
} CORE;

struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	u32 sk_pacing_status;
} CORE;

struct inet_sock {
	struct sock sk;
} CORE;

struct tcp_congestion_ops;

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	const struct tcp_congestion_ops *icsk_ca_ops;
	u8 icsk_ca_state : 5;
} CORE;

struct tcp_options_received {
	u32 rcv_tsval;
	u32 rcv_tsecr;
	u16 saw_tstamp : 1;
} CORE;

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	struct tcp_options_received rx_opt;
	u64 bytes_acked;
	u64 tcp_mstamp;
	u32 snd_una;
	u32 snd_nxt;
	u32 srtt_us;
	u32 mss_cache;
	u32 packets_out;
	u32 retrans_out;
	u32 sacked_out;
	u32 lost_out;
	u32 lost;
	u32 snd_cwnd;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 app_limited;
	u32 total_retrans;
	/* Linux 6.7: timestamps may tick in microseconds. */
	u8 tcp_usec_ts : 1;
} CORE;

struct rate_sample {
	long rtt_us;
	_Bool is_app_limited;
} CORE;

struct tcp_congestion_ops {
	char name[16];
} CORE;

#endif
