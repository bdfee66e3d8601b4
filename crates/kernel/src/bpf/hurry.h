/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* A path without a queue is filled faster and faster: the integer twin of crates/policy/src/agent/hurry.rs. */
#ifndef ASTRAEA_HURRY_H
#define ASTRAEA_HURRY_H

#include "monitor.h"

/* A period of this many round trips (Q24) has ended, with this window: whether there was no queue, and whether packets were
 * lost. */
static inline void hurry_end_period(struct hurry *h, const struct rules *r, s64 rounds, u64 window, bool idle, bool lossy)
{
	if (!idle && lossy && h->idle_rounds > r->hurry_after)
		h->brink = window;
	h->idle_rounds = idle ? min(h->idle_rounds + rounds, 1ll << 40) : 0;
}

/* A path without a queue was no sign that more would fit. */
static inline void hurry_pause(struct hurry *h)
{
	h->idle_rounds = 0;
}

/* The path is longer than it was, or nothing is known of it any more. */
static inline void hurry_forget(struct hurry *h)
{
	h->brink = 0;
}

/* The step at this window as a relative change per round trip, Q24; 0 if it is not time to hurry. */
noinline s64 hurry_step(const struct hurry *h, const struct rules *r, u64 window)
{
	s64 rounds, distance, most;

	if (!h || !r)
		return 0;
	rounds = h->idle_rounds - r->hurry_after;
	if (rounds <= 0)
		return 0;
	most = r->hurry;
	if (h->brink) {
		/* Near the window that lost packets a small one. */
		distance = ln_q(max(window, 1ull), 20) - ln_q(h->brink, 20);
		most = min(r->up + mul_q24(r->hurry_near, distance < 0 ? -distance : distance), most);
	}
	return min(mul_q24(r->up, Q24 + min(rounds, 1ll << 36)), most);
}

#endif
