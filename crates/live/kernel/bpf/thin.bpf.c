/* `tacit thin` in the kernel: an egress and an ingress program of one device (tcx, Linux 6.6).
 *
 * What the device sends passes here. Only ACKs that are to wait go to the program `tacit thin`, which gives them back when
 * their time is over; all else stays in the kernel. A packet that leaves for good goes on as TCX_NEXT.
 */
#include "linux_types.h"
#include "thin_parse.h"

/* include/uapi/linux/bpf.h */
enum { BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_PERCPU_ARRAY = 6, BPF_MAP_TYPE_LRU_HASH = 9, BPF_MAP_TYPE_RINGBUF = 27 };
enum { BPF_NOEXIST = 1 };
#define TCX_NEXT (-1)

struct bpf_spin_lock {
	u32 val;
};

struct __sk_buff {
	u32 len;
	u32 pkt_type;
	u32 mark;
	u32 queue_mapping;
	u32 protocol;
	u32 vlan_present;
};

#include <bpf/bpf_helpers.h>

char program_license[] SEC("license") = "Dual MIT/GPL";

/* As in crates/core/between/src/ack_hold.rs. */
#define FLOWS_MAX 1024
#define RING_OCTETS (256 * 1024)
/* The longest headers of Ethernet, IPv4 or IPv6, and TCP. */
#define FRAME_OCTETS 136

/* Set before it is loaded: the socket that gives back what waited, and the octets before the IP header.
 * crates/live/kernel/src/thin.rs writes them by their offsets.
 */
const volatile struct {
	u64 own_cookie;
	u32 link_octets;
	u32 spare;
} settings = { 0 };

struct counts {
	u64 packets;
	u64 acks;
	u64 octets;
};

struct shared {
	struct bpf_spin_lock lock;
	u32 spare;
	struct thin_uplink uplink;
	/* Number of the last packet given to the program, and of the last one up to which it has none any more. */
	u64 given;
	u64 settled;
	struct counts counts;
};

struct tracked {
	struct thin_flow flow;
	/* Number of its last packet given to the program. */
	u64 given;
};

/* Read by their offsets there, as what follows. A packet that is given to the program; or, with `has_left`, the beginning of one that is no ACK and has left. */
struct given {
	u64 number;
	/* The verdict. */
	u64 hold;
	u32 has_left;
	u32 len;
	u8 frame[FRAME_OCTETS];
};

struct turn {
	u64 now;
	u64 sent;
	u64 waiting;
	u64 settled;
	u64 rate;
	/* Nonzero: the rate is given, and nothing is observed. */
	u64 has_rate;
	u64 free_at;
	u64 packets;
	u64 acks;
	u64 octets;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct shared);
} thin_shared SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, FLOWS_MAX);
	__type(key, struct thin_key);
	__type(value, struct tracked);
} thin_flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct thin_packet);
} thin_looked_at SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING_OCTETS);
} thin_ring SEC(".maps");

/* The octets of a read without the first. Verifiers before Linux 6.18 do not see that a number compared with zero is none, and compilers
 * join that comparison with the next; they do not see through this one.
 */
static __always_inline u32 beyond_first(u32 octets)
{
	octets--;
	asm volatile("" : "+r"(octets));
	return octets;
}

/* What a loop carries stands on the stack. */
struct options {
	struct thin_packet *packet;
};

static long next_option(u32 number, struct options *options)
{
	return thin_read_option(options->packet);
}

/* Reads the packet. Returns zero if it is no segment that is understood. */
static __always_inline int look_at(struct __sk_buff *skb, struct thin_packet *packet)
{
	u32 link = settings.link_octets, there = skb->len - link, more_options;
	struct options options = { packet };

	__builtin_memset(packet, 0, sizeof(*packet));
	if (skb->vlan_present || bpf_skb_load_bytes(skb, link, packet->ip, THIN_IP_OCTETS))
		return 0;
	if (link && skb->protocol != __builtin_bswap16(0x0800) && skb->protocol != __builtin_bswap16(0x86dd))
		return 0;
	if (!thin_read_ip(packet, there) ||
	    bpf_skb_load_bytes(skb, link + packet->ip_header_len, packet->tcp, THIN_TCP_OCTETS) ||
	    !thin_read_tcp(packet))
		return 0;
	more_options = beyond_first(packet->options_len);
	if (more_options < THIN_OPTIONS_OCTETS) {
		if (bpf_skb_load_bytes(skb, link + packet->ip_header_len + THIN_TCP_OCTETS, packet->options, more_options + 1))
			return 0;
		bpf_loop(THIN_OPTIONS_OCTETS + 1, next_option, &options, 0);
	}
	return !packet->is_bad;
}

/* The flow of a packet that is sent, which is tracked from now on. */
static __always_inline struct tracked *admit(const struct thin_key *key)
{
	struct tracked *tracked = bpf_map_lookup_elem(&thin_flows, key);
	struct tracked none = {};

	if (tracked)
		return tracked;
	bpf_map_update_elem(&thin_flows, key, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&thin_flows, key);
}

