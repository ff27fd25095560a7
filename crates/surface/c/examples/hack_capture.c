/* Turns the pure ACKs of a capture into HACK frames and back, and tells the bytes before and after.
 *
 *     hack_capture FILE [ACKS_PER_FRAME [per-ack|batch]]
 *
 * FILE is a pcap file of Ethernet or raw IP. A frame ends after ACKS_PER_FRAME ACKs (16), or when the next one comes more
 * than 4 ms later, as one Block Ack would carry those of one A-MPDU. No frame is lost here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tacit.h"

enum { CONTEXTS = 64, SNAPLEN = 65536, GAP_US = 4000, ROOM = 4096, ACK_BYTES = 100 };

struct ends {
    tacit_hack_compressor *client;
    tacit_hack_decompressor *ap;
    /* The ACKs of the frame under construction: what has to come out again. */
    uint8_t sent[TACIT_HACK_FRAME_ACKS][ACK_BYTES];
    size_t sent_len[TACIT_HACK_FRAME_ACKS];
    size_t pending;
    size_t restored_here;
    unsigned long packets, native, in_frames, frames, ack_bytes, frame_bytes, restored;
};

static void fail(const char *what) {
    fprintf(stderr, "hack_capture: %s\n", what);
    exit(1);
}

static void must(int code) {
    if (code != TACIT_OK)
        fail(tacit_error_text(code));
}

/* The library never allocates: all of its memory comes from here. */
static void *memory_for(size_t size) {
    void *memory = aligned_alloc(TACIT_ALIGN, (size + TACIT_ALIGN - 1) / TACIT_ALIGN * TACIT_ALIGN);
    if (memory == NULL)
        fail("no memory");
    return memory;
}

/* The order of frames is that of flows, so an ACK is looked for among those that are due. */
static void deliver(void *user, const uint8_t *packet, size_t len) {
    struct ends *ends = user;
    for (size_t i = 0; i < ends->pending; i++) {
        if (ends->sent_len[i] == len && memcmp(ends->sent[i], packet, len) == 0) {
            ends->sent_len[i] = 0;
            ends->restored_here++;
            return;
        }
    }
    fail("an ACK that was never sent");
}

/* A link-layer ACK carries what is pending. */
static void ship(struct ends *ends) {
    uint8_t frames[ROOM];
    size_t len, acks;
    tacit_hack_report report;
    must(tacit_hack_finish(ends->client, frames, sizeof frames, &len, &acks));
    if (acks == 0)
        return;
    ends->restored_here = 0;
    must(tacit_hack_receive(ends->ap, frames, len, deliver, ends, &report));
    if (ends->restored_here != ends->pending || report.acks != acks)
        fail("an ACK was not restored");
    ends->restored += acks;
    ends->frames += report.frames;
    ends->frame_bytes += len;
    ends->pending = 0;
}

/* One IP packet on its way to the access point. */
static void handle(struct ends *ends, const uint8_t *packet, size_t len) {
    ends->packets++;
    if (ends->pending == TACIT_HACK_FRAME_ACKS)
        ship(ends);
    int code = tacit_hack_push(ends->client, packet, len);
    if (code == TACIT_ERR_FRAME_FULL) {
        ship(ends);
        code = tacit_hack_push(ends->client, packet, len);
    }
    if (code == TACIT_OK) {
        memcpy(ends->sent[ends->pending], packet, len);
        ends->sent_len[ends->pending++] = len;
        ends->in_frames++;
        ends->ack_bytes += len;
        return;
    }
    /* It goes as it is. Both ends see it, and those of its flow that follow may ride. */
    ship(ends);
    ends->native++;
    must(tacit_hack_native_received(ends->ap, packet, len));
    must(tacit_hack_native_sent(ends->client, packet, len));
}

