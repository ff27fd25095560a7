#include "lwip/tcp.h"
#define tcp_ack_now(pcb) ((pcb)->flags |= TF_ACK_NOW)
