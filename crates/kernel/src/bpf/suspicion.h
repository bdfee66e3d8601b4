/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Signs of a neighbour that fills the queue: the integer twin of crates/policy/src/agent/suspicion.rs. */
#ifndef ASTRAEA_SUSPICION_H
#define ASTRAEA_SUSPICION_H

#include "drain.h"

#define LEVEL (3 * SECOND)
#define RELAPSE (SECOND / 5)

static inline bool nearly_empty(const struct suspicion *p, const struct signals *s)
{
	return 5 * s->queue < max(p->level, 2 * MS);
}

static inline void suspicion_end_period(struct suspicion *p, const struct rules *r, u64 length, const struct signals *s,
					u64 window, bool following)
{
	if (!p->reference || nearly_empty(p, s))
		p->reference = window;
	p->level = followed(p->level, min(s->queue, 64 * SECOND), length, LEVEL);
	if (nearly_empty(p, s))
		p->yielded = 0;
	if (following && p->last_window && window) {
		s64 change = ln_q(window, 20) - ln_q(p->last_window, 20);

		if (change > 0)
			p->yielded = max(p->yielded - change, 0ll);
		else if (backlog_of(s, s->ahead) > wanted(r, s->rate))
			p->yielded -= change;
	}
	p->last_window = window;
	if (!following)
		return;
	/* By the queue that is there: a flow that gives way expects it to fall, which is the question. */
	if (law_error(r, s, s->queue, losses(r, s->loss)) < r->pressure) {
		/* A queue that falls is no sign: count again from there. */
		if (!p->pressed || 10 * s->queue < 8 * p->pressed_at) {
			p->pressed_at = s->queue;
			p->pressed = 0;
		}
		p->pressed += length;
	} else {
		p->pressed = less(p->pressed, 2 * length);
	}
}

/* Whether much of the window was given up to a queue that stayed. */
static inline bool has_shrunk(const struct suspicion *p, const struct rules *r)
{
	return p->yielded > r->shrunk;
}

/* The window to compete with if pressure alone is reason enough, else 0. */
static inline u64 suspicion_pressure(const struct suspicion *p, const struct rules *r, u64 now, u64 srtt,
				     const struct signals *s, u64 window)
{
	if (p->past_ended && 10 * s->queue > 4 * p->past_peak && p->pressed > max(RELAPSE, 3 * srtt) &&
	    now - p->past_ended < r->neighbour_memory)
		return p->past_window;
	if (now >= p->immune_until && (p->pressed > max(r->pressed, 8 * srtt) ||
				       (has_shrunk(p, r) && p->pressed > max(r->pressed_shrunk, 3 * srtt))))
		return max(window, part_of(p->reference, r->regained));
	return 0;
}

/* Whether anything speaks for a neighbour at all: pressure, drains in vain, or a competition that ended lately. */
noinline int suspicion_stirs(const struct suspicion *p, const struct rules *r, u64 now)
{
	if (!p || !r)
		return 0;
	return p->pressed || p->in_vain >= r->drains || (p->past_ended && now - p->past_ended < r->neighbour_memory);
}

/* A drain has left the queue nearly as it was. The window to compete with if that is reason enough, else 0. */
static inline u64 suspicion_failed_drain(struct suspicion *p, const struct rules *r, u64 now)
{
	p->in_vain++;
	return p->in_vain >= r->drains && has_shrunk(p, r) && now >= p->immune_until ? part_of(p->reference, r->regained) : 0;
}

/* The flow begins again, with a window that nobody's queue has made so small. */
static inline void suspicion_restart(struct suspicion *p)
{
	p->pressed = 0;
	p->yielded = 0;
	p->last_window = 0;
	p->reference = 0;
	p->strikes_in_vain = 0;
}

/*
 * A drain by the time of day, when all of this kind drain, has not emptied the queue, and may have left it as it was; `even`
 * says that the queue does not fall at the others' either. The window to compete with if that is reason enough, else 0.
 */
noinline u64 suspicion_failed_strike(struct suspicion *p, const struct rules *r, u64 now, bool stayed, bool even)
{
	if (!p || !r)
		return 0;
	p->strikes_in_vain = stayed ? p->strikes_in_vain + 1 : 0;
	if (p->strikes_in_vain < r->strikes || p->reference < r->former || !even || now < p->immune_until)
		return 0;
	return ln_q(p->reference, 20) - ln_q(max(p->last_window, 1ull), 20) > r->shrunk ? part_of(p->reference, r->regained) : 0;
}

static inline void suspicion_competed(struct suspicion *p, const struct rules *r, u64 now, bool confirmed, u64 peak,
				      u64 window)
{
	u64 immunity = p->immunity ? p->immunity : r->immunity;

	p->pressed = 0;
	p->yielded = 0;
	p->reference = window;
	p->past_ended = confirmed ? now : 0;
	p->past_peak = peak;
	p->past_window = window;
	if (!confirmed) {
		p->immune_until = now + immunity;
		p->immunity = min(2 * immunity, 120 * SECOND);
	}
}

static inline void suspicion_mistaken(struct suspicion *p, u64 window)
{
	p->pressed = 0;
	p->reference = window;
	p->past_ended = 0;
}

#endif
