/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Whether a queue falls at the beat: the integer twin of crates/policy/src/agent/beat.rs. */
#ifndef ASTRAEA_BEAT_H
#define ASTRAEA_BEAT_H

#include "drain.h"
#include "tick.h"

#define BEAT_SHOWS (150 * MS)
#define BEAT_FAR (200 * MS)
#define BEAT_LEAST 8

static inline void beat_forget(struct beat *b)
{
	b->drained.sum = 0;
	b->drained.count = 0;
	b->rest.sum = 0;
	b->rest.count = 0;
}

/* A period has ended with this queueing delay, so long after the last beat. */
static inline void beat_end_period(struct beat *b, u64 phase, u64 srtt, u64 queue)
{
	struct mean *mean = phase >= srtt && phase < srtt + BEAT_SHOWS ? &b->drained : &b->rest;

	if (srtt >= BEAT_FAR)
		return;
	mean->sum += min(queue, 64 * SECOND);
	mean->count++;
}

/* The clock has struck: whether the queue fell at the beats since it did before. */
static inline bool beat_strikes(struct beat *b, const struct rules *r)
{
	u64 drained = b->drained.count, rest = b->rest.count;
	bool known = drained >= BEAT_LEAST && rest >= BEAT_LEAST;

	if (known) {
		drained = b->drained.sum / drained;
		rest = b->rest.sum / rest;
	}
	beat_forget(b);
	return known && drained < part_of(rest, r->like);
}

#endif
