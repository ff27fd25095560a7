/* Plays the vectors of vectors/hack, both ends, through the library, and the streams of tests/programs/drawn.rs, which also have
 * ROHC-TCP and the ACK law. Exit code 0 where all is as they say. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tacit.h"

enum { LINE = 32768, PACKET = 8192 };

static const char *name;
static char line[LINE];
static unsigned long number, checked;
static void *client_memory, *ap_memory;
static tacit_hack_compressor *client;
static tacit_hack_decompressor *ap;

/* What the latest event delivered and no line has named yet. */
static uint8_t delivered[TACIT_HACK_FRAME_ACKS * 64][100];
static size_t delivered_len[TACIT_HACK_FRAME_ACKS * 64], delivered_count, named;

static void fail(const char *what) {
    fprintf(stderr, "%s:%lu: %s\n%s\n", name, number, what, line);
    exit(1);
}

static void must(int code) {
    if (code != TACIT_OK)
        fail(tacit_error_text(code));
}

static int digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static size_t from_hex(const char *text, uint8_t *bytes) {
    size_t len = 0;
    while (len < PACKET && digit(text[0]) >= 0 && digit(text[1]) >= 0) {
        bytes[len++] = (uint8_t)(digit(text[0]) * 16 + digit(text[1]));
        text += 2;
    }
    return len;
}

/* Writes bytes, or the sign for none; returns the end. */
static char *to_hex(char *text, const uint8_t *bytes, size_t len, const char *none) {
    static const char digits[] = "0123456789abcdef";
    if (len == 0) {
        strcpy(text, none);
        return text + strlen(none);
    }
    for (size_t i = 0; i < len; i++) {
        *text++ = digits[bytes[i] >> 4];
        *text++ = digits[bytes[i] & 15];
    }
    *text = 0;
    return text;
}

static void deliver(void *user, const uint8_t *packet, size_t len) {
    (void)user;
    if (delivered_count == sizeof delivered_len / sizeof *delivered_len || len > sizeof *delivered)
        fail("too much was delivered");
    memcpy(delivered[delivered_count], packet, len);
    delivered_len[delivered_count++] = len;
}

static void new_client(int coding) {
    size_t size = tacit_hack_compressor_size(64, TACIT_HACK_FRAME_ACKS);
    free(client_memory);
    client_memory = aligned_alloc(TACIT_ALIGN, (size + 15) / 16 * 16);
    must(tacit_hack_compressor_init(client_memory, size, coding, 64, TACIT_HACK_FRAME_ACKS, &client));
}

static void new_ap(size_t contexts) {
    size_t size = tacit_hack_decompressor_size(contexts);
    free(ap_memory);
    ap_memory = aligned_alloc(TACIT_ALIGN, (size + 15) / 16 * 16);
    must(tacit_hack_decompressor_init(ap_memory, size, contexts, &ap));
}

static void expect(const char *is, const char *said) {
    checked++;
    if (said == NULL || strcmp(is, said) != 0) {
        fprintf(stderr, "is %s\n", is);
        fail("another answer");
    }
}

static void push(const uint8_t *packet, size_t len, const char *said) {
    char answer[200];
    int code = tacit_hack_push(client, packet, len);
    /* Why a header is refused has many texts there, and one code here. */
    if (code == TACIT_ERR_HEADER && strncmp(said, "refused: ", 9) == 0) {
        checked++;
        return;
    }
    snprintf(answer, sizeof answer, code == TACIT_OK ? "taken" : "refused: %s", tacit_error_text(code));
    expect(answer, said);
}

static void frame(const char *said) {
    static uint8_t frames[PACKET];
    static char answer[2 * PACKET + 1];
    size_t len;
    must(tacit_hack_finish(client, frames, sizeof frames, &len, NULL));
    to_hex(answer, frames, len, "");
    expect(answer, said);
}

static void receive(const uint8_t *frames, size_t len, const char *said) {
    tacit_hack_report r;
    char answer[200] = "";
    delivered_count = named = 0;
    must(tacit_hack_receive(ap, frames, len, deliver, NULL, &r));
    uint32_t failed = r.malformed + r.no_context + r.gap + r.stale + r.check;
    struct { const char *name; uint32_t count; } outcomes[] = {
        {"delivered", r.frames - r.duplicates - failed}, {"duplicate", r.duplicates}, {"malformed", r.malformed},
        {"no-context", r.no_context}, {"gap", r.gap}, {"stale", r.stale}, {"check", r.check},
    };
    for (size_t i = 0; i < sizeof outcomes / sizeof *outcomes; i++)
        if (outcomes[i].count > 0)
            sprintf(answer + strlen(answer), "%s%s=%" PRIu32, *answer ? " " : "", outcomes[i].name, outcomes[i].count);
    expect(answer, said);
}

