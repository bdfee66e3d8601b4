/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The law: the integer twin of crates/policy/src/agent/law.rs. */
#ifndef ASTRAEA_LAW_H
#define ASTRAEA_LAW_H

#include "fixed.h"
#include "flow.h"

#define LAW_BURST (Q24 / 20)
#define LAW_NO_QUEUE (Q24 / 4)	/* of the wanted backlog, at most */

/* The flow's own packets in the queue, Q20, at most half a million. */
static inline u64 backlog_of(const struct signals *s, u64 delay)
{
	return min(mul_shr(s->rate, seconds_q30(delay), 26), 1ull << 39);
}

/* Own packets in the queue that the law wants at this rate, Q20. */
noinline u64 wanted(const struct rules *r, u64 rate)
{
	u64 relative; /* Q24 */

	if (!r)
		return 1;
	relative = mul_shr(rate, r->per_reference, 32);
	return max(mul_shr(r->backlog, root_q(relative, 24), 24), 1024ull);
}

/* How far the own backlog is below the wanted one, as a share of it, less what losses count. Q24. */
noinline s64 law_error(const struct rules *r, const struct signals *s)
{
	s64 loss;
	u64 share;

	if (!r || !s)
		return 0;
	loss = min(mul_q24(r->loss, s->loss), r->loss_most);
	share = ratio(backlog_of(s, s->ahead), wanted(r, s->rate), 24);
	return Q24 - (s64)min(share, 1ull << 40) - loss;
}

/* A period of this many round trips (Q24) has ended. */
static inline void law_end_period(s64 *idle_rounds, const struct rules *r, const struct signals *s, s64 rounds)
{
	/* The queue that is there, not the one expected: whether the window has outgrown the path is the question. */
	bool idle = backlog_of(s, s->queue) < mul_shr(wanted(r, s->rate), LAW_NO_QUEUE, 24) && s->burst < LAW_BURST;

	*idle_rounds = idle ? min(*idle_rounds + rounds, 1ll << 40) : 0;
}

/* The step as a relative change of the window per round trip, Q24. */
static inline s64 law_step(s64 idle_rounds, const struct rules *r, const struct signals *s)
{
	s64 step = clamp(mul_q24(r->gain, law_error(r, s)), -r->down, r->up);
	s64 hurry = idle_rounds - r->hurry_after;

	if (hurry > 0)
		step = min(mul_q24(r->up, Q24 + min(hurry, 1ll << 36)), r->hurry);
	if (s->burst > LAW_BURST)
		step += mul_q24(r->burst, ln_q(Q24 - min(s->burst, (s64)(Q24 * 0.95)), 24));
	return step;
}

#endif
