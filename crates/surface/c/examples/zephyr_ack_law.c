/* TACK's ACK law in Zephyr's TCP, subsys/net/ip/tcp.c. struct tcp gets a member `struct tcp_ack_law ack_law`.
 *
 * tcp_in(), when the connection is established, with the time from SYN to its answer:
 *                      tcp_ack_law_established(conn, handshake_ns);
 * tcp_data_received(), in place of the lines that start ack_timer or send an ACK; segments out of order are acknowledged at
 * once, as there:
 *                      tcp_ack_law_segment(conn, *len);
 * tcp_send_ack(), the work of ack_timer, in place of tcp_out(conn, ACK):
 *                      tcp_ack_law_timer(conn);
 * tcp_out_ext(), where it sends a segment with ACK:
 *                      tcp_ack_law_sent(conn);
 *
 * All of it runs with conn->lock held.
 */
#include "tcp_private.h"

static uint64_t now_ns(void) {
    return k_ticks_to_ns_floor64((uint64_t)k_uptime_ticks());
}

int tcp_ack_law_established(struct tcp *conn, uint64_t handshake_ns) {
    struct tcp_ack_law *own = &conn->ack_law;
    int code = tacit_ack_law_init(own->memory, sizeof own->memory, conn_mss(conn), &own->law);
    /* A TCP sender has a window that waits for ACKs: no least interval. */
    if (code == TACIT_OK)
        code = tacit_ack_law_rule(own->law, 4, 16, 0);
    if (code == TACIT_OK)
        code = tacit_ack_law_path(own->law, handshake_ns, 0, 0);
    return code;
}

static void ask(struct tcp *conn) {
    uint64_t now = now_ns(), due = 0;
    switch (tacit_ack_law_due(conn->ack_law.law, now, &due)) {
    case TACIT_ACK_NONE:
        k_work_cancel_delayable(&conn->ack_timer);
        break;
    case TACIT_ACK_LATER:
        k_work_reschedule_for_queue(&tcp_work_q, &conn->ack_timer, K_NSEC(due - now));
        break;
    default:
        /* Also where the law fails: an ACK too many is harmless. */
        tcp_out(conn, ACK);
    }
}

void tcp_ack_law_segment(struct tcp *conn, size_t bytes) {
    tacit_ack_law_packet(conn->ack_law.law, now_ns(), (uint32_t)bytes);
    ask(conn);
}

void tcp_ack_law_timer(struct tcp *conn) {
    ask(conn);
}

void tcp_ack_law_sent(struct tcp *conn) {
    k_work_cancel_delayable(&conn->ack_timer);
    tacit_ack_law_sent(conn->ack_law.law, now_ns(), 0, NULL);
}
