/* TACK's ACK law where a TCP stack has its delayed ACK.
 *
 * lwIP decides in tcp_receive() and tcp_fasttmr() (TF_ACK_DELAY), Zephyr in tcp_in() and its send_data/ACK timers. Both come
 * down to two hooks: a segment arrived, and a timer ran out. on_segment() and on_timer() below are those. The rest plays a
 * Wi-Fi link to them: an A-MPDU of 24 segments every 2 ms.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tacit.h"

#define US UINT64_C(1000)
#define MS (1000 * US)

/* What a connection of the stack gets beside its own fields. */
struct connection {
    tacit_ack_law *law;
    /* The law is 64-bit integers; embed the memory, or take it from a pool when the connection is made. */
    void *law_memory;
    uint64_t ack_timer_ns;
    unsigned long acks;
};

static void must(int code) {
    if (code < 0) {
        fprintf(stderr, "ack_law: %s\n", tacit_error_text(code));
        exit(1);
    }
}

/* tcp_alloc(): MSS, and the round trip of the handshake. */
static void on_established(struct connection *pcb, uint32_t mss, uint64_t handshake_ns) {
    pcb->law_memory = aligned_alloc(TACIT_ALIGN, (tacit_ack_law_size() + TACIT_ALIGN - 1) / TACIT_ALIGN * TACIT_ALIGN);
    if (pcb->law_memory == NULL)
        exit(1);
    must(tacit_ack_law_init(pcb->law_memory, tacit_ack_law_size(), mss, &pcb->law));
    /* A TCP sender has a window that waits for ACKs: no least interval. */
    must(tacit_ack_law_rule(pcb->law, 4, 16, 0));
    must(tacit_ack_law_path(pcb->law, handshake_ns, 0, 0));
}

/* tcp_output() sent a segment with ACK, for whatever reason. */
static void on_ack_sent(struct connection *pcb, uint64_t now_ns) {
    pcb->acks++;
    pcb->ack_timer_ns = 0;
    must(tacit_ack_law_sent(pcb->law, now_ns, 0, NULL));
}

static void ask(struct connection *pcb, uint64_t now_ns) {
    uint64_t due_ns;
    int answer = tacit_ack_law_due(pcb->law, now_ns, &due_ns);
    must(answer);
    if (answer == TACIT_ACK_NOW)
        on_ack_sent(pcb, now_ns); /* tcp_ack_now(pcb) */
    else
        pcb->ack_timer_ns = answer == TACIT_ACK_LATER ? due_ns : 0; /* sys_timeout(), k_work_reschedule() */
}

/* tcp_receive(), where it would call tcp_ack(pcb). Segments out of order are acknowledged at once (RFC 5681 section 4.2). */
static void on_segment(struct connection *pcb, uint64_t now_ns, uint32_t bytes, int in_order) {
    must(tacit_ack_law_packet(pcb->law, now_ns, bytes));
    if (in_order)
        ask(pcb, now_ns);
    else
        on_ack_sent(pcb, now_ns);
}

/* The timer that ask() set. */
static void on_timer(struct connection *pcb, uint64_t now_ns) {
    pcb->ack_timer_ns = 0;
    ask(pcb, now_ns);
}

int main(void) {
    struct connection pcb = {0};
    unsigned long segments = 0;
    on_established(&pcb, 1448, 10 * MS);
    for (uint64_t ampdu = 0; ampdu < 500; ampdu++) {
        for (uint64_t segment = 0; segment < 24; segment++) {
            uint64_t now_ns = ampdu * 2 * MS + segment * 5 * US;
            while (pcb.ack_timer_ns != 0 && pcb.ack_timer_ns <= now_ns)
                on_timer(&pcb, pcb.ack_timer_ns);
            on_segment(&pcb, now_ns, 1448, 1);
            segments++;
        }
    }
    while (pcb.ack_timer_ns != 0)
        on_timer(&pcb, pcb.ack_timer_ns);
    printf("segments in a second      %6lu\n", segments);
    printf("delayed ACKs, every other %6lu\n", segments / 2);
    printf("ACKs by the law           %6lu\n", pcb.acks);
    printf("memory of a law           %6zu bytes\n", tacit_ack_law_size());
    free(pcb.law_memory);
    return 0;
}
