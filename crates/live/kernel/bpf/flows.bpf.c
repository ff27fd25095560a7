/* Reads the flows of a running TCP-RRE: an iterator over the socket storage that the congestion control keeps. */
#include "kernel.h"
#include "flow.h"

char program_license[] SEC("license") = "Dual MIT/GPL";

/* include/linux/socket.h */
#define AF_INET 2
#define AF_INET6 10

struct seq_file;
struct bpf_map;

struct bpf_iter_meta {
	struct seq_file *seq;
} CORE;

struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
	struct sock *sk;
	void *value;
} CORE;

PROGRAM
int tacit_rre_list(struct bpf_iter__bpf_sk_storage_map *at)
{
	struct inet_connection_sock *connection;
	struct flow *flow = at->value;
	struct flow_record record = {};
	struct sock *sk = at->sk;

	if (!sk || !flow || !flow->is_started)
		return 0;
	record.sending_rate_octets_per_s = flow->rre.rate;
	record.receive_rate_octets_per_s = flow->rre.estimate.rate;
	record.buffer_delay_us = flow->rre.buffer_us;
	record.window_octets = flow->rre.window;
	record.state = flow->rre.state;
	record.trust = flow->rre.clock.trust;
	record.tick_us = flow->rre.clock.tick_us;
	record.family = sk->__sk_common.skc_family;
	record.local_port = sk->__sk_common.skc_num;
	record.peer_port = __builtin_bswap16(sk->__sk_common.skc_dport);
	record.tcp_state = sk->__sk_common.skc_state;
	record.namespace_inode = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	if (record.family == AF_INET) {
		__builtin_memcpy(record.local_address, &sk->__sk_common.skc_rcv_saddr, 4);
		__builtin_memcpy(record.peer_address, &sk->__sk_common.skc_daddr, 4);
	} else if (record.family == AF_INET6 && bpf_core_field_exists(sk->__sk_common.skc_v6_daddr)) {
		BPF_CORE_READ_INTO(&record.local_address, sk, __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(&record.peer_address, sk, __sk_common.skc_v6_daddr);
	}
	connection = (struct inet_connection_sock *)sk;
	BPF_CORE_READ_STR_INTO(&record.control, connection, icsk_ca_ops, name);
	bpf_seq_write(at->meta->seq, &record, sizeof(record));
	return 0;
}