/* Gives a packet to the program, or shows it one that has left. Returns zero if there is no room. */
static __always_inline int give(struct __sk_buff *skb, u64 number, u64 hold, u32 len, int has_left)
{
	struct given *given = bpf_ringbuf_reserve(&thin_ring, sizeof(*given), 0);
	u32 more = beyond_first(len);

	if (!given)
		return 0;
	given->number = number;
	given->hold = hold;
	given->has_left = has_left;
	given->len = len;
	if (more >= FRAME_OCTETS || bpf_skb_load_bytes(skb, 0, given->frame, more + 1)) {
		given->len = 0;
		if (!has_left) {
			bpf_ringbuf_discard(given, 0);
			return 0;
		}
	}
	bpf_ringbuf_submit(given, 0);
	return 1;
}

PROGRAM
int thin_egress(struct __sk_buff *skb)
{
	u32 first = 0, len = skb->len, headers_len = 0;
	struct shared *shared = bpf_map_lookup_elem(&thin_shared, &first);
	struct thin_packet *packet = bpf_map_lookup_elem(&thin_looked_at, &first);
	const struct thin_segment *segment = 0;
	struct tracked *tracked = 0;
	u64 now = bpf_ktime_get_ns(), verdict = THIN_PASS, number = 0;
	int is_own, is_ack = 0, gives = 0, shows = 0;

	if (!shared || !packet)
		return TCX_NEXT;
	is_own = settings.own_cookie && bpf_get_socket_cookie(skb) == settings.own_cookie;
	if (look_at(skb, packet)) {
		segment = &packet->segment;
		is_ack = thin_is_pure(segment);
		headers_len = settings.link_octets + packet->ip_header_len + packet->tcp_header_len;
		tracked = admit(&packet->key);
	}
	bpf_spin_lock(&shared->lock);
	if (is_own) {
		thin_pass(tracked ? &tracked->flow : 0, &shared->uplink, now, segment, len);
		shared->counts.octets += len;
	} else {
		shared->counts.packets++;
		/* As programs count them: PSH is one as well. */
		shared->counts.acks += segment && segment->payload_len == 0 && (segment->flags & 55) == THIN_ACK;
		if (segment && tracked)
			verdict = thin_offer(&tracked->flow, &shared->uplink, now, segment);
		/* Nothing overtakes an ACK of its own flow but data, behind which the program sends what waits. */
		gives = verdict != THIN_PASS ||
			(is_ack && tracked && (s64)(tracked->given - shared->settled) > 0);
		shows = !is_ack && shared->given != shared->settled;
		if (gives) {
			number = ++shared->given;
			tracked->given = number;
		} else {
			number = shared->given;
			thin_pass(tracked ? &tracked->flow : 0, &shared->uplink, now, segment, len);
			shared->counts.octets += len;
		}
	}
	bpf_spin_unlock(&shared->lock);
	if (gives) {
		if (give(skb, number, verdict, headers_len, 0))
			/* There is no device 0: the packet ends here, and its sender takes it for sent. */
			return bpf_redirect(0, 0);
		bpf_spin_lock(&shared->lock);
		thin_pass(tracked ? &tracked->flow : 0, &shared->uplink, now, segment, len);
		shared->counts.octets += len;
		bpf_spin_unlock(&shared->lock);
	} else if (shows) {
		give(skb, number, THIN_PASS, headers_len, 1);
	}
	if (segment && (segment->flags & THIN_RST))
		bpf_map_delete_elem(&thin_flows, &packet->key);
	return TCX_NEXT;
}

PROGRAM
int thin_ingress(struct __sk_buff *skb)
{
	u32 first = 0;
	struct shared *shared = bpf_map_lookup_elem(&thin_shared, &first);
	struct thin_packet *packet = bpf_map_lookup_elem(&thin_looked_at, &first);
	struct thin_key answered = {};
	struct tracked *tracked;
	u64 now = bpf_ktime_get_ns();

	if (!shared || !packet || !look_at(skb, packet))
		return TCX_NEXT;
	__builtin_memcpy(answered.source, packet->key.destination, 16);
	__builtin_memcpy(answered.destination, packet->key.source, 16);
	answered.source_port = packet->key.destination_port;
	answered.destination_port = packet->key.source_port;
	answered.version = packet->key.version;
	tracked = bpf_map_lookup_elem(&thin_flows, &answered);
	if (!tracked)
		return TCX_NEXT;
	bpf_spin_lock(&shared->lock);
	thin_hear(&tracked->flow, now, &packet->segment);
	bpf_spin_unlock(&shared->lock);
	return TCX_NEXT;
}

/* The program tells what the queue has done and what it has no longer, and asks when the uplink will be free. */
PROGRAM
int thin_turn(struct turn *turn)
{
	u32 first = 0;
	struct shared *shared = bpf_map_lookup_elem(&thin_shared, &first);
	struct turn told = *turn;

	if (!shared)
		return 1;
	bpf_spin_lock(&shared->lock);
	if (told.has_rate)
		shared->uplink.rate = told.rate;
	else
		thin_observe(&shared->uplink, told.now, told.sent, told.waiting);
	if ((s64)(told.settled - shared->settled) > 0)
		shared->settled = told.settled;
	told.rate = shared->uplink.rate;
	told.free_at = shared->uplink.free_at;
	told.packets = shared->counts.packets;
	told.acks = shared->counts.acks;
	told.octets = shared->counts.octets;
	bpf_spin_unlock(&shared->lock);
	/* One by one: the context takes no other writes. */
	turn->rate = told.rate;
	turn->free_at = told.free_at;
	turn->packets = told.packets;
	turn->acks = told.acks;
	turn->octets = told.octets;
	return 0;
}
