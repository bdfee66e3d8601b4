/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Leaps to the fair rate: the integer twin of crates/policy/src/agent/leap.rs. */
#ifndef ASTRAEA_LEAP_H
#define ASTRAEA_LEAP_H

#include "drain.h"
#include "newcomer.h"

#define LEAP_AVERAGE SECOND
#define LEAP_ROUNDS 5
#define LEAP_LEAST 8

static inline void leap_forget(struct leap *l)
{
	l->queue = 0;
	l->lasted = 0;
}

/* A period of this length has ended in which the law was followed. */
noinline int leap_end_period(struct leap *l, u64 queue, u64 length, u64 srtt)
{
	if (!l)
		return 0;
	l->lasted += length;
	l->queue = followed(l->queue, min(queue, 64 * SECOND), length,
			    max(min(max(LEAP_AVERAGE, LEAP_ROUNDS * srtt), l->lasted), 1ull));
	return 0;
}

/* The window to leap to, 0 if there is none. */
noinline u64 leap_window(const struct leap *l, const struct guide *g, const struct rules *r, const struct signals *s,
			 const struct ended *e)
{
	const struct stride *stride;
	s64 distance, step;
	u64 queue, fair;

	if (!l || !g || !r || !s || !e)
		return 0;
	queue = l->queue;
	fair = max(resting_window(r, g->base + e->back, max(queue, SHORTEST_QUEUE)), 1ull);
	/* Among many flows a queue of so short a time is no word of theirs. */
	stride = newcomer_is_young(&g->newcomer, r, e->now) && fair > r->modest ? &r->leap_young : &r->leap_old;
	/* A queue that is far longer than flows of the kind leave is no word of theirs. */
	if (l->lasted < max(stride->least, LEAP_LEAST * e->srtt) || s->loss > r->leap_loss ||
	    queue > part_of(wanted_delay(r, s->rate), r->leap_high))
		return 0;
	distance = ln_q(fair, 20) - ln_q(max(e->window, 1ull), 20);
	step = mul_q24(stride->part, distance - bounded(distance, -r->leap_dead, r->leap_dead));
	if (!step)
		return 0;
	step = bounded(step, -r->leap_down, stride->up);
	return mul_shr(e->window, exp_q30(step << 6), 30);
}

#endif
