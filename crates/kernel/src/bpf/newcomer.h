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
		n->most = max(n->most, low);
	}
}

static inline void newcomer_forget_found(struct newcomer *n)
{
	mean_forget(&n->found);
	n->least = 0;
	n->most = 0;
}

/* It begins anew. */
static inline void newcomer_forget(struct newcomer *n)
{
	newcomer_forget_found(n);
	mean_forget(&n->since);
	n->settled = 0;
}

/* A period after slow start has ended with this smallest round-trip time, in a drain or not. */
static inline void newcomer_end_period(struct newcomer *n, const struct rules *r, u64 now, u64 srtt, u64 low, bool drains)
{
	if (!n->settled)
		n->settled = now;
	if (now - n->settled > r->newcomer + NEWCOMER_ROUNDS * srtt)
		newcomer_forget_found(n);
	if (low && !drains)
		mean_add(&n->since, low);
}

/* The window with which the law rests at this round-trip time, with this queue on the way back; 0 if there is no other. */
static inline u64 newcomer_window(const struct rules *r, u64 base, u64 back, u64 rtt)
{
	u64 queue = less(rtt, base);

	return queue < SHORTEST_QUEUE ? 0 : resting_window(r, base + back, queue);
}

/* The window that the others had at this base round-trip time, 0 if it is not known. */
static inline u64 newcomer_share(const struct newcomer *n, const struct rules *r, u64 base, u64 back)
{
	u64 found;

	if (!n->found.count)
		return 0;
	found = mean_get(&n->found);
	return newcomer_window(r, base, back, n->since.count ? min(found, mean_get(&n->since)) : found);
}

/*
 * The window that one of this size is raised to among few, 0 if it is not: by the shortest queue that was found, or where it
 * is none by the longest, if it says as much as that.
 */
static inline u64 newcomer_raised(const struct newcomer *n, const struct rules *r, u64 base, u64 back, u64 window)
{
	u64 limit = part_of(window, r->newcomer_most), had = newcomer_window(r, base, back, n->least);

	if (!had) {
		had = newcomer_window(r, base, back, n->most);
		if (had < limit)
			return 0;
	}
	return had > window ? min(had, limit) : 0;
}

/* Whether slow start has ended in the last few seconds. */
static inline bool newcomer_is_young(const struct newcomer *n, const struct rules *r, u64 now)
{
	return n->settled && now - n->settled < r->leap_youth;
}

#endif
