/* As much of Zephyr's names as examples/zephyr_ack_law.c uses, for a test without Zephyr. */
#ifndef STUB_ZEPHYR_TCP_PRIVATE_H
#define STUB_ZEPHYR_TCP_PRIVATE_H

#include <stddef.h>
#include <stdint.h>

#include "tacit.h"

enum { ACK = 0x10 };

typedef struct {
    uint64_t ns;
} k_timeout_t;
#define K_NSEC(t) ((k_timeout_t){(t)})

struct k_work_delayable {
    uint64_t due_ns;
};
struct k_work_q {
    int unused;
};
extern struct k_work_q tcp_work_q;

int64_t k_uptime_ticks(void);
uint64_t k_ticks_to_ns_floor64(uint64_t ticks);
int k_work_cancel_delayable(struct k_work_delayable *work);
int k_work_reschedule_for_queue(struct k_work_q *queue, struct k_work_delayable *work, k_timeout_t delay);

/* What struct tcp of tcp_private.h gets. tacit_ack_law_init() refuses memory that is too short. */
struct tcp_ack_law {
    _Alignas(TACIT_ALIGN) uint8_t memory[1280];
    tacit_ack_law *law;
};

struct tcp {
    struct k_work_delayable ack_timer;
    uint32_t acked;
    struct tcp_ack_law ack_law;
};

#define conn_mss(conn) ((void)(conn), 1448u)
void tcp_out(struct tcp *conn, uint8_t flags);

int tcp_ack_law_established(struct tcp *conn, uint64_t handshake_ns);
void tcp_ack_law_segment(struct tcp *conn, size_t bytes);
void tcp_ack_law_timer(struct tcp *conn);
void tcp_ack_law_sent(struct tcp *conn);

#endif
