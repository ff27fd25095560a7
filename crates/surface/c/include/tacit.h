/* libtacit: TCP/HACK's codec, TACK's ACK law, and ROHC-TCP (RFC 6846).
 *
 * Written from the Rust code by a test (crates/surface/c/tests/it/header.rs); do not change it by hand.
 * docs/use/c.md has examples and the duties of a driver. Licence: MIT OR Apache-2.0.
 *
 * Functions return TACIT_OK or a negative code, unless they say otherwise. A handle is for one thread at a time; several
 * handles are independent. Packets are whole IP packets, from the first byte of the IP header. A length of 0 may have a
 * NULL pointer. Outputs are written only as far as their length says.
 */
#ifndef TACIT_H
#define TACIT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Memory */

/* Memory for a handle starts at a multiple of this number of bytes. */
#define TACIT_ALIGN 16

/* What functions return */

/* Done. */
#define TACIT_OK 0

/* A pointer that must not be NULL is. */
#define TACIT_ERR_NULL (-1)

/* No handle of the kind that the function takes: never initialised, freed, or of another kind. */
#define TACIT_ERR_HANDLE (-2)

/* The handle is in use: its own callback called it. */
#define TACIT_ERR_BUSY (-3)

/* The memory for a handle is too short, or not aligned to TACIT_ALIGN. */
#define TACIT_ERR_MEMORY (-4)

/* An argument is outside of its range, or input and output overlap. */
#define TACIT_ERR_ARGUMENT (-5)

/* The output buffer is too short. */
#define TACIT_ERR_SPACE (-6)

/* HACK: the TCP/IP header could not be restored bit for bit. */
#define TACIT_ERR_HEADER (-20)

/* HACK: bytes stand behind the packet. */
#define TACIT_ERR_TRAILER (-21)

/* HACK: the packet has payload, or a flag other than ACK, PSH and ECE. */
#define TACIT_ERR_NOT_PURE_ACK (-22)

/* HACK: the TCP checksum is wrong. */
#define TACIT_ERR_CHECKSUM (-23)

/* HACK: no native ACK of the flow has reached the peer yet. ROHC: the flow or CID has no context. */
#define TACIT_ERR_NO_CONTEXT (-24)

/* HACK: another live flow has the CID of this one. */
#define TACIT_ERR_CID_TAKEN (-25)

/* HACK: the frame is full. Finish it first. */
#define TACIT_ERR_FRAME_FULL (-26)

/* ROHC: the packet cannot be compressed: its header or its TCP options are not of the profile. */
#define TACIT_ERR_PROFILE (-40)

/* ROHC: the peer refused the flow. */
#define TACIT_ERR_REJECTED (-41)

/* ROHC: there is only padding or feedback. */
#define TACIT_ERR_EMPTY (-42)

/* ROHC: the packet is truncated, or has bits that no valid packet has. */
#define TACIT_ERR_MALFORMED (-43)

/* ROHC: the context may be damaged, and the packet's CRC is too weak to repair it. */
#define TACIT_ERR_DAMAGED (-44)

/* ROHC: the CRC is wrong, or the packet is late. */
#define TACIT_ERR_CRC (-45)

/* ROHC: no room for another context. */
#define TACIT_ERR_NO_ROOM (-46)

/* What a code means, in English: a string that is never freed. Codes that no function returns have one, too. */
const char *tacit_error_text(int code);

/* The version of this library, such as "0.2.0". */
const char *tacit_version(void);

/* TCP/HACK: compressed ACKs inside link-layer ACKs */

/* Each ACK of a frame is coded on its own, as in the paper. */
#define TACIT_HACK_PER_ACK 0

/* All ACKs of a frame are one range-coded run: shorter, with a little more work. */
#define TACIT_HACK_BATCH 1

/* ACKs in a frame, at most. */
#define TACIT_HACK_FRAME_ACKS 64

/* Flows of an end, at most. */
#define TACIT_HACK_CONTEXTS 256

/* The end that sends ACKs. */
typedef struct tacit_hack_compressor tacit_hack_compressor;

/* The end that restores ACKs. */
typedef struct tacit_hack_decompressor tacit_hack_decompressor;

/* Takes a restored ACK, a whole IP packet that lives until the call returns. */
typedef void (*tacit_hack_deliver)(void *user, const uint8_t *packet, size_t len);

/* The outcome of the frames of one link-layer ACK. All but `acks` count frames. */
typedef struct tacit_hack_report {
    /* Frames found. */
    uint32_t frames;
    /* ACKs delivered. */
    uint32_t acks;
    /* Duplicates. */
    uint32_t duplicates;
    /* Wrong lengths, unknown kinds, or fields that no pure ACK has. */
    uint32_t malformed;
    /* No flow with this CID is active. */
    uint32_t no_context;
    /* A frame before this one is missing. */
    uint32_t gap;
    /* First frames whose native ACK is unknown or superseded. */
    uint32_t stale;
    /* The CRC-8 does not match the restored headers. */
    uint32_t check;
} tacit_hack_report;

