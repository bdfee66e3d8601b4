/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The time of day: the integer twin of crates/policy/src/agent/tick.rs. */
#ifndef ASTRAEA_TICK_H
#define ASTRAEA_TICK_H

#include "flow.h"

/* A period has ended. */
static inline void tick_end_period(struct tick *t, u64 now)
{
	t->began = t->ended;
	t->ended = now + t->ahead;
}

/* How long ago a clock that strikes `every` so many ns last did so. */
static inline u64 tick_phase(const struct tick *t, u64 every)
{
	return every ? t->ended % every : 0;
}

/* Whether a clock that strikes `every` so many ns has struck in that period. */
noinline int tick_struck(const struct tick *t, u64 every)
{
	return t && every && t->began && t->began / every != t->ended / every;
}

#endif
