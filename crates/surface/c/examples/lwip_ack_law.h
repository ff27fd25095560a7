/* What lwIP calls in lwip_ack_law.c. */
#ifndef LWIP_ACK_LAW_H
#define LWIP_ACK_LAW_H

#include "lwip/tcp.h"

void tacit_lwip_init(void);
err_t tacit_lwip_established(struct tcp_pcb *pcb, u32_t handshake_ms);
void tacit_lwip_segment(struct tcp_pcb *pcb, u16_t bytes);
void tacit_lwip_sent(struct tcp_pcb *pcb);
void tacit_lwip_closed(struct tcp_pcb *pcb);

#endif
