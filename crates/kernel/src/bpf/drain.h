/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* A drain: the integer twin of crates/policy/src/agent/drain.rs. */
#ifndef ASTRAEA_DRAIN_H
#define ASTRAEA_DRAIN_H

#include "law.h"

/* Longest wait for a round trip of a flow that hardly sends. */
#define SILENCE (2 * SECOND)

enum stage { STAGE_HOLDING, STAGE_AWAITING, STAGE_WATCHING, STAGE_OVER };

static inline u64 part_of(u64 x, s64 share)
{
	return mul_shr(x, share, 24);
}

static inline void drain_begin(struct drain *d, const struct rules *r, enum cause cause, const struct ended *e,
			       const struct signals *s, u64 base)
{
	u64 product = backlog_of(s, base + e->back), back = product, held = product, least = part_of(e->window, 6710886); /* .4 */
	u64 margin = min(part_of(min(s->queue, 64 * SECOND), r->drain_margin), base / 2);

	if (cause == CAUSE_RISE || cause == CAUSE_TICK)
		back = min(product + wanted(r, s->rate), e->window);
	if (cause == CAUSE_LOSS) {
		/* What does not come through need not be sent. */
		back = e->window;
		held = part_of(part_of(e->window, Q24 - s->loss), Q24 - r->losses_depth);
		least = part_of(e->window, 5033165); /* .3 */
	} else if (cause == CAUSE_DOUBT) {
		/* The product is what is in doubt. */
		back = e->window;
		held = 0;
		least = part_of(e->window, r->doubt_depth);
	} else if (cause != CAUSE_TEST) {
		/* A base that is known too long takes a part of the queue for a part of the path. */
		held = part_of(less(product, backlog_of(s, margin)),
			       cause == CAUSE_TICK ? r->tick_depth : r->drain_depth);
		least = part_of(e->window, 5033165); /* .3 */
	}
	d->cause = cause;
	if (cause == CAUSE_LOSS)
		d->until = e->now + max(e->srtt, r->losses_settle) + r->losses_settle;
	else
		d->until = e->now + max(e->srtt, cause == CAUSE_TEST ? r->test_length : r->drain_length) + e->length;
	d->judge = d->until + e->srtt;
	d->give_up = d->judge + (cause <= CAUSE_TICK ? r->drain_watch : 0);
	d->hold = min(max(held, least), e->window);
	d->back = max(back, e->window / 2);
	d->start = e->window;
	d->before = s->queue;
	d->wanted = wanted_delay(r, s->rate);
	d->own = delay_of(less(d->hold, product), s->rate);
	d->low = 0;
	d->high = 0;
	d->shortest = 0;
	d->second = 0;
	d->spread = 0;
	d->lossy = s->loss > r->doubtful;
}

/* Queueing delay that it left. */
static inline u64 drain_left(const struct drain *d, u64 base)
{
	return less(d->low, base);
}

static inline bool drain_emptied(const struct drain *d, u64 base)
{
	return drain_left(d, base) < max(3 * d->before / 10, min(d->wanted / 4, (u64)MS));
}

/* Whether it has plainly emptied a queue that had risen and was short even so. */
static inline bool drain_emptied_short(const struct drain *d, const struct rules *r, u64 base)
{
	return d->cause == CAUSE_RISE && drain_emptied(d, base) && d->before < part_of(d->wanted, r->newcomer_short) &&
	       d->second && 4 * (d->second - d->shortest) < d->before;
}

/* Whether, as a test, it has found that nobody else fills the queue. */
static inline bool drain_finds_nobody(const struct drain *d, const struct rules *r, u64 base)
{
	return less(drain_left(d, base), d->own) <= max(max(part_of(d->before, r->empty), d->wanted), MS);
}

/* Whether it left the queue nearly as it was. */
static inline bool drain_left_all(const struct drain *d, const struct rules *r, u64 base)
{
	return drain_left(d, base) > part_of(d->before, r->stayed);
}

static inline bool drain_shows_longer_path(const struct drain *d, u64 base)
{
	u64 left = drain_left(d, base), noise = d->lossy ? 0 : 3 * d->spread / 10;

	return 10 * left > less(9 * d->before, min(10 * noise, 2 * d->before)) &&
	       less(d->high, d->low) < left / 100 + 3 * MS / 10 + noise;
}

noinline int drain_end_period(struct drain *d, u64 now, u64 low, u64 spread, u64 base)
{
	if (!d)
		return STAGE_HOLDING;
	d->spread = max(d->spread, spread);
	if (low) {
		if (d->shortest)
			d->second = d->second ? min(d->second, max(d->shortest, low)) : max(d->shortest, low);
		d->shortest = d->shortest ? min(d->shortest, low) : low;
	}
	if (now < d->until)
		return STAGE_HOLDING;
	if (low) {
		d->low = d->low ? min(d->low, low) : low;
		d->high = max(d->high, low);
	}
	if (now < d->judge)
		return STAGE_AWAITING;
	/* A flow of less than a packet per round trip is waited for. */
	if (!d->low && now < d->give_up + SILENCE)
		return STAGE_WATCHING;
	return now >= d->give_up || drain_emptied(d, base) ? STAGE_OVER : STAGE_WATCHING;
}

#endif
