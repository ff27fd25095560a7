/* Plays the vectors of vectors/hack, both ends, through the library. Exit code 0 where all is as they say. */
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

static size_t from_hex(const char *text, uint8_t *bytes) {
    size_t len = 0;
    unsigned value;
    while (len < PACKET && sscanf(text + 2 * len, "%2x", &value) == 1)
        bytes[len++] = (uint8_t)value;
    return len;
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
    answer[0] = 0;
    for (size_t i = 0; i < len; i++)
        sprintf(answer + 2 * i, "%02x", frames[i]);
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
    printf("%d files, %lu answers and ACKs\n", argc - 1, checked);
    return checked > 0 ? 0 : 1;
}
