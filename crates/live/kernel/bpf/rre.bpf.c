/* TCP-RRE as a congestion control: gathers the input of the algorithm in rre.h, calls it, and sets its output.
 *
 * The second program chooses it for the sockets of a cgroup. Nothing is pinned: all of it is gone with the process
 * that loaded it.
 */
#include "kernel.h"
#include "flow.h"

char program_license[] SEC("license") = "Dual MIT/GPL";

/* include/net/tcp.h, include/net/sock.h */
#define TCP_INIT_CWND 10
#define TCP_CA_Recovery 3
#define TCP_CA_Loss 4
#define CA_EVENT_TX_START 0
#define TCP_CONG_NAME_MAX 16
#define SK_PACING_NEEDED 1
/* include/linux/socket.h */
#define AF_INET 2
#define AF_INET6 10
/* ::ffff:0:0/96, the third 32 bits in network order (RFC 4291 section 2.5.5.2) */
#define MAPPED_IPV4 0xffff0000
/* include/uapi/linux/bpf.h, include/uapi/linux/tcp.h */
#define BPF_SOCK_OPS_TCP_CONNECT_CB 3
#define BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB 5
#define BPF_SOCK_OPS_TCP_LISTEN_CB 11
#define SOL_TCP 6
#define TCP_CONGESTION 13

/* Octets per second. On links this fast the timers of pacing cost more than bursts do; the window bounds those. */
#define UNPACED_RATE 1000000000ULL

/* Set by the loader. crates/live/kernel/src/loaded.rs writes these octets by their offsets, and makes the programs a congestion control. */
struct settings {
	/* Sockets of this network namespace only; 0: of any. */
	u64 only_namespace_cookie;
	/* Which argument of cong_control is the rate sample. Until Linux 6.10 it was 1: no ACK number, no flags. */
	u32 rate_sample_argument;
	/* The buffer delay to keep to at 250 kb/s and below; 0: 80 ms. */
	u32 target_us;
	/* The name under which the kernel knows this control. */
	char control_name[TCP_CONG_NAME_MAX];
};

const volatile struct settings settings = { .rate_sample_argument = 3, .control_name = "tacit_rre" };

/* How often the second program chose, and how often the kernel did not let it. */
struct counts {
	u64 chosen;
	u64 refused;
};

struct counts counts = {};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct flow);
} tacit_rre_flows SEC(".maps");

/* Clients by address, of IPv6 by the 64 bits that all hosts of a home have in common and that hosts do not change by
 * themselves (RFC 8981). The kernel drops those that were not used for the longest time.
 */
struct client_name {
	u64 network;
	u32 namespace_inode;
	u32 family;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct client_name);
	__type(value, struct rre_client);
} rre_clients SEC(".maps");

static __always_inline struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

/* Sets the pacing rate and the window to those of the algorithm. */
static __always_inline void apply(struct tcp_sock *tp, const struct rre *rre)
{
	struct sock *sk = (struct sock *)tp;
	u64 rate = rre->rate;
	u64 packets = rre->window;
	u32 mss = tp->mss_cache;

	if (mss)
		packets = (packets + mss - 1) / mss;
	/* One packet at least, or nothing more is ever acknowledged. */
	if (packets < 1)
		packets = 1;
	if (packets > tp->snd_cwnd_clamp)
		packets = tp->snd_cwnd_clamp;
	if (rate >= UNPACED_RATE)
		rate = ~0ULL;
	if (rate > sk->sk_max_pacing_rate)
		rate = sk->sk_max_pacing_rate;
	tp->snd_cwnd = packets;
	sk->sk_pacing_rate = rate;
}

static __always_inline u32 sender_tick_us(struct tcp_sock *tp)
{
	if (bpf_core_field_exists(tp->tcp_usec_ts) && BPF_CORE_READ_BITFIELD(tp, tcp_usec_ts))
		return 1;
	return 1000;
}

static __always_inline struct client_name name_of_client(struct sock *sk)
{
	struct client_name name = {
		.network = sk->__sk_common.skc_daddr,
		.namespace_inode = sk->__sk_common.skc_net.net->ns.inum,
		.family = AF_INET,
	};

	/* IPv6 sockets that carry IPv4 have its address in skc_daddr too. */
	if (sk->__sk_common.skc_family == AF_INET6 && bpf_core_field_exists(sk->__sk_common.skc_v6_daddr)) {
		const u64 *address = (const u64 *)sk->__sk_common.skc_v6_daddr.octets;

		if (address[0] != 0 || (u32)address[1] != MAPPED_IPV4) {
			name.network = address[0];
			name.family = AF_INET6;
		}
	}
	return name;
}

