/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The kernel's names of the integers, for BPF and for native code. */
#ifndef ASTRAEA_TYPES_H
#define ASTRAEA_TYPES_H

#ifdef __bpf__
typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef _Bool bool;
#define false 0
#define true 1
#else
#include <linux/types.h>
#include <stdbool.h>
#endif

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __s32 s32;
typedef __u64 u64;
typedef __s64 s64;

#ifdef __bpf__
#include "bpf.h"
/* A function of more than five arguments must be inlined, and here all are small or called once. */
#define inline inline __attribute__((always_inline))
#define noinline __attribute__((noinline))
/* Hides where a number comes from, so that the compiler does not delete the check of its bounds. */
#define OPAQUE(x) asm volatile("" : "+r"(x))
#define times(i, n) bpf_for(i, 0, n)
#define UNROLL _Pragma("unroll")
#else
#define noinline
#define OPAQUE(x) ((void)(x))
#define times(i, n) for (i = 0; i < (n); i++)
#define UNROLL
#endif

#endif
