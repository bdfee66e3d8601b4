/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Losses of flows whose backlogs do not fit into the buffer: the integer twin of crates/policy/src/agent/crowd.rs. */
#ifndef ASTRAEA_CROWD_H
#define ASTRAEA_CROWD_H

#include "law.h"

/* A period of this length has ended with this share of lost packets. */
static inline void crowd_end_period(struct crowd *c, const struct rules *r, u64 length, s64 loss)
{
	c->average = followed(c->average, loss << 8, length, r->crowd_average);
}

/*
 * How much more than loss_most losses may add to the law's error at a rate and a window, where the path loses `base`
 * anyway. Q24.
 */
noinline s64 crowd_more(const struct crowd *c, const struct rules *r, s64 base, u64 rate, u64 window)
{
	u64 relative; /* Q24 */
	s64 beyond, gain;

	if (!c || !r)
		return 0;
	beyond = (c->average >> 8) - max(min(base, r->crowd_base_most), r->crowd_seen);
	if (beyond <= 0)
		return 0;
	relative = clamp(mul_shr(max(rate, 1ull << 16), r->per_reference, 32), 1ull, (u64)Q24);
	gain = mul_q24(r->crowd_gain, ratio(r->crowd_few, r->crowd_few + window, 24));
	return mul_q24(mul_q24(gain, root_q(relative, 24)), beyond);
}

#endif
