/* Integers by their width, in the kernel and on the host. */
#ifndef TACIT_INTEGERS_H
#define TACIT_INTEGERS_H

typedef __UINT8_TYPE__ u8;
typedef __UINT16_TYPE__ u16;
typedef __UINT32_TYPE__ u32;
typedef __UINT64_TYPE__ u64;
typedef __INT32_TYPE__ s32;
typedef __INT64_TYPE__ s64;

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#endif
