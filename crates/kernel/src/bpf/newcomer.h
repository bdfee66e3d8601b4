/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* What the queue that a newcomer found says of its share: the integer twin of crates/policy/src/agent/newcomer.rs. */
#ifndef ASTRAEA_NEWCOMER_H
#define ASTRAEA_NEWCOMER_H

#include "law.h"
#include "mean.h"

#define NEWCOMER_ROUNDS 5

/* A period of slow start has ended with this smallest round-trip time and window. */
static inline void newcomer_arrives(struct newcomer *n, const struct rules *r, u64 low, u64 window)
{
	mean_forget(&n->since);
	n->settled = 0;
	if (low && (!n->found.count || window <= r->modest)) {
		mean_add(&n->found, low);
		n->least = n->least ? min(n->least, low) : low;
	}
}

/* It begins anew. */
static inline void newcomer_forget(struct newcomer *n)
{
	mean_forget(&n->found);
	n->least = 0;
	mean_forget(&n->since);
	n->settled = 0;
}

/* A period after slow start has ended with this smallest round-trip time, in a drain or not. */
static inline void newcomer_end_period(struct newcomer *n, const struct rules *r, u64 now, u64 srtt, u64 low, bool drains)
{
	if (!n->settled)
		n->settled = now;
	if (now - n->settled > r->newcomer + NEWCOMER_ROUNDS * srtt) {
		mean_forget(&n->found);
		n->least = 0;
	}
	if (low && !drains)
		mean_add(&n->since, low);
}

/* The window with which the law rests at this round-trip time, 0 if there is no queue in it. */
static inline u64 newcomer_window(const struct rules *r, u64 base, u64 rtt)
{
	u64 queue = less(rtt, base);

	return queue < SHORTEST_QUEUE ? 0 : resting_window(r, base, queue);
}

/* The window that the others had at this base round-trip time, 0 if it is not known. */
static inline u64 newcomer_share(const struct newcomer *n, const struct rules *r, u64 base)
{
	u64 found;

	if (!n->found.count)
		return 0;
	found = mean_get(&n->found);
	return newcomer_window(r, base, n->since.count ? min(found, mean_get(&n->since)) : found);
}

#endif
