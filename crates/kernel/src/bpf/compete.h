/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Competing with a neighbour that fills the queue: the integer twin of crates/policy/src/agent/compete.rs. */
#ifndef ASTRAEA_COMPETE_H
#define ASTRAEA_COMPETE_H

#include "cubic.h"
#include "drain.h"
#include "loss_intervals.h"
#include "suspicion.h"

#define PEAK (4 * SECOND)

static inline u64 compete_window(const struct compete *c)
{
	return c->steadfast ? c->steadfast : c->cubic.cwnd;
}

static inline void compete_begin(struct compete *c, u64 now, u64 window)
{
	c->steadfast = 0;
	c->cubic.last_ack = now;
	cubic_continue_from(&c->cubic, window);
	c->peak = 0;
	loss_intervals_forget(&c->losses);
	c->tested = now;
	c->confirmed = 0;
	c->alone = 0;
	c->plateau_delay = 0;
	c->plateau_since = now;
	c->plateau_window = window;
}

static inline void compete_end_period(struct compete *c, const struct rules *r, u64 now, u64 length,
				      const struct signals *s, u64 window)
{
	u64 small = min(window >> 10, 1ull << 31), mean;
	bool unyielding;

	c->peak = max((u64)followed(c->peak, 0, length, PEAK), s->queue);
	loss_intervals_deliver(&c->losses, backlog_of(s, min(length, 64 * SECOND)));
	if (s->queue + MS / 2 < c->plateau_delay || s->queue > c->plateau_delay + c->plateau_delay / 100 + MS / 2) {
		c->plateau_delay = s->queue;
		c->plateau_since = now;
		c->plateau_window = window;
	}
	/* Losses that come far more often than among flows that yield to them are of senders that do not mind. */
	mean = loss_intervals_mean(&c->losses);
	unyielding = mean && small * small > part_of(mean, r->lossy);
	if (!c->steadfast && unyielding) {
		c->steadfast = window;
	} else if (c->steadfast && !unyielding) {
		cubic_continue_from(&c->cubic, c->steadfast);
		c->steadfast = 0;
	}
}

/* Whether the queueing delay has not moved although the window has. */
static inline bool compete_immovable(const struct compete *c, u64 now, u64 srtt, u64 window)
{
	s64 moved;

	if (!c->plateau_window || !window)
		return false;
	moved = ln_q(window, 20) - ln_q(c->plateau_window, 20);
	moved = moved < 0 ? -moved : moved;
	return moved > (s64)(Q24 * 0.15) && now - c->plateau_since > max(SECOND, 4 * srtt);
}

/* Whether it is time to test, in which case the next test counts from now. */
static inline bool compete_test_is_due(struct compete *c, const struct rules *r, u64 now, u64 srtt,
				       const struct signals *s, bool struck)
{
	u64 since = now - c->tested;
	bool falling = 100 * s->queue < 85 * c->peak && since > max(2 * SECOND, 8 * srtt);
	u64 time = c->confirmed ? max(r->test, 12 * srtt) : max(r->first_test, 6 * srtt);

	if (!struck && !falling && since <= time)
		return false;
	c->tested = now;
	return true;
}

/* A test has found nobody, or somebody. Returns whether the competition is over. */
static inline bool compete_judge(struct compete *c, const struct rules *r, bool nobody)
{
	if (!nobody) {
		c->confirmed = 1;
		c->alone = 0;
		return false;
	}
	c->alone++;
	return !c->confirmed || c->alone >= r->gone;
}

static inline void compete_on_ack(struct compete *c, const struct ack *ack)
{
	if (!c->steadfast)
		cubic_on_ack(&c->cubic, ack);
	else if (!ack->app_limited)
		c->steadfast += ratio((u64)ack->acked << 20, c->steadfast, 20);
}

static inline void compete_on_loss(struct compete *c, const struct rules *r, u64 lost)
{
	if (c->steadfast)
		c->steadfast = max(less(c->steadfast, lost * r->per_loss >> 4), 2ull << 20);
}

static inline void compete_on_congestion(struct compete *c, bool mark, u64 flight)
{
	loss_intervals_lose(&c->losses);
	if (!c->steadfast)
		cubic_on_congestion(&c->cubic, mark, flight);
}

#endif