static void ack(const uint8_t *packet, size_t len) {
    checked++;
    if (named == delivered_count || delivered_len[named] != len || memcmp(delivered[named], packet, len) != 0)
        fail("another ACK, or none");
    named++;
}

/* The library without an operating system has no ROHC. */
#ifndef TACIT_BARE

static tacit_rohc_compressor *rohc_here;
static tacit_rohc_decompressor *rohc_there;

static void rohc_free(void) {
    must(tacit_rohc_compressor_free(rohc_here));
    must(tacit_rohc_decompressor_free(rohc_there));
    rohc_here = NULL;
    rohc_there = NULL;
}

static void rohc_new(const char *rest) {
    tacit_rohc_config config;
    unsigned large, repeat, feedback, verify;
    must(tacit_rohc_defaults(&config));
    if (sscanf(rest, "%" SCNu16 " %u %u %u %u %" SCNu64, &config.max_cid, &large, &repeat, &feedback, &verify, &config.seed) != 6)
        fail("no configuration");
    config.large_cids = (uint8_t)large;
    config.repeat = (uint8_t)repeat;
    config.feedback = (uint8_t)feedback;
    config.verify_tcp_checksum = (uint8_t)verify;
    rohc_free();
    must(tacit_rohc_compressor_new(&config, &rohc_here));
    must(tacit_rohc_decompressor_new(&config, &rohc_there));
}

/* Memory of exactly these bytes, so that a byte too many is seen. */
static uint8_t *exactly(const uint8_t *bytes, size_t len) {
    uint8_t *copy = malloc(len);
    if (copy == NULL && len > 0)
        fail("no memory");
    if (len > 0)
        memcpy(copy, bytes, len);
    return copy;
}

static void rohc_compress(const char *rest, uint8_t *bytes, const char *said) {
    static char answer[2 * PACKET + 32];
    uint64_t now_ms;
    int at;
    if (sscanf(rest, "%" SCNu64 " %n", &now_ms, &at) != 1)
        fail("no time");
    size_t len = from_hex(rest + at, bytes), made;
    uint8_t *packet = exactly(bytes, len), *out = malloc(len + TACIT_ROHC_GROWTH);
    int code = tacit_rohc_compress(rohc_here, now_ms, packet, len, out, len + TACIT_ROHC_GROWTH, &made);
    char *end = answer + sprintf(answer, code == TACIT_OK ? "made " : "refused ");
    to_hex(end, out, made, "-");
    free(packet);
    free(out);
    expect(answer, said);
}

static void rohc_receive(const uint8_t *bytes, size_t len, const char *said) {
    static char answer[2 * PACKET + 64];
    size_t done, feedback_len, ignored, split;
    uint8_t *rohc = exactly(bytes, len), *out = malloc(200), *feedback = malloc(TACIT_ROHC_FEEDBACK);
    int code = tacit_rohc_decompress(rohc_there, rohc, len, out, 200, &done, feedback, &feedback_len);
    must(tacit_rohc_feedback(rohc_here, feedback, feedback_len, &ignored));
    must(tacit_rohc_split(rohc, len, &split));
    char *end = answer + sprintf(answer, code == TACIT_OK ? "restored " : "refused ");
    end = to_hex(end, out, done, "-");
    *end++ = ' ';
    end = to_hex(end, feedback, feedback_len, "-");
    sprintf(end, " %zu", ignored);
    free(rohc);
    free(out);
    free(feedback);
    expect(answer, said);
}

static void rohc(const char *what, const char *rest, uint8_t *bytes, const char *said) {
    if (strcmp(what, "new") == 0)
        rohc_new(rest);
    else if (strcmp(what, "compress") == 0)
        rohc_compress(rest, bytes, said);
    else if (strcmp(what, "receive") == 0)
        rohc_receive(bytes, from_hex(rest, bytes), said);
    else
        fail("no event");
}

#else

static void rohc_free(void) {}