/* Bytes of memory for a compressor of 1 to TACIT_HACK_CONTEXTS flows, whose frames have 1 to TACIT_HACK_FRAME_ACKS ACKs;
 * 0 for other arguments. */
size_t tacit_hack_compressor_size(size_t contexts, size_t frame_acks);

/* Makes a compressor in `memory`, which has `len` bytes and is aligned to TACIT_ALIGN. It stays the caller's, but only
 * this library may touch it while the handle is used; then it may be freed. `coding` is TACIT_HACK_PER_ACK or
 * TACIT_HACK_BATCH. Nothing is allocated, now or later. */
int tacit_hack_compressor_init(
    void *memory,
    size_t len,
    int coding,
    size_t contexts,
    size_t frame_acks,
    tacit_hack_compressor **compressor);

/* The link layer acknowledged this native ACK, a whole IP packet: its flow can be compressed from now on. Other packets
 * than pure ACKs are ignored, so that a driver may pass every packet. */
int tacit_hack_native_sent(tacit_hack_compressor *compressor, const uint8_t *packet, size_t len);

/* Adds a pure ACK, a whole IP packet, to the frame under construction. One that is refused has to be sent
 * uncompressed; nothing changes then. */
int tacit_hack_push(tacit_hack_compressor *compressor, const uint8_t *packet, size_t len);

/* Writes the frames of the ACKs since the last call to `frames`, which has room for `room` bytes: a frame for each flow.
 * `len` gets their bytes, and `acks`, unless it is NULL, the ACKs in them; both 0 where there are none.
 *
 * TACIT_ERR_SPACE: they are longer. Nothing is written, the ACKs have to be sent uncompressed, and their flows have
 * no context until the next native ACK. */
int tacit_hack_finish(
    tacit_hack_compressor *compressor,
    uint8_t *frames,
    size_t room,
    size_t *len,
    size_t *acks);

/* Frames that may not have arrived were given up: the flow of `packet` has no context until its next native ACK, and its
 * ACKs leave the frame under construction. A NULL packet of length 0 stands for all flows. */
int tacit_hack_invalidate(tacit_hack_compressor *compressor, const uint8_t *packet, size_t len);

/* Bytes of memory for a decompressor of 1 to TACIT_HACK_CONTEXTS flows; 0 for other arguments. */
size_t tacit_hack_decompressor_size(size_t contexts);

/* Makes a decompressor in `memory`, as tacit_hack_compressor_init does. It needs more contexts than the compressor by
 * the flows whose CID another has. */
int tacit_hack_decompressor_init(
    void *memory,
    size_t len,
    size_t contexts,
    tacit_hack_decompressor **decompressor);

/* A native packet arrived from the peer. Other packets than pure ACKs are ignored. */
int tacit_hack_native_received(
    tacit_hack_decompressor *decompressor,
    const uint8_t *packet,
    size_t len);

/* The bytes behind one link-layer ACK arrived: restores the ACKs of its frames, and calls `deliver` with `user` for each.
 * `report`, unless it is NULL, gets the counts. Frames that cannot be restored are counted there; they are no error. */
int tacit_hack_receive(
    tacit_hack_decompressor *decompressor,
    const uint8_t *frames,
    size_t len,
    tacit_hack_deliver deliver,
    void *user,
    tacit_hack_report *report);

/* TACK's ACK law: when to acknowledge */

/* Nothing waits for an acknowledgment. */
#define TACIT_ACK_NONE 0

/* Acknowledge at the time that was written, unless packets change it. */
#define TACIT_ACK_LATER 1

/* Acknowledge now. */
#define TACIT_ACK_NOW 2

/* The law for one receiver. */
typedef struct tacit_ack_law tacit_ack_law;

/* Bytes of memory for a law. */
size_t tacit_ack_law_size(void);

/* Makes a law in `memory`, which has `len` bytes, is aligned to TACIT_ALIGN and stays the caller's. `packet` is the bytes
 * of data in a full-sized packet, such as TCP's MSS; at least 1. The rule is that of tacit_ack_law_rule with 4, 16 and 25
 * ms. Nothing is allocated, now or later. */
int tacit_ack_law_init(void *memory, size_t len, uint32_t packet, tacit_ack_law **law);

/* How often: `beta` ACKs in a round trip (2 to 64), one for `every` full-sized packets (1 to 255), and at least
 * `min_interval_ns` between two, up to 18 minutes. A sender whose window waits for ACKs, such as TCP's, needs 0 there:
 * ACKs then follow the round trip alone, once `every` packets wait or the first has waited long. */
int tacit_ack_law_rule(tacit_ack_law *law, uint8_t beta, uint8_t every, uint64_t min_interval_ns);

/* What is known of the path: the smallest round trip (0 where it is not known; the last one stays then), the least time
 * between ACKs that the way back carries (0 for any), and whether the sender still looks for its rate (not 0), as in slow
 * start. Times are up to 18 minutes. */
int tacit_ack_law_path(tacit_ack_law *law, uint64_t rtt_min_ns, uint64_t ack_path_ns, int starting);

