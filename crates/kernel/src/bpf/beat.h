/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Whether a queue is at the beat as it is else: the integer twin of crates/policy/src/agent/beat.rs. */
#ifndef ASTRAEA_BEAT_H
#define ASTRAEA_BEAT_H

#include "drain.h"
#include "mean.h"
#include "tick.h"

#define BEAT_SHOWS (150 * MS)
#define BEAT_FAR (200 * MS)
#define BEAT_LEAST 8

static inline void beat_forget(struct beat *b)
{
	mean_forget(&b->drained);
	mean_forget(&b->rest);
	b->last_drained = 0;
	b->last_rest = 0;
}

/* A period has ended with this queueing delay, so long after the last beat. */
static inline void beat_end_period(struct beat *b, u64 phase, u64 srtt, u64 queue)
{
	bool shows = phase >= srtt && phase < srtt + BEAT_SHOWS;

	if (srtt < BEAT_FAR)
		mean_add(shows ? &b->drained : &b->rest, min(queue, 64 * SECOND));
}

/* The clock has struck. */
static inline void beat_strikes(struct beat *b)
{
	u64 drained = 0, rest = 0;

	if (b->drained.count >= BEAT_LEAST && b->rest.count >= BEAT_LEAST) {
		drained = mean_get(&b->drained) + 1;
		rest = mean_get(&b->rest) + 1;
	}
	beat_forget(b);
	b->last_drained = drained;
	b->last_rest = rest;
}

/* Whether the queue fell at the beats between the last two strikes. */
static inline bool beat_falls(const struct beat *b, const struct rules *r)
{
	return b->last_drained < part_of(b->last_rest, r->like);
}

/* Whether it was as long then as else. */
static inline bool beat_is_even(const struct beat *b, const struct rules *r)
{
	return b->last_rest && b->last_drained >= part_of(b->last_rest, r->even) &&
	       b->last_rest >= part_of(b->last_drained, r->even);
}

#endif
