/* What an ACK costs: N ACKs of a download with timestamps, in frames of 16, or as ROHC packets, or N calls of the law. The
 * instructions of two N, by callgrind, give those of one ACK.
 *
 *     cost make|compress|both|law N [per-ack|batch]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tacit.h"

static uint16_t sum(const uint8_t *bytes, size_t len, uint32_t total) {
    for (size_t i = 0; i < len; i += 2)
        total += (uint32_t)bytes[i] << 8 | bytes[i + 1];
    while (total >> 16)
        total = (total & 0xffff) + (total >> 16);
    return (uint16_t)~total;
}

static void put16(uint8_t *at, uint32_t value) {
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static void put32(uint8_t *at, uint32_t value) {
    put16(at, value >> 16);
    put16(at + 2, value & 0xffff);
}

static void make(uint8_t packet[52], uint32_t n) {
    static const uint8_t usual[52] = {0x45, 0, 0, 52, 0, 0, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 2, 192, 0, 2, 1, 0x9c, 0x40, 1,
        0xbb, 0, 0, 0, 1, 0, 0, 0, 0, 0x80, 0x10, 8, 0, 0, 0, 0, 0, 1, 1, 8, 10};
    memcpy(packet, usual, 52);
    put16(packet + 4, n);
    put16(packet + 10, sum(packet, 20, 0));
    put32(packet + 28, 2896 * n);
    put32(packet + 44, 1000 + n / 9);
    put32(packet + 48, 990 + n / 9);
    uint32_t pseudo = 6 + 32;
    for (size_t i = 12; i < 20; i += 2)
        pseudo += (uint32_t)packet[i] << 8 | packet[i + 1];
    put16(packet + 36, sum(packet + 20, 32, pseudo));
}

static unsigned long restored;

static void deliver(void *user, const uint8_t *packet, size_t len) {
    (void)user, (void)packet, (void)len;
    restored++;
}

static int hack(const char *mode, uint32_t count, int coding) {
    static _Alignas(TACIT_ALIGN) uint8_t here[65536], there[65536];
    tacit_hack_compressor *client;
    tacit_hack_decompressor *ap;
    uint8_t packet[52], frames[4096];
    size_t len;
    if (tacit_hack_compressor_init(here, sizeof here, coding, 1, 16, &client) || tacit_hack_decompressor_init(there, sizeof there, 1, &ap))
        return 1;
    make(packet, 0);
    tacit_hack_native_received(ap, packet, 52);
    tacit_hack_native_sent(client, packet, 52);
    for (uint32_t n = 1; n <= count; n++) {
        make(packet, n);
        if (strcmp(mode, "make") == 0)
            continue;
        if (tacit_hack_push(client, packet, 52))
            return 1;
        if (n % 16 == 0) {
            if (tacit_hack_finish(client, frames, sizeof frames, &len, NULL))
                return 1;
            if (strcmp(mode, "both") == 0)
                tacit_hack_receive(ap, frames, len, deliver, NULL, NULL);
        }
    }
    return strcmp(mode, "both") == 0 && restored != count / 16 * 16;
}

static int law(uint32_t count) {
    static _Alignas(TACIT_ALIGN) uint8_t memory[8192];
    tacit_ack_law *law;
    uint64_t due;
    if (tacit_ack_law_init(memory, sizeof memory, 1448, &law) || tacit_ack_law_path(law, 10000000, 0, 0))
        return 1;
    for (uint32_t n = 0; n < count; n++) {
        uint64_t now = (uint64_t)n * 48000;
        if (tacit_ack_law_packet(law, now, 1448))
            return 1;
        if (tacit_ack_law_due(law, now, &due) == TACIT_ACK_NOW && tacit_ack_law_sent(law, now, 0, NULL))
            return 1;
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    uint32_t count = (uint32_t)strtoul(argv[2], NULL, 10);
    if (strcmp(argv[1], "law") == 0)
        return law(count);
    return hack(argv[1], count, argc > 3 && strcmp(argv[3], "batch") == 0 ? TACIT_HACK_BATCH : TACIT_HACK_PER_ACK);
}