static uint32_t word(const uint8_t *at, int swapped) {
    return swapped ? (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]
                   : (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

/* Where the IP packet begins in a frame of this link type. */
static size_t ip_offset(uint32_t link, const uint8_t *frame, size_t len) {
    if (link != 1)
        return 0;
    int is_ip = len >= 14 && ((frame[12] == 0x08 && frame[13] == 0x00) || (frame[12] == 0x86 && frame[13] == 0xdd));
    return is_ip ? 14 : len;
}

/* Ethernet pads short frames: the IP header says how long the packet is. */
static size_t ip_length(const uint8_t *ip, size_t len) {
    size_t said = len;
    if (len >= 20 && ip[0] >> 4 == 4)
        said = (size_t)ip[2] << 8 | ip[3];
    else if (len >= 40 && ip[0] >> 4 == 6)
        said = 40 + ((size_t)ip[4] << 8 | ip[5]);
    return said < len ? said : len;
}

static void read_capture(struct ends *ends, FILE *file) {
    static uint8_t frame[SNAPLEN];
    uint8_t head[24], record[16];
    if (fread(head, 1, sizeof head, file) != sizeof head)
        fail("no pcap file");
    int swapped = head[0] == 0xa1;
    uint32_t magic = word(head, swapped);
    if (magic != 0xa1b2c3d4 && magic != 0xa1b23c4d)
        fail("no pcap file (pcapng: editcap -F pcap)");
    uint32_t per_us = magic == 0xa1b2c3d4 ? 1 : 1000;
    uint32_t link = word(head + 20, swapped) & 0xffff;
    if (link != 1 && link != 12 && link != 101 && link != 228 && link != 229)
        fail("neither Ethernet nor raw IP");
    uint64_t last_us = 0;
    while (fread(record, 1, sizeof record, file) == sizeof record) {
        uint64_t now_us = (uint64_t)word(record, swapped) * 1000000 + word(record + 4, swapped) / per_us;
        size_t len = word(record + 8, swapped);
        if (len > sizeof frame || fread(frame, 1, len, file) != len)
            fail("the capture ends within a packet");
        if (now_us > last_us + GAP_US)
            ship(ends);
        last_us = now_us;
        size_t at = ip_offset(link, frame, len);
        handle(ends, frame + at, ip_length(frame + at, len - at));
    }
    ship(ends);
}

int main(int argc, char **argv) {
    if (argc < 2)
        fail("usage: hack_capture FILE [ACKS_PER_FRAME [per-ack|batch]]");
    long acks = argc > 2 ? strtol(argv[2], NULL, 10) : 16;
    int coding = argc > 3 && strcmp(argv[3], "per-ack") == 0 ? TACIT_HACK_PER_ACK : TACIT_HACK_BATCH;
    size_t size = acks > 0 ? tacit_hack_compressor_size(CONTEXTS, (size_t)acks) : 0;
    if (size == 0)
        fail("ACKS_PER_FRAME is 1 to 64");
    FILE *file = fopen(argv[1], "rb");
    if (file == NULL)
        fail("cannot open the file");

    static struct ends ends;
    void *client = memory_for(size);
    void *ap = memory_for(tacit_hack_decompressor_size(CONTEXTS));
    must(tacit_hack_compressor_init(client, size, coding, CONTEXTS, (size_t)acks, &ends.client));
    must(tacit_hack_decompressor_init(ap, tacit_hack_decompressor_size(CONTEXTS), CONTEXTS, &ends.ap));
    read_capture(&ends, file);
    fclose(file);
    free(client);
    free(ap);

    double count = ends.in_frames > 0 ? (double)ends.in_frames : 1;
    printf("packets           %8lu\n", ends.packets);
    printf("sent as they are  %8lu\n", ends.native);
    printf("ACKs in frames    %8lu, all restored bit for bit\n", ends.restored);
    printf("frames            %8lu\n", ends.frames);
    printf("bytes before      %8lu, %.2f per ACK\n", ends.ack_bytes, (double)ends.ack_bytes / count);
    printf("bytes after       %8lu, %.2f per ACK\n", ends.frame_bytes, (double)ends.frame_bytes / count);
    return 0;
}
