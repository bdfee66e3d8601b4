/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Whether a queue falls at the beat: the integer twin of crates/policy/src/agent/beat.rs. */
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
}

/* A period has ended with this queueing delay, so long after the last beat. */
static inline void beat_end_period(struct beat *b, u64 phase, u64 srtt, u64 queue)
{
	bool shows = phase >= srtt && phase < srtt + BEAT_SHOWS;

	if (srtt < BEAT_FAR)
		mean_add(shows ? &b->drained : &b->rest, min(queue, 64 * SECOND));
}

/* The clock has struck: whether the queue fell at the beats since it did before. */
static inline bool beat_strikes(struct beat *b, const struct rules *r)
{
	bool known = b->drained.count >= BEAT_LEAST && b->rest.count >= BEAT_LEAST;
	bool falls = known && mean_get(&b->drained) < part_of(mean_get(&b->rest), r->like);

	beat_forget(b);
	return falls;
}

#endif
