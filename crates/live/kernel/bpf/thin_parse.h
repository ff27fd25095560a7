/* TCP segments in IP packets: crates/core/packet/src/wire/segments.rs in C. What is not understood is no segment. */
#ifndef TACIT_THIN_PARSE_H
#define TACIT_THIN_PARSE_H

#include "thin.h"

#define THIN_IP_OCTETS 40
#define THIN_TCP_OCTETS 20
#define THIN_OPTIONS_OCTETS 40
#define THIN_SACK_BLOCKS 4

enum { THIN_OPTION_MSS = 2, THIN_OPTION_SCALE = 3, THIN_OPTION_SACK_PERMITTED = 4, THIN_OPTION_SACK = 5,
       THIN_OPTION_TIMESTAMPS = 8 };

/* A flow and direction. */
struct thin_key {
	u8 source[16];
	u8 destination[16];
	u16 source_port;
	u16 destination_port;
	u32 version;
};

/* A packet that is looked at, and what was found. */
struct thin_packet {
	u8 ip[THIN_IP_OCTETS];
	u8 tcp[THIN_TCP_OCTETS];
	/* Longer than they can be, so that any six bits are an index. */
	u8 options[64];
	u32 options_len;
	u32 at;
	u32 blocks;
	u32 is_bad;
	/* Octets of the headers of IP and of TCP. */
	u32 ip_header_len;
	u32 tcp_header_len;
	/* Octets of the whole packet, as it states. */
	u32 len;
	struct thin_key key;
	struct thin_segment segment;
};

THIN u32 thin_word(const u8 *octets)
{
	return (u32)octets[0] << 24 | (u32)octets[1] << 16 | (u32)octets[2] << 8 | octets[3];
}

THIN u16 thin_half(const u8 *octets)
{
	return (u16)(octets[0] << 8 | octets[1]);
}

/* Reads the IP header of a packet of which `there` octets are there. Returns zero if no TCP header follows it. */
THIN int thin_read_ip(struct thin_packet *packet, u32 there)
{
	const u8 *ip = packet->ip;

	packet->key.version = ip[0] >> 4;
	if (packet->key.version == 4) {
		packet->ip_header_len = (ip[0] & 15) * 4;
		packet->len = thin_half(ip + 2);
		/* More fragments, or not the first. */
		if (packet->ip_header_len < 20 || thin_half(ip + 6) & 0x3fff || ip[9] != 6)
			return 0;
		__builtin_memcpy(packet->key.source, ip + 12, 4);
		__builtin_memcpy(packet->key.destination, ip + 16, 4);
	} else if (packet->key.version == 6) {
		packet->ip_header_len = 40;
		packet->len = thin_half(ip + 4) + 40;
		if (packet->len == 40 || ip[6] != 6)
			return 0;
		__builtin_memcpy(packet->key.source, ip + 8, 16);
		__builtin_memcpy(packet->key.destination, ip + 24, 16);
	} else {
		return 0;
	}
	return packet->len <= there && packet->len >= packet->ip_header_len + THIN_TCP_OCTETS;
}

/* Reads the TCP header without its options, the length of which follows from it. */
THIN int thin_read_tcp(struct thin_packet *packet)
{
	struct thin_segment *segment = &packet->segment;
	const u8 *tcp = packet->tcp;

	packet->tcp_header_len = (tcp[12] >> 4) * 4;
	if (packet->tcp_header_len < THIN_TCP_OCTETS || tcp[12] & 15 ||
	    packet->len < packet->ip_header_len + packet->tcp_header_len)
		return 0;
	packet->key.source_port = thin_half(tcp);
	packet->key.destination_port = thin_half(tcp + 2);
	packet->options_len = packet->tcp_header_len - THIN_TCP_OCTETS;
	segment->seq = thin_word(tcp + 4);
	segment->ack = thin_word(tcp + 8);
	segment->flags = tcp[13];
	segment->window = thin_half(tcp + 14);
	segment->payload_len = packet->len - packet->ip_header_len - packet->tcp_header_len;
	return 1;
}

/* Reads the next option. Returns nonzero after the last. */
THIN int thin_read_option(struct thin_packet *packet)
{
	struct thin_segment *segment = &packet->segment;
	u32 at = packet->at, there, stated;
	u8 kind, value[8];
	int opens = segment->flags & THIN_SYN;

	if (at >= packet->options_len || packet->options[at & 63] == 0)
		return 1;
	kind = packet->options[at & 63];
	if (kind == 1) {
		packet->at = at + 1;
		return 0;
	}
	if (at + 1 >= packet->options_len || packet->options[(at + 1) & 63] < 2) {
		packet->is_bad = 1;
		return 1;
	}
	stated = packet->options[(at + 1) & 63] - 2u;
	there = thin_min(stated, packet->options_len - at - 2);
	packet->at = at + 2 + there;
	for (int i = 0; i < 8; i++)
		value[i] = packet->options[(at + 2 + i) & 63];
	if (kind == THIN_OPTION_TIMESTAMPS && there == 8) {
		segment->has_timestamps = 1;
		segment->value = thin_word(value);
		segment->echo = thin_word(value + 4);
	} else if (kind == THIN_OPTION_SACK && there % 8 == 0 && packet->blocks + there / 8 <= THIN_SACK_BLOCKS) {
		packet->blocks += there / 8;
		segment->has_sack = packet->blocks > 0;
	} else if (kind == THIN_OPTION_MSS && there == 2 && opens) {
		segment->has_mss = 1;
		segment->mss = thin_half(value);
	} else if (kind == THIN_OPTION_SCALE && there == 1 && opens) {
		segment->has_scale = 1;
		segment->scale = value[0];
	} else if (!(kind == THIN_OPTION_SACK_PERMITTED && there == 0 && opens)) {
		packet->is_bad = 1;
		return 1;
	}
	return 0;
}

#endif
