/* Plays a Wi-Fi link to the hooks of lwIP and of Zephyr, by stand-ins for both: an A-MPDU of 24 segments every 2 ms for a
 * second, and then nothing. Prints how many ACKs each sends. Exit code 0 where all data is acknowledged in time. */
#include <stdio.h>
#include <string.h>

#include "lwip/priv/tcp_priv.h"
#include "lwip/timeouts.h"
#include "lwip_ack_law.h"
#include "tcp_private.h"

#define US UINT64_C(1000)
#define MS (1000 * US)
/* 10 ms of round trip: the law acknowledges within a quarter of it, and each stack's clock adds its resolution. */
#define ROUND_TRIP (10 * MS)
#define LATEST (ROUND_TRIP / 4 + 2 * MS)

static uint64_t clock_ns;
static unsigned long acks;
/* When the oldest segment that waits for an ACK arrived; 0 for none. */
static uint64_t waits_since, longest_wait;

static void acknowledged(void) {
    acks++;
    if (waits_since != 0 && clock_ns - waits_since > longest_wait)
        longest_wait = clock_ns - waits_since;
    waits_since = 0;
}

/* lwIP: a pcb and a timeout. sys_now() wraps soon after the start. */
static struct tcp_pcb pcb;
static sys_timeout_handler timeout;
static uint64_t timeout_ns;

u32_t sys_now(void) {
    return (u32_t)(clock_ns / MS) + UINT32_MAX - 200;
}

void sys_timeout(u32_t msecs, sys_timeout_handler handler, void *arg) {
    (void)arg;
    timeout = handler;
    timeout_ns = (clock_ns / MS + msecs) * MS;
}

void sys_untimeout(sys_timeout_handler handler, void *arg) {
    (void)handler, (void)arg;
    timeout_ns = 0;
}

u8_t tcp_ext_arg_alloc_id(void) {
    return 0;
}

void tcp_ext_arg_set_callbacks(struct tcp_pcb *to, u8_t id, const struct tcp_ext_arg_callbacks *callbacks) {
    (void)id;
    to->callbacks = callbacks;
}

void tcp_ext_arg_set(struct tcp_pcb *to, u8_t id, void *arg) {
    (void)id;
    to->ext_arg = arg;
}

void *tcp_ext_arg_get(const struct tcp_pcb *from, u8_t id) {
    (void)id;
    return from->ext_arg;
}

err_t tcp_output(struct tcp_pcb *from) {
    if (from->flags & TF_ACK_NOW) {
        from->flags &= (u16_t) ~(TF_ACK_NOW | TF_ACK_DELAY);
        acknowledged();
        tacit_lwip_sent(from);
    }
    return ERR_OK;
}

/* Zephyr: a connection and its work. */
static struct tcp conn;
struct k_work_q tcp_work_q;

int64_t k_uptime_ticks(void) {
    /* CONFIG_SYS_CLOCK_TICKS_PER_SEC = 10000, as usual. */
    return (int64_t)(clock_ns / (100 * US));
}

uint64_t k_ticks_to_ns_floor64(uint64_t ticks) {
    return ticks * 100 * US;
}

int k_work_cancel_delayable(struct k_work_delayable *work) {
    work->due_ns = 0;
    return 0;
}

int k_work_reschedule_for_queue(struct k_work_q *queue, struct k_work_delayable *work, k_timeout_t delay) {
    (void)queue;
    /* Timers end at a tick, never early. */
    work->due_ns = (clock_ns + delay.ns + 100 * US - 1) / (100 * US) * (100 * US);
    return 1;
}

void tcp_out(struct tcp *from, uint8_t flags) {
    if (flags & ACK) {
        acknowledged();
        tcp_ack_law_sent(from);
    }
}

static uint64_t *timer_of(int is_zephyr) {
    return is_zephyr ? &conn.ack_timer.due_ns : &timeout_ns;
}

static void run_timers(int is_zephyr, uint64_t until_ns) {
    while (*timer_of(is_zephyr) != 0 && *timer_of(is_zephyr) <= until_ns) {
        uint64_t due = *timer_of(is_zephyr);
        clock_ns = due > clock_ns ? due : clock_ns;
        *timer_of(is_zephyr) = 0;
        if (is_zephyr)
            tcp_ack_law_timer(&conn);
        else
            timeout(&pcb);
    }
}

static int play(int is_zephyr) {
    unsigned long segments = 0;
    acks = 0;
    longest_wait = waits_since = 0;
    clock_ns = MS;
    pcb.mss = 1448;
    int code = is_zephyr ? tcp_ack_law_established(&conn, ROUND_TRIP) : tacit_lwip_established(&pcb, ROUND_TRIP / MS);
    if (code != 0)
        return 1;
    for (uint64_t ampdu = 0; ampdu < 500; ampdu++) {
        for (uint64_t segment = 0; segment < 24; segment++) {
            uint64_t at = MS + ampdu * 2 * MS + segment * 5 * US;
            run_timers(is_zephyr, at);
            clock_ns = at;
            if (waits_since == 0)
                waits_since = clock_ns;
            if (is_zephyr)
                tcp_ack_law_segment(&conn, 1448);
            else
                tacit_lwip_segment(&pcb, 1448);
            segments++;
        }
    }
    run_timers(is_zephyr, UINT64_MAX);
    printf("%-6s %lu segments, %lu ACKs, the longest wait %.1f ms\n", is_zephyr ? "Zephyr" : "lwIP", segments, acks,
        (double)longest_wait / (double)MS);
    if (!is_zephyr) {
        tacit_lwip_closed(&pcb);
        pcb.callbacks->destroy(0, pcb.ext_arg);
    }
    return waits_since != 0 || longest_wait > LATEST || acks < 300 || acks > 600;
}

int main(void) {
    tacit_lwip_init();
    /* Without a law, lwIP's segments are acknowledged one by one. */
    tacit_lwip_segment(&pcb, 1448);
    if (!(pcb.flags & TF_ACK_NOW))
        return 1;
    pcb.flags = 0;
    return play(0) + play(1);
}
