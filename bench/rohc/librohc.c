/* Nanoseconds and bytes per packet of librohc's TCP profile: tacit-peers holds tacit's codec against them.
 *
 * Takes a classic pcap of raw IP packets (link type 101), as `tacit rohc decompress` writes it. As `tacit rohc stats` does
 * it, both ways are timed over packets in memory, with a new compressor or decompressor in each of nine passes, and the
 * median counts; every packet has to come back as it was. U-mode and small CIDs, as there; each change is repeated as often
 * as the library likes. Prints one line of JSON.
 *
 * Written from the manual pages of librohc 2.3 (rohc_comp.h(3), rohc_decomp.h(3), rohc_compress4(3), rohc_decompress3(3)). */

#define _POSIX_C_SOURCE 200809L

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rohc/rohc.h>
#include <rohc/rohc_buf.h>
#include <rohc/rohc_comp.h>
#include <rohc/rohc_decomp.h>

enum { PASSES = 9, PACKET_MAX = 4096, PCAP_HEADER = 24, RECORD_HEADER = 16, RAW_IP = 101 };

struct packet {
    size_t len;
    uint8_t bytes[PACKET_MAX];
};

struct packets {
    struct packet *all;
    size_t count;
};

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "librohc: %s\n", what);
    exit(1);
}

static uint32_t word(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static struct packets read_packets(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t header[PCAP_HEADER];
    if (!file || fread(header, sizeof header, 1, file) != 1)
        fail("no capture");
    if ((word(header) != 0xa1b2c3d4 && word(header) != 0xa1b23c4d) || word(header + 20) != RAW_IP)
        fail("not a little-endian pcap of raw IP packets");
    struct packets read = {NULL, 0};
    size_t room = 0;
    uint8_t record[RECORD_HEADER];
    while (fread(record, sizeof record, 1, file) == 1) {
        if (read.count == room) {
            room = room ? 2 * room : 1024;
            read.all = realloc(read.all, room * sizeof *read.all);
            if (!read.all)
                fail("no memory");
        }
        struct packet *packet = &read.all[read.count++];
        packet->len = word(record + 8);
        if (packet->len > PACKET_MAX || fread(packet->bytes, 1, packet->len, file) != packet->len)
            fail("a packet that is too long or cut");
    }
    fclose(file);
    if (!read.count)
        fail("no packets");
    return read;
}

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int by_size(const void *one, const void *other)
{
    double first = *(const double *)one, second = *(const double *)other;
    return (first > second) - (first < second);
}

static double median(double *values)
{
    qsort(values, PASSES, sizeof *values, by_size);
    return values[PASSES / 2];
}

/* Features that go by time are off. */
static const struct rohc_ts no_time = {0, 0};

/* Where MSNs start: the same in each pass. */
static int no_chance(const struct rohc_comp *comp, void *context)
{
    (void)comp;
    (void)context;
    return 0;
}

static double compress_all(struct packets from, struct packets to)
{
    struct rohc_comp *comp = rohc_comp_new2(ROHC_SMALL_CID, ROHC_SMALL_CID_MAX, no_chance, NULL);
    if (!comp || !rohc_comp_enable_profile(comp, ROHC_PROFILE_TCP))
        fail("no compressor for TCP");
    double began = now_ns();
    for (size_t index = 0; index < from.count; index++) {
        struct rohc_buf ip = rohc_buf_init_full(from.all[index].bytes, from.all[index].len, no_time);
        struct rohc_buf rohc = rohc_buf_init_empty(to.all[index].bytes, PACKET_MAX);
        if (rohc_compress4(comp, ip, &rohc) != ROHC_STATUS_OK)
            fail("a packet was not compressed");
        to.all[index].len = rohc.len;
    }
    double took = now_ns() - began;
    rohc_comp_free(comp);
    return took / (double)from.count;
}

static double decompress_all(struct packets from, struct packets to, size_t *failures)
{
    struct rohc_decomp *decomp = rohc_decomp_new2(ROHC_SMALL_CID, ROHC_SMALL_CID_MAX, ROHC_U_MODE);
    if (!decomp || !rohc_decomp_enable_profile(decomp, ROHC_PROFILE_TCP))
        fail("no decompressor for TCP");
    *failures = 0;
    double began = now_ns();
    for (size_t index = 0; index < from.count; index++) {
        struct rohc_buf rohc = rohc_buf_init_full(from.all[index].bytes, from.all[index].len, no_time);
        struct rohc_buf ip = rohc_buf_init_empty(to.all[index].bytes, PACKET_MAX);
        if (rohc_decompress3(decomp, rohc, &ip, NULL, NULL) != ROHC_STATUS_OK)
            ++*failures;
        to.all[index].len = ip.len;
    }
    double took = now_ns() - began;
    rohc_decomp_free(decomp);
    return took / (double)from.count;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        fail("usage: librohc CAPTURE");
    struct packets packets = read_packets(argv[1]);
    struct packets rohc = {calloc(packets.count, sizeof *packets.all), packets.count};
    struct packets back = {calloc(packets.count, sizeof *packets.all), packets.count};
    if (!rohc.all || !back.all)
        fail("no memory");
    double compress[PASSES], decompress[PASSES];
    size_t failures = 0, wrong = 0, bytes = 0;
    for (int pass = 0; pass < PASSES; pass++)
        compress[pass] = compress_all(packets, rohc);
    for (int pass = 0; pass < PASSES; pass++)
        decompress[pass] = decompress_all(rohc, back, &failures);
    for (size_t index = 0; index < packets.count; index++) {
        const struct packet *sent = &packets.all[index], *came = &back.all[index];
        bytes += rohc.all[index].len;
        wrong += came->len && (came->len != sent->len || memcmp(came->bytes, sent->bytes, sent->len) != 0);
    }
    printf("{\"packets\":%zu,\"bytes_per_packet\":%.6f,\"compress_ns_per_packet\":%.3f,\"decompress_ns_per_packet\":%.3f,"
           "\"failures\":%zu,\"wrong\":%zu,\"version\":\"%s\"}\n",
           packets.count, (double)bytes / (double)packets.count, median(compress), median(decompress), failures, wrong,
           rohc_version());
    return 0;
}
