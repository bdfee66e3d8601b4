/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The queue on the way back: the integer twin of crates/policy/src/agent/way_back.rs. */
#ifndef ASTRAEA_WAY_BACK_H
#define ASTRAEA_WAY_BACK_H

#include "fixed.h"
#include "flow.h"

#define WAY_BACK_TICK 1000000ll
#define WAY_BACK_KNOWN 1000000000ull
#define WAY_BACK_DRIFT 50000ull

/* How long this acknowledgement was in queues on its way back: that much at least, 0 if nothing is known. */
noinline u64 way_back_queue(struct way_back *w, u64 now, u64 rtt, u64 stamped)
{
	u64 here, there, apart, queue = 0;
	s64 took;

	if (!w || !stamped)
		return 0;
	took = (s64)(now - stamped);
	if (!w->arrived) {
		w->arrived = now;
		w->began = stamped;
		w->shortest = took;
		w->grown = now;
	}
	apart = less(now, w->grown) / WAY_BACK_DRIFT;
	w->grown += apart * WAY_BACK_DRIFT;
	w->shortest = min(took, w->shortest + (s64)apart);
	here = less(now, w->arrived);
	there = less(stamped, w->began);
	apart = here > there ? here - there : there - here;
	if (here >= WAY_BACK_KNOWN && apart <= here / 4)
		queue = (u64)max(took - w->shortest - WAY_BACK_TICK, 0ll);
	if (rtt && queue >= rtt) {
		/* Nothing waits longer than a whole round trip: the receiver's clock has stood still, and begins anew. */
		w->arrived = 0;
		w->seen = 0;
		w->standing = 0;
		return 0;
	}
	w->least = w->seen ? min(w->least, queue) : queue;
	w->seen = 1;
	return queue;
}

/* A period has ended. */
static inline void way_back_end_period(struct way_back *w)
{
	if (w->seen)
		w->standing = w->least;
	w->seen = 0;
}

#endif
