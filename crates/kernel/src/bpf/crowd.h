/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Flows whose backlogs do not fit into the buffer together: the integer twin of crates/policy/src/agent/crowd.rs. */
#ifndef ASTRAEA_CROWD_H
#define ASTRAEA_CROWD_H

#include "law.h"

/* A period of this length has ended with this share of lost packets. */
static inline void crowd_end_period(struct crowd *c, const struct rules *r, u64 length, s64 loss)
{
	c->average = followed(c->average, loss << 8, length, r->crowd_average);
}

/*
 * How much a flow is one of a crowd at a rate on a path that certainly loses such a share by itself, Q24: the wanted backlog
 * is divided by 1 and this.
 */
noinline s64 crowd_crowding(const struct crowd *c, const struct rules *r, u64 rate, s64 certain)
{
	u64 relative; /* Q24 */
	s64 beyond;

	if (!c || !r)
		return 0;
	beyond = (c->average >> 8) - max(r->crowd_seen, certain);
	if (beyond <= 0)
		return 0;
	relative = clamp(mul_shr(max(rate, 1ull << 16), r->per_reference, 32), 1ull, (u64)Q24);
	return mul_q24(mul_q24(r->crowd_gain, root_q(relative, 24)), beyond);
}

#endif