static void rohc(const char *what, const char *rest, uint8_t *bytes, const char *said) {
    (void)what, (void)rest, (void)bytes, (void)said;
    fail("no ROHC in this library");
}

#endif

static tacit_ack_law *ack_law;
static void *law_memory;

static void law(const char *what, const char *rest, const char *said) {
    uint64_t a = 0, b = 0, c = 0, due;
    int count = sscanf(rest, "%" SCNu64 " %" SCNu64 " %" SCNu64, &a, &b, &c);
    if (strcmp(what, "new") == 0) {
        free(law_memory);
        law_memory = aligned_alloc(TACIT_ALIGN, (tacit_ack_law_size() + 15) / 16 * 16);
        must(tacit_ack_law_init(law_memory, tacit_ack_law_size(), (uint32_t)a, &ack_law));
    } else if (strcmp(what, "rule") == 0) {
        must(tacit_ack_law_rule(ack_law, (uint8_t)a, (uint8_t)b, c));
    } else if (strcmp(what, "path") == 0) {
        must(tacit_ack_law_path(ack_law, a, b, (int)c));
    } else if (strcmp(what, "packet") == 0) {
        must(tacit_ack_law_packet(ack_law, a, (uint32_t)b));
    } else if (strcmp(what, "due") == 0) {
        char answer[64];
        int kind = tacit_ack_law_due(ack_law, a, &due);
        snprintf(answer, sizeof answer, "%d %" PRIu64, kind, due);
        expect(answer, said);
    } else if (strcmp(what, "sent") == 0) {
        uint32_t delay = (uint32_t)c;
        must(tacit_ack_law_sent(ack_law, a, b, count == 3 ? &delay : NULL));
    } else {
        fail("no event");
    }
}

static void event(char *text) {
    static uint8_t bytes[PACKET];
    char *said = strstr(text, " = ");
    if (said != NULL) {
        *said = 0;
        said += 3;
    } else if (strlen(text) > 2 && strcmp(text + strlen(text) - 2, " =") == 0) {
        text[strlen(text) - 2] = 0;
        said = "";
    }
    char end[32] = "", what[32] = "";
    int at = 0;
    if (sscanf(text, "%31s %31s%n", end, what, &at) != 2)
        fail("no event");
    const char *rest = text[at] == ' ' ? text + at + 1 : text + at;
    if (strcmp(end, "rohc") == 0) {
        rohc(what, rest, bytes, said);
        return;
    }
    if (strcmp(end, "law") == 0) {
        law(what, rest, said);
        return;
    }
    size_t len = from_hex(rest, bytes);
    int is_client = strcmp(end, "compressor") == 0;
    if (is_client && strcmp(what, "coding") == 0)
        new_client(strcmp(rest, "batch") == 0 ? TACIT_HACK_BATCH : TACIT_HACK_PER_ACK);
    else if (is_client && strcmp(what, "native") == 0)
        must(tacit_hack_native_sent(client, bytes, len));
    else if (is_client && strcmp(what, "invalidate") == 0)
        must(tacit_hack_invalidate(client, bytes, len));
    else if (is_client && strcmp(what, "push") == 0)
        push(bytes, len, said);
    else if (is_client && strcmp(what, "frame") == 0)
        frame(said);
    else if (!is_client && strcmp(what, "contexts") == 0)
        new_ap((size_t)strtoul(rest, NULL, 10));
    else if (!is_client && strcmp(what, "native") == 0)
        must(tacit_hack_native_received(ap, bytes, len));
    else if (!is_client && strcmp(what, "receive") == 0)
        receive(bytes, len, said);
    else if (!is_client && strcmp(what, "ack") == 0)
        ack(bytes, len);
    else
        fail("no event");
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        name = argv[i];
        number = 0;
        new_client(TACIT_HACK_PER_ACK);
        new_ap(64);
        FILE *file = fopen(name, "r");
        if (file == NULL)
            fail("cannot be opened");
        while (fgets(line, sizeof line, file) != NULL) {
            number++;
            line[strcspn(line, "\n")] = 0;
            if (line[0] != '#' && line[0] != 0)
                event(line);
        }
        fclose(file);
    }
    free(client_memory);
    free(ap_memory);
    free(law_memory);
    rohc_free();
    printf("%d files, %lu answers and ACKs\n", argc - 1, checked);
    return checked > 0 ? 0 : 1;
}
