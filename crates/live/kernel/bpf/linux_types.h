/* The names that libbpf's headers take from linux/types.h. */
#ifndef TACIT_LINUX_TYPES_H
#define TACIT_LINUX_TYPES_H

#include "integers.h"

typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef s32 __s32;
typedef s64 __s64;
typedef u16 __be16;
typedef u32 __be32;
typedef u64 __be64;
typedef u32 __wsum;

/* The loader knows each program's kind by its name. The section only has to be one that aya-obj takes for programs. */
#define PROGRAM SEC("raw_tp")

#endif
