/* The events and the state of thin.h as numbers, for the tests that compare it with the Rust. */
#ifndef TACIT_THIN_WORDS_H
#define TACIT_THIN_WORDS_H

#include "thin_parse.h"

#define THIN_WORDS 39

enum { THIN_TOLD_OFFER, THIN_TOLD_PASSED, THIN_TOLD_HEARD, THIN_TOLD_QUEUE };

struct thin_told {
	u64 now;
	/* Of the queue. */
	u64 sent;
	u64 waiting;
	u32 kind;
	/* Octets on the uplink, and of `octets`. */
	u32 len;
	u32 there;
	u8 octets[132];
};

THIN int thin_read(struct thin_packet *packet, const u8 *octets, u32 there)
{
	__builtin_memset(packet, 0, sizeof(*packet));
	for (u32 i = 0; i < THIN_IP_OCTETS && i < there; i++)
		packet->ip[i] = octets[i];
	if (!thin_read_ip(packet, there))
		return 0;
	for (u32 i = 0; i < THIN_TCP_OCTETS; i++)
		packet->tcp[i] = octets[packet->ip_header_len + i];
	if (!thin_read_tcp(packet))
		return 0;
	for (u32 i = 0; i < packet->options_len; i++)
		packet->options[i] = octets[packet->ip_header_len + THIN_TCP_OCTETS + i];
	while (!thin_read_option(packet))
		;
	return !packet->is_bad;
}

THIN void thin_happen(struct thin_flow *flow, struct thin_uplink *uplink, const struct thin_told *told, u64 *words)
{
	struct thin_packet packet;
	const struct thin_segment *segment = 0;
	u64 verdict = 0;

	if (told->kind == THIN_TOLD_QUEUE)
		thin_observe(uplink, told->now, told->sent, told->waiting);
	else if (thin_read(&packet, told->octets, told->there))
		segment = &packet.segment;
	if (told->kind == THIN_TOLD_OFFER) {
		verdict = segment ? thin_offer(flow, uplink, told->now, segment) : THIN_PASS;
		if (verdict == THIN_PASS)
			thin_pass(segment ? flow : 0, uplink, told->now, segment, told->len);
	} else if (told->kind == THIN_TOLD_PASSED) {
		thin_pass(segment ? flow : 0, uplink, told->now, segment, told->len);
	} else if (told->kind == THIN_TOLD_HEARD && segment) {
		thin_hear(flow, told->now, segment);
	}
	const u64 all[THIN_WORDS] = {
		verdict,
		segment ? segment->seq : 0,
		segment ? segment->ack : 0,
		segment ? segment->payload_len : 0,
		segment ? segment->window : 0,
		segment ? segment->flags : 0,
		segment ? segment->has_timestamps : 0,
		segment ? segment->value : 0,
		segment ? segment->echo : 0,
		segment ? segment->has_sack : 0,
		segment ? segment->has_mss : 0,
		segment ? segment->mss : 0,
		segment ? segment->has_scale : 0,
		segment ? segment->scale : 0,
		uplink->rate,
		uplink->is_busy,
		uplink->busy_since,
		uplink->busy_sent,
		uplink->largest,
		uplink->last,
		uplink->free_at,
		uplink->data_until,
		flow->scale,
		flow->mss,
		flow->has_acks,
		flow->first,
		flow->last,
		flow->last_has_sack,
		flow->last_at,
		flow->passed,
		flow->window,
		flow->has_finished ? 1 + (u64)flow->finished : 0,
		flow->probed,
		flow->has_smoothed,
		flow->smoothed,
		flow->has_syn ? 1 + flow->syn_at : 0,
		flow->has_echo ? 1 + (u64)flow->echo : 0,
		flow->has_echo ? flow->echo_at : 0,
		flow->has_stamped ? 1 + (u64)flow->stamped : 0,
	};
	for (int i = 0; i < THIN_WORDS; i++)
		words[i] = all[i];
}

#endif
