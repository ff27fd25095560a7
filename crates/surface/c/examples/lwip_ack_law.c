/* TACK's ACK law in lwIP 2.2.
 *
 * lwipopts.h:          #define LWIP_TCP_PCB_NUM_EXT_ARGS 1
 * lwip/priv/tcp_priv.h, in place of its macro; tcp_receive() uses it for segments in order, and answers others itself:
 *                      #define tcp_ack(pcb) tacit_lwip_segment((pcb), tcplen)
 * tcp_out.c, where tcp_output_segment() and tcp_send_empty_ack() clear TF_ACK_DELAY | TF_ACK_NOW:
 *                      tacit_lwip_sent(pcb);
 * tcp_in.c, where tcp_process() sets ESTABLISHED, with the time from SYN to its answer:
 *                      tacit_lwip_established(pcb, handshake_ms);
 *
 * All of it runs in lwIP's thread. tcp_fasttmr() finds no delayed ACK any more.
 */
#include "lwip/mem.h"
#include "lwip/priv/tcp_priv.h"
#include "lwip/tcp.h"
#include "lwip/timeouts.h"

#include "lwip_ack_law.h"
#include "tacit.h"

struct law_of_pcb {
    tacit_ack_law *law;
    u32_t latest_ms;
    uint64_t now_ns;
    /* The law's memory lies behind, aligned. */
};

static u8_t law_id;

/* lwIP's milliseconds wrap after 49 days; the law's time does not. */
static uint64_t now_ns(struct law_of_pcb *own) {
    u32_t ms = sys_now();
    own->now_ns += (uint64_t)(u32_t)(ms - own->latest_ms) * 1000000;
    own->latest_ms = ms;
    return own->now_ns;
}

static struct law_of_pcb *law_of(struct tcp_pcb *pcb) {
    return tcp_ext_arg_get(pcb, law_id);
}

static void ask(struct tcp_pcb *pcb, struct law_of_pcb *own);

static void on_timer(void *pcb) {
    ask(pcb, law_of(pcb));
}

static void ask(struct tcp_pcb *pcb, struct law_of_pcb *own) {
    uint64_t now = now_ns(own), due = 0;
    int answer = tacit_ack_law_due(own->law, now, &due);
    sys_untimeout(on_timer, pcb);
    if (answer == TACIT_ACK_LATER) {
        sys_timeout((u32_t)((due - now + 999999) / 1000000), on_timer, pcb);
    } else if (answer != TACIT_ACK_NONE) {
        /* Also where the law fails: an ACK too many is harmless. */
        tcp_ack_now(pcb);
        tcp_output(pcb);
    }
}

void tacit_lwip_segment(struct tcp_pcb *pcb, u16_t bytes) {
    struct law_of_pcb *own = law_of(pcb);
    if (own == NULL) {
        tcp_ack_now(pcb);
        return;
    }
    tacit_ack_law_packet(own->law, now_ns(own), bytes);
    ask(pcb, own);
}

void tacit_lwip_sent(struct tcp_pcb *pcb) {
    struct law_of_pcb *own = law_of(pcb);
    if (own == NULL)
        return;
    sys_untimeout(on_timer, pcb);
    tacit_ack_law_sent(own->law, now_ns(own), 0, NULL);
}

static void destroyed(u8_t id, void *own) {
    (void)id;
    mem_free(own);
}

/* Before tcp_free() calls `destroyed`: tcp_pcb_purge() is the place. */
void tacit_lwip_closed(struct tcp_pcb *pcb) {
    sys_untimeout(on_timer, pcb);
}

static const struct tcp_ext_arg_callbacks callbacks = {destroyed, NULL};

/* Once, after lwip_init(). */
void tacit_lwip_init(void) {
    law_id = tcp_ext_arg_alloc_id();
}

err_t tacit_lwip_established(struct tcp_pcb *pcb, u32_t handshake_ms) {
    size_t size = tacit_ack_law_size();
    struct law_of_pcb *own = mem_malloc(sizeof *own + TACIT_ALIGN + size);
    if (own == NULL)
        return ERR_MEM;
    uintptr_t behind = ((uintptr_t)(own + 1) + TACIT_ALIGN - 1) / TACIT_ALIGN * TACIT_ALIGN;
    /* A round trip below lwIP's millisecond counts as one. */
    uint64_t rtt_ns = (uint64_t)(handshake_ms > 0 ? handshake_ms : 1) * 1000000;
    own->latest_ms = sys_now();
    own->now_ns = 0;
    /* A TCP sender has a window that waits for ACKs: no least interval. */
    if (tacit_ack_law_init((void *)behind, size, pcb->mss, &own->law) != TACIT_OK ||
        tacit_ack_law_rule(own->law, 4, 16, 0) != TACIT_OK || tacit_ack_law_path(own->law, rtt_ns, 0, 0) != TACIT_OK) {
        mem_free(own);
        return ERR_ARG;
    }
    tcp_ext_arg_set_callbacks(pcb, law_id, &callbacks);
    tcp_ext_arg_set(pcb, law_id, own);
    return ERR_OK;
}
