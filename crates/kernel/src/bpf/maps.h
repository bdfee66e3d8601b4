/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* What outlives a call: flows, the policy, who decides, counters, and the way to an agent and back. */
#ifndef ASTRAEA_MAPS_H
#define ASTRAEA_MAPS_H

#include "bpf.h"
#include "flow.h"
#include "tcp.h"

#define LISTED (1 << 16)

/* When packets of a flow leave: driver.h. */
struct clock {
	u64 next;	/* when the next one may */
	u64 seen;	/* the last acknowledgement */
	u32 flight;	/* packets in flight after it */
	u32 unused;
};

/* The shortest round trip that a flow has seen lately: driver.h. */
struct lately {
	u64 since;
	u64 low;	/* since then; 0: no sample */
	u64 before;	/* in the span before */
};

/* What the program keeps of a flow besides the decision core's state. */
struct flow {
	u64 id;
	u64 started;
	u64 period_ends;
	u64 last_ack;
	u64 decisions;
	u64 record;		/* number of the last one */
	u64 asked;		/* number of the first one from which on every one has asked for an action */
	u64 answered;		/* number of the last one that was answered */
	u64 sequence;		/* of the last answer */
	u64 acked_counted;	/* of its packets those that are among all flows' */
	u64 lost_counted;
	u32 reason;		/* REASON_NONE: the policy drives it */
	u32 against;		/* periods in a row that speak against `reason` */
	u32 state;		/* TCP_CA_* */
	u32 prr_delivered;
	u32 lost;		/* tcp_sock's counts at the last acknowledgement: found lost, … */
	u32 delivered;		/* … and delivered */
	u32 paced;
	u32 begun;
	u64 stamp;		/* the receiver's clock in ticks, which its 32 bits in a packet are the end of */
	struct lately lately;
	struct clock clock;
	struct agent agent;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct flow);
} states SEC(".maps");

/* The list of flows by their numbers, for whoever asks. Where it is full a flow goes unlisted. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, LISTED);
	__type(key, u64);
	__type(value, struct view);
} flows SEC(".maps");

struct holder {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct policy);
};

/* One policy, in a map of its own: another one takes its place in one store, and the old one stays while it is read. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
	__array(values, struct holder);
} policies SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct control);
} control SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct counters);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} records SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, FLOWS);
	__type(key, u32);
	__type(value, struct action);
} actions SEC(".maps");

static inline struct flow *flow_of(struct sock *sk)
{
	return bpf_sk_storage_get(&states, sk, (void *)0, 0);
}

static inline const struct policy *the_policy(void)
{
	u32 zero = 0;
	void *holder = bpf_map_lookup_elem(&policies, &zero);

	return holder ? bpf_map_lookup_elem(holder, &zero) : (void *)0;
}

static inline struct control *the_control(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&control, &zero);
}

#define COUNT(field, n)                                                        \
	do {                                                                   \
		u32 zero_ = 0;                                                 \
		struct counters *c_ = bpf_map_lookup_elem(&counters, &zero_);  \
		if (c_)                                                        \
			__sync_fetch_and_add(&c_->field, (n));                 \
	} while (0)

#endif