/* Several processors may write at the same time. One of them wins, and either is right. */
static __always_inline void remember(struct sock *sk, const struct rre *rre)
{
	struct client_name name = name_of_client(sk);
	struct rre_client *known = bpf_map_lookup_elem(&rre_clients, &name);
	struct rre_client first = {};

	if (known) {
		rre_tell(rre, known);
		return;
	}
	rre_tell(rre, &first);
	bpf_map_update_elem(&rre_clients, &name, &first, BPF_ANY);
}

static __always_inline void start(struct tcp_sock *tp, struct flow *flow)
{
	struct rre_parameters parameters = {
		.mss = tp->mss_cache,
		.initial_window = tp->snd_cwnd * tp->mss_cache,
		.handshake_rtt_us = tp->srtt_us >> 3,
		.sender_tick_us = sender_tick_us(tp),
		.target_us = settings.target_us,
	};
	struct client_name name = name_of_client((struct sock *)tp);
	const struct rre_client *client = bpf_map_lookup_elem(&rre_clients, &name);

	flow->is_started = 1;
	flow->counted_acked_octets = tp->bytes_acked;
	flow->counted_octets = tp->bytes_acked + (u64)tp->sacked_out * tp->mss_cache;
	flow->counted_lost_packets = tp->lost;
	rre_start(&flow->rre, &parameters, tp->tcp_mstamp);
	if (BPF_CORE_READ_BITFIELD(tp, rx_opt.saw_tstamp))
		rre_on_handshake(&flow->rre, tp->tcp_mstamp, tp->rx_opt.rcv_tsval, tp->rx_opt.rcv_tsecr);
	if (client)
		rre_recall(&flow->rre, client, tp->tcp_mstamp, tp->total_retrans > 0);
	apply(tp, &flow->rre);
}

/* The flow of a socket, started if it is new; NULL where there is no memory for it. */
static __always_inline struct flow *flow_of(struct sock *sk)
{
	struct flow *flow = bpf_sk_storage_get(&tacit_rre_flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);

	if (flow && !flow->is_started)
		start(tcp_sk(sk), flow);
	return flow;
}

/* The kernel gives a congestion control no timer: silence is told when it is over, or when the retransmission timer
 * expires, which it does first. Nothing is sent in between.
 */
static __always_inline void tell_silence(struct rre *rre, u64 now_us)
{
	u64 period_us = rre_silent_at_us(rre) - rre->heard_us;
	u64 periods;

	period_us /= rre->silences + 1;
	if (!period_us || now_us < rre->heard_us)
		return;
	periods = rre_min((now_us - rre->heard_us) / period_us, RRE_MAX_SILENCES);
	if (periods <= rre->silences)
		return;
	rre->silences = periods - 1;
	rre_on_silence(rre, now_us);
}

PROGRAM
void BPF_PROG(rre_init, struct sock *sk)
{
	/* Without this nothing paces where the queueing discipline is not fq. */
	if (sk->sk_pacing_status == 0)
		sk->sk_pacing_status = SK_PACING_NEEDED;
	tcp_sk(sk)->snd_ssthresh = 0x7fffffff;
	flow_of(sk);
}

static __always_inline void gather(struct tcp_sock *tp, struct flow *flow, const struct rate_sample *sample,
				   struct rre_ack *ack)
{
	u32 mss = tp->mss_cache;
	u64 octets = tp->bytes_acked + (u64)tp->sacked_out * mss;
	u32 lost_packets = tp->lost - flow->counted_lost_packets;
	u32 in_flight = tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
	long rtt_us = sample->rtt_us;