/* A packet with `bytes` of data arrived at `now_ns`, nanoseconds of a clock that starts anywhere, at most 2^62. A time
 * before the latest one counts as that one. */
int tacit_ack_law_packet(tacit_ack_law *law, uint64_t now_ns, uint32_t bytes);

/* When to acknowledge what has arrived: TACIT_ACK_NONE, TACIT_ACK_LATER with the time in `due_ns`, or TACIT_ACK_NOW. Ask
 * after each packet, and when the time has come. An error is negative. */
int tacit_ack_law_due(tacit_ack_law *law, uint64_t now_ns, uint64_t *due_ns);

/* An acknowledgment of all that arrived left at `now_ns`. `rate_bps` is the rate at which data arrives, or 0: then the law
 * measures it. `delay_us`, unless it is NULL, is the least one-way delay since the last acknowledgment in microseconds, by
 * two clocks that need not agree: with it, ACKs get rarer where a queue stands. */
int tacit_ack_law_sent(
    tacit_ack_law *law,
    uint64_t now_ns,
    uint64_t rate_bps,
    const uint32_t *delay_us);

/* ROHC-TCP; not in a library without an operating system */

/* By how much a ROHC packet may be longer than its IP packet. */
#define TACIT_ROHC_GROWTH 65

/* Bytes of a feedback element, at most. */
#define TACIT_ROHC_FEEDBACK 8

/* The end that compresses. */
typedef struct tacit_rohc_compressor tacit_rohc_compressor;

/* The end that decompresses. */
typedef struct tacit_rohc_decompressor tacit_rohc_decompressor;

/* What both ends agree on, and how each of them works. tacit_rohc_defaults fills it in. */
typedef struct tacit_rohc_config {
    /* The largest CID: up to 15 where CIDs are small, up to 16383 where they are large. It bounds the contexts. */
    uint16_t max_cid;
    /* Not 0: CIDs are large. */
    uint8_t large_cids;
    /* Packets in a row that carry each change, 1 to 8. Fewer losses in a row than this damage no other packet. */
    uint8_t repeat;
    /* Not 0: the decompressor makes feedback. */
    uint8_t feedback;
    /* Not 0: the decompressor verifies the TCP checksum of every packet. */
    uint8_t verify_tcp_checksum;
    /* Seeds the first MSNs, which the RFC wants random, and the hash of flows. */
    uint64_t seed;
} tacit_rohc_config;

/* Sixteen small CIDs, each change in two packets, feedback, no verification. */
int tacit_rohc_defaults(tacit_rohc_config *config);

/* Makes a compressor. Its contexts are allocated with their flows, and freed with it. */
int tacit_rohc_compressor_new(const tacit_rohc_config *config, tacit_rohc_compressor **compressor);

/* Frees a compressor; NULL is none. */
int tacit_rohc_compressor_free(tacit_rohc_compressor *compressor);

/* Compresses the IP packet at `packet` into `out`, which has room for `room` bytes and shares none with it; packet and
 * TACIT_ROHC_GROWTH always suffice. `out_len` gets the bytes. `now_ms` is the time of any clock: contexts are refreshed by
 * it, unless it is always 0. A packet that cannot be compressed has to go another way. */
int tacit_rohc_compress(
    tacit_rohc_compressor *compressor,
    uint64_t now_ms,
    const uint8_t *packet,
    size_t len,
    uint8_t *out,
    size_t room,
    size_t *out_len);

/* Takes feedback elements of the peer's decompressor. Malformed ones are ignored; `ignored`, unless it is NULL, gets their
 * number. */
int tacit_rohc_feedback(
    tacit_rohc_compressor *compressor,
    const uint8_t *feedback,
    size_t len,
    size_t *ignored);

/* Bytes of feedback and padding in front of the ROHC packet at `packet`: for tacit_rohc_feedback of the other direction.
 * tacit_rohc_decompress skips them. `feedback_len` gets them. */
int tacit_rohc_split(const uint8_t *packet, size_t len, size_t *feedback_len);

/* Makes a decompressor. Its contexts are allocated with their first packets, and freed with it. */
int tacit_rohc_decompressor_new(
    const tacit_rohc_config *config,
    tacit_rohc_decompressor **decompressor);

/* Frees a decompressor; NULL is none. */
int tacit_rohc_decompressor_free(tacit_rohc_decompressor *decompressor);

/* Decompresses the ROHC packet at `packet` into `out`, which has room for `room` bytes and shares none with it. `out_len`
 * gets the bytes. `feedback` has room for TACIT_ROHC_FEEDBACK bytes and gets what is to be sent to the compressor, also
 * after an error, and `feedback_len` their number; both may be NULL. */
int tacit_rohc_decompress(
    tacit_rohc_decompressor *decompressor,
    const uint8_t *packet,
    size_t len,
    uint8_t *out,
    size_t room,
    size_t *out_len,
    uint8_t *feedback,
    size_t *feedback_len);

#ifdef __cplusplus
}
#endif

#endif
