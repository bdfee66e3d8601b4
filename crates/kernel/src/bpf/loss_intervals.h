/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* How often a flow loses: the integer twin of crates/policy/src/agent/loss_intervals.rs. */
#ifndef ASTRAEA_LOSS_INTERVALS_H
#define ASTRAEA_LOSS_INTERVALS_H

#include "law.h"

#define INTERVALS_MOST 8
#define INTERVALS_LEAST 2

static inline void loss_intervals_forget(struct loss_intervals *l)
{
	l->mean = 0;
	l->open = 0;
	l->count = 0;
}

/* So many more packets (Q20) were delivered. */
static inline void loss_intervals_deliver(struct loss_intervals *l, u64 packets)
{
	l->open = min(l->open + packets, 1ull << 60);
}

/* A round trip with losses begins. */
static inline void loss_intervals_lose(struct loss_intervals *l)
{
	u64 over = min(l->count + 1, INTERVALS_MOST);

	l->count++;
	if (l->open > l->mean)
		l->mean += (l->open - l->mean) / over;
	else
		l->mean -= (l->mean - l->open) / over;
	l->open = 0;
}

/* The average, 0 while there is none. */
static inline u64 loss_intervals_mean(const struct loss_intervals *l)
{
	if (l->count < INTERVALS_LEAST)
		return 0;
	return l->mean + less(l->open, l->mean) / min(l->count + 1, INTERVALS_MOST);
}

#endif
