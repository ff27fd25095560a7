/* As much of lwIP's names as examples/lwip_ack_law.c uses, for a test without lwIP. */
#ifndef STUB_LWIP_TCP_H
#define STUB_LWIP_TCP_H

#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8_t;
typedef uint16_t u16_t;
typedef uint32_t u32_t;
typedef int8_t err_t;
enum { ERR_OK = 0, ERR_MEM = -1, ERR_ARG = -16 };
enum { TF_ACK_DELAY = 1, TF_ACK_NOW = 2 };

struct tcp_ext_arg_callbacks {
    void (*destroy)(u8_t id, void *data);
    err_t (*passive_open)(u8_t id, void *lpcb, void *cpcb);
};

struct tcp_pcb {
    u16_t mss;
    u16_t flags;
    void *ext_arg;
    const struct tcp_ext_arg_callbacks *callbacks;
};

u8_t tcp_ext_arg_alloc_id(void);
void tcp_ext_arg_set_callbacks(struct tcp_pcb *pcb, u8_t id, const struct tcp_ext_arg_callbacks *callbacks);
void tcp_ext_arg_set(struct tcp_pcb *pcb, u8_t id, void *arg);
void *tcp_ext_arg_get(const struct tcp_pcb *pcb, u8_t id);
err_t tcp_output(struct tcp_pcb *pcb);

#endif
