/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The few helpers, map declarations and kfuncs that this program uses, so that building it needs no installed header. */
#ifndef ASTRAEA_BPF_H
#define ASTRAEA_BPF_H

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int(*name)[value]
#define __type(name, type) typeof(type) *name
#define __array(name, type) typeof(type) *name[]
#define __ksym __attribute__((section(".ksyms")))
#define __weak __attribute__((weak))

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
};
#define BPF_F_NO_PREALLOC 1
#define BPF_F_MMAPABLE 1024
#define BPF_SK_STORAGE_GET_F_CREATE 1

/* Numbers of the kernel's include/uapi/linux/bpf.h. */
static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static void *(*bpf_sk_storage_get)(void *map, void *sk, void *value, u64 flags) = (void *)107;
static long (*bpf_sk_storage_delete)(void *map, void *sk) = (void *)108;
static void *(*bpf_ringbuf_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*bpf_ringbuf_submit)(void *data, u64 flags) = (void *)132;

struct bpf_iter_num {
	u64 opaque[1];
} __attribute__((aligned(8)));
extern int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __ksym;
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __ksym;
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym;

/* for (i = start; i < end; i++), of which the verifier looks at one turn only. */
#define bpf_for(i, start, end)                                                                             \
	for (struct bpf_iter_num it __attribute__((cleanup(bpf_iter_num_destroy))),                        \
	     *once = (bpf_iter_num_new(&it, (start), (end)), (void)bpf_iter_num_destroy, (void *)0);       \
	     ({                                                                                            \
		     int *next = bpf_iter_num_next(&it);                                                   \
		     (i) = next ? *next : 0;                                                               \
		     (void)once;                                                                           \
		     next;                                                                                 \
	     });)

#endif