	ack->now_us = tp->tcp_mstamp;
	ack->stamped = BPF_CORE_READ_BITFIELD(tp, rx_opt.saw_tstamp);
	ack->value = tp->rx_opt.rcv_tsval;
	ack->echo = tp->rx_opt.rcv_tsecr;
	ack->advanced = tp->bytes_acked != flow->counted_acked_octets;
	flow->counted_acked_octets = tp->bytes_acked;
	/* The last segment before a hole may be shorter than the MSS it was counted as. */
	if (octets > flow->counted_octets) {
		ack->delivered = octets - flow->counted_octets;
		flow->counted_octets = octets;
	}
	ack->lost = lost_packets * mss;
	flow->counted_lost_packets = tp->lost;
	ack->in_flight = in_flight * mss;
	if (rtt_us > 0)
		ack->rtt_us = rtt_us;
	ack->smoothed_rtt_us = tp->srtt_us >> 3;
	ack->limited = sample->is_app_limited;
	ack->repairing = BPF_CORE_READ_BITFIELD(tp, inet_conn.icsk_ca_state) >= TCP_CA_Recovery;
}

PROGRAM
int rre_cong_control(unsigned long long *arguments)
{
	struct sock *sk = (struct sock *)arguments[0];
	struct tcp_sock *tp = tcp_sk(sk);
	const struct rate_sample *sample;
	struct flow *flow = flow_of(sk);
	struct rre_ack ack = {};

	/* Compilers would load from one of two addresses, and the verifier wants each argument loaded as such. */
	if (settings.rate_sample_argument == 3)
		asm volatile("%0 = *(u64 *)(%1 + 24)" : "=r"(sample) : "r"(arguments));
	else
		asm volatile("%0 = *(u64 *)(%1 + 8)" : "=r"(sample) : "r"(arguments));
	if (!flow) {
		/* A timeout left one packet; without a state this is all there is. */
		if (tp->snd_cwnd < TCP_INIT_CWND)
			tp->snd_cwnd = TCP_INIT_CWND;
		return 0;
	}
	tell_silence(&flow->rre, tp->tcp_mstamp);
	gather(tp, flow, sample, &ack);
	rre_on_ack(&flow->rre, &ack);
	if (rre_tells(&flow->rre))
		remember(sk, &flow->rre);
	apply(tp, &flow->rre);
	return 0;
}

PROGRAM
void BPF_PROG(rre_set_state, struct sock *sk, u8 new_state)
{
	struct flow *flow;
	u64 now_us;

	/* The kernel says so at every retransmission timeout. */
	if (new_state != TCP_CA_Loss)
		return;
	flow = flow_of(sk);
	if (!flow)
		return;
	now_us = tcp_sk(sk)->tcp_mstamp;
	tell_silence(&flow->rre, now_us);
	rre_on_timeout(&flow->rre, now_us);
	apply(tcp_sk(sk), &flow->rre);
}

PROGRAM
void BPF_PROG(rre_cwnd_event, struct sock *sk, u32 event)
{
	struct flow *flow;

	/* At rates of less than a packet per round trip nothing is in flight between two of them: no pause. */
	if (event != CA_EVENT_TX_START || !tcp_sk(sk)->app_limited)
		return;
	flow = flow_of(sk);
	if (!flow)
		return;
	rre_on_transmit_start(&flow->rre, tcp_sk(sk)->tcp_mstamp);
	apply(tcp_sk(sk), &flow->rre);
}

PROGRAM
u32 BPF_PROG(rre_ssthresh, struct sock *sk)
{
	return tcp_sk(sk)->snd_ssthresh;
}

/* Bytes held lost were not. */
PROGRAM
u32 BPF_PROG(rre_undo_cwnd, struct sock *sk)
{
	struct flow *flow = flow_of(sk);

	if (flow) {
		rre_on_undo(&flow->rre);
		apply(tcp_sk(sk), &flow->rre);
	}
	return tcp_sk(sk)->snd_cwnd;
}

/* include/uapi/linux/bpf.h; the verifier rewrites accesses, so no CO-RE. */
struct bpf_sock_ops {
	u32 op;
};

PROGRAM
int rre_choose(struct bpf_sock_ops *event)
{
	char name[TCP_CONG_NAME_MAX];
	u32 at;

	if (event->op != BPF_SOCK_OPS_TCP_CONNECT_CB && event->op != BPF_SOCK_OPS_TCP_LISTEN_CB &&
	    event->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	if (settings.only_namespace_cookie && bpf_get_netns_cookie(event) != settings.only_namespace_cookie)
		return 1;
	for (at = 0; at < sizeof(name); at++)
		name[at] = settings.control_name[at];
	if (bpf_setsockopt(event, SOL_TCP, TCP_CONGESTION, name, sizeof(name)))
		__sync_fetch_and_add(&counts.refused, 1);
	else
		__sync_fetch_and_add(&counts.chosen, 1);
	return 1;
}
