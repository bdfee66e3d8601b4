/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* What a path loses whatever is sent, and what is lost beyond: the integer twin of crates/policy/src/agent/base_loss.rs. */
#ifndef ASTRAEA_BASE_LOSS_H
#define ASTRAEA_BASE_LOSS_H

#include "drain.h"
#include "tick.h"

/* A period has ended with this share of lost packets. */
static inline void base_loss_end_period(struct base_loss *b, const struct rules *r, const struct ended *e, s64 loss)
{
	b->average = followed(b->average, min(loss, r->losses_burst), e->length, r->losses_average);
}

/* These packets were acknowledged in it, and lost. */
static inline void base_loss_count(struct base_loss *b, u64 now, u64 acked, u64 lost)
{
	if (b->from && now > b->from) {
		b->lost += lost;
		b->all += lost + acked;
	}
}

/*
 * Whether it is worth counting, now that the clock has struck: packets are lost, and there is hardly a queue. Flows of long
 * round trips hear every second, fourth or eighth strike.
 */
noinline int base_loss_asks(const struct base_loss *b, const struct rules *r, const struct tick *t, u64 srtt,
			    const struct signals *s)
{
	u64 rest, every;

	if (!b || !r || !t || !s)
		return 0;
	rest = r->losses_rest * srtt;
	every = r->tick;
	every <<= every < rest;
	every <<= every < rest;
	every <<= every < rest;
	return b->average > r->losses_seen && no_queue(r, s) && tick_struck(t, every);
}

/* A count begins: all hold back from now on. */
static inline void base_loss_begin(struct base_loss *b, const struct rules *r, const struct ended *e)
{
	b->from = e->now + e->srtt + r->losses_settle;
	b->free[0] = b->lost - b->held[0];
	b->free[1] = b->all - b->held[1];
	b->held[0] = 0;
	b->held[1] = 0;
	b->lost = 0;
	b->all = 0;
}

/*
 * It is over. Few packets say little, so a count allows for more than it has found, half of all at most, and all of them
 * leave no doubt of less. What a path loses by itself is lost whether all hold back or not.
 */
noinline int base_loss_judge(struct base_loss *b, const struct rules *r)
{
	u64 lost, all, allowed, doubt, counts; /* packets, Q24 */
	s64 share, unlike = Q24;

	if (!b || !r)
		return 0;
	lost = min(b->lost, 1ull << 32) << 24;
	all = min(b->all, 1ull << 33);
	allowed = lost + mul_shr(r->losses_deviations, root_q(lost, 24), 24) + r->losses_unknown * r->losses_belief;
	b->found[1] = b->found[0];
	b->found[0] = clamp(allowed / max(all + r->losses_belief, 1ull), 1ull, (u64)Q24 / 2);
	b->held[0] = b->lost;
	b->held[1] = b->all;
	counts = max(r->losses_counts, 1ull);
	b->counted[0] += lost - b->counted[0] / counts;
	b->counted[1] += (all << 24) - b->counted[1] / counts;
	doubt = mul_shr(r->losses_deviations, root_q(b->counted[0], 24), 24);
	all = b->counted[1] >> 24;
	if (b->free[1]) {
		share = b->counted[0] / max(all, 1ull);
		unlike = (s64)((min(b->free[0], 1ull << 32) << 24) / b->free[1]) - share;
	}
	share = (b->counted[0] - min(doubt, b->counted[0])) / max(all + r->losses_belief, 1ull);
	b->certain = max(share - mul_q24(r->losses_unlike, unlike < 0 ? -unlike : unlike), 0ll);
	return 0;
}

/* The base loss as it is known. What nobody would count is nobody's. */
static inline s64 base_loss_share(const struct base_loss *b, const struct rules *r)
{
	if (!b->found[0])
		return r->losses_unknown;
	return max(b->found[1] ? min(b->found[0], b->found[1]) : b->found[0], (u64)r->losses_seen);
}

/* What is lost beyond it, as it counts in the law's error at a rate: the more, the faster a flow is. Q24. */
noinline s64 base_loss_excess(const struct base_loss *b, const struct rules *r, u64 rate)
{
	u64 relative, weight; /* Q24 */
	s64 excess;

	if (!b || !r)
		return 0;
	excess = b->average - base_loss_share(b, r);
	if (excess <= 0)
		return 0;
	relative = max(mul_shr(max(rate, 1ull << 16), r->per_reference, 32), 1ull);
	weight = mul_shr(r->losses_gain, mul_shr(relative, root_q(relative, 24), 24), 24);
	return min(mul_shr(weight, excess, 24), (u64)r->losses_most);
}

#endif
