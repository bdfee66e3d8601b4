/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The rules around the law: the integer twin of crates/policy/src/agent/guide.rs. */
#ifndef ASTRAEA_GUIDE_H
#define ASTRAEA_GUIDE_H

#include "base_loss.h"
#include "beat.h"
#include "compete.h"
#include "crowd.h"
#include "doubt.h"
#include "leap.h"
#include "tick.h"

/* What a period means for the window: HOLD sets it. */
enum verdict { VERDICT_FOLLOW, VERDICT_HOLD, VERDICT_LEAVE };

static inline void guide_on_sample(struct guide *g, u64 now, u64 rtt)
{
	/* The queue may be shorter than what is near. */
	u64 longest = g->room ? min(near(g->base), g->base + g->room + NOISE) : near(g->base);

	if (!g->base || rtt <= longest)
		g->touched = now;
	g->base = g->base ? min(g->base, rtt) : rtt;
}

/* The base round-trip time has become longer. */
static inline void guide_believe(struct guide *g, u64 now, u64 base)
{
	g->failures = 0;
	g->base = base;
	g->touched = now;
	hurry_forget(&g->law.hurry);
}

/*
 * Begins again: everything in flight was lost, nothing has been for long, or somebody else has driven the flow. A function that
 * the verifier reads once.
 */
noinline int guide_restart(struct guide *g)
{
	if (!g)
		return 0;
	g->mode = MODE_FOLLOW;
	hurry_forget(&g->law.hurry);
	hurry_pause(&g->law.hurry);
	suspicion_restart(&g->suspicion);
	beat_forget(&g->beat);
	newcomer_forget(&g->newcomer);
	leap_forget(&g->leap);
	return 0;
}

static inline enum verdict guide_compete(struct guide *g, u64 now, u64 window, u64 *hold)
{
	g->suspicion.pressed = 0;
	beat_forget(&g->beat);
	leap_forget(&g->leap);
	g->mode = MODE_COMPETE;
	compete_begin(&g->compete, now, window);
	*hold = window;
	return VERDICT_HOLD;
}

static inline enum verdict guide_drain(struct guide *g, const struct rules *r, enum cause cause, const struct ended *e,
				       const struct signals *s, u64 *hold)
{
	drain_begin(&g->drain, r, cause, e, s, g->base);
	if (g->mode == MODE_COMPETE) {
		g->drain.before = g->compete.peak;
		g->drain.back = compete_window(&g->compete);
		g->mode = MODE_TEST;
	} else {
		g->mode = MODE_DRAIN;
	}
	g->risen = 0;
	g->undisturbed_drain = g->last_drain;
	g->undisturbed_average = g->average;
	g->last_drain = e->now;
	*hold = g->drain.hold;
	return VERDICT_HOLD;
}

/* Leaps if what was averaged says so. */
static inline enum verdict guide_leap(struct guide *g, const struct rules *r, const struct leap *averaged,
				      const struct ended *e, const struct signals *s, u64 *hold)
{
	u64 window = leap_window(averaged, g, r, s, e);

	if (!window || (window <= e->window && suspicion_stirs(&g->suspicion, r, e->now)))
		return VERDICT_FOLLOW;
	leap_forget(&g->leap);
	*hold = window;
	return VERDICT_HOLD;
}

static inline enum verdict guide_follow(struct guide *g, const struct rules *r, const struct ended *e,
					const struct signals *s, s64 rise, u64 *hold)
{
	u64 window = suspicion_pressure(&g->suspicion, r, e->now, e->srtt, s, e->window);
	u64 since = e->now - g->last_drain, unseen = e->now - g->touched;
	s64 large = max(r->drain_rise, part_of(g->base, r->drain_rise_share));
	bool rested, rises = rise > large, together;

	if (window) {
		guide_compete(g, e->now, window, hold);
		/* If the larger window does not move the delay, it is the path's own. */
		g->compete.plateau_delay = s->queue;
		g->compete.plateau_window = e->window;
		return VERDICT_HOLD;
	}
	if (rises && e->now - g->drained >= r->echo + 2 * e->srtt)
		g->risen = 1;
	together = g->risen && tick_struck(&g->tick, r->beat) && !suspicion_stirs(&g->suspicion, r, e->now);
	if (base_loss_asks(&g->base_loss, r, &g->tick, e->srtt, s)) {
		base_loss_begin(&g->base_loss, r, e);
		return guide_drain(g, r, CAUSE_LOSS, e, s, hold);
	}
	if ((together || tick_struck(&g->tick, r->tick)) && unseen >= r->unseen)
		return guide_drain(g, r, CAUSE_TICK, e, s, hold);
	rested = since >= max(r->drain_rest, 4 * e->srtt);
	if (rested && rises)
		return guide_drain(g, r, CAUSE_RISE, e, s, hold);
	if (rested && doubt_asks(&g->doubt, r, e->srtt)) {
		doubt_begin(&g->doubt, g->base);
		return guide_drain(g, r, CAUSE_DOUBT, e, s, hold);
	}
	if (unseen >= r->drain_memory && since >= r->drain_memory / 2)
		return guide_drain(g, r, CAUSE_CLOCK, e, s, hold);
	if (tick_struck(&g->tick, r->leap_every))
		return guide_leap(g, r, &g->leap, e, s, hold);
	return VERDICT_FOLLOW;
}

/* What a drain says that did not empty the queue: perhaps that there was none. */
static inline enum verdict guide_drained_in_vain(struct guide *g, u64 now, u64 *hold)
{
	if (!drain_shows_longer_path(&g->drain, g->base))
		return VERDICT_FOLLOW;
	guide_believe(g, now, g->drain.low);
	*hold = g->drain.start;
	return VERDICT_HOLD;
}

/* What a drain that is over has shown. */
static inline enum verdict guide_judge(struct guide *g, const struct rules *r, u64 now, u64 *hold)
{
	struct drain *d = &g->drain;
	u64 window;

	if (d->cause == CAUSE_TICK && !drain_emptied(d, g->base)) {
		/* Others have another clock, or are of another kind: it leaves nothing but a strike in vain. */
		g->mode = MODE_FOLLOW;
		g->last_drain = g->undisturbed_drain;
		g->average = g->undisturbed_average;
		window = suspicion_failed_strike(&g->suspicion, r, now, drain_left_all(d, r, g->base), beat_is_even(&g->beat, r));
		return window ? guide_compete(g, now, window, hold) : guide_drained_in_vain(g, now, hold);
	}
	g->average = 0;
	if (g->mode == MODE_TEST) {
		if (!compete_judge(&g->compete, r, drain_finds_nobody(d, r, g->base))) {
			g->mode = MODE_COMPETE;
			return VERDICT_LEAVE;
		}
		suspicion_competed(&g->suspicion, r, now, g->compete.confirmed, d->before, d->back);
		g->mode = MODE_FOLLOW;
		g->failures = 0;
		return VERDICT_FOLLOW;
	}
	g->mode = MODE_FOLLOW;
	if (d->cause == CAUSE_DOUBT) {
		doubt_judge(&g->doubt, r, g->base);
		return VERDICT_FOLLOW;
	}
	if (drain_emptied(d, g->base)) {
		g->failures = 0;
		g->suspicion.in_vain = 0;
		g->suspicion.strikes_in_vain = 0;
		return VERDICT_FOLLOW;
	}
	window = drain_left_all(d, r, g->base) ? suspicion_failed_drain(&g->suspicion, r, now) : 0;
	if (window)
		return guide_compete(g, now, window, hold);
	if (d->cause == CAUSE_RISE)
		return guide_drained_in_vain(g, now, hold);
	if (++g->failures >= r->drain_failures)
		guide_believe(g, now, d->low);
	return VERDICT_FOLLOW;
}

/*
 * A newcomer's window once the base is known, 0 for as it is: no more than the others have, and after a drain (`drained`)
 * among few no less.
 */
noinline u64 guide_fit_in(const struct guide *g, const struct rules *r, u64 window, u64 back, bool drained)
{
	u64 share;

	if (!g || !r)
		return 0;
	share = newcomer_share(&g->newcomer, r, g->base, back);
	if (!share)
		return 0;
	if (share < window)
		return max(share, part_of(window, r->newcomer_least));
	/* What was judged a rise that emptied the queue left the base as it was. */
	if (!drained || window <= r->modest || !drain_emptied_short(&g->drain, r, g->base))
		return 0;
	return newcomer_raised(&g->newcomer, r, g->base, back, window);
}

/* Whether the base round-trip time has fallen since the last period ended, by more than noise. */
static inline bool guide_base_fell(struct guide *g)
{
	u64 fell = less(g->last_base, g->base);

	g->last_base = g->base;
	return fell > SHORTEST_QUEUE;
}

/*
 * A period of slow start has ended with this smallest round-trip time. Returns the window with which slow start ends, 0 if it
 * does not: the others have drained and had less.
 */
static inline u64 guide_arrives(struct guide *g, const struct rules *r, u64 low, u64 back, u64 window)
{
	u64 lowered = guide_base_fell(g) ? guide_fit_in(g, r, window, back, false) : 0;

	if (!lowered)
		newcomer_arrives(&g->newcomer, r, low, window);
	return lowered;
}

/* A drain is over. Whoever drained with all others knows the base, and what the queue was before. */
static inline enum verdict guide_end_drain(struct guide *g, const struct rules *r, const struct ended *e,
					   const struct signals *s, u64 *hold)
{
	bool together = g->drain.cause == CAUSE_TICK && drain_emptied(&g->drain, g->base);
	struct leap averaged = g->leap;
	enum verdict verdict;
	u64 fitted;

	g->drained = e->now;
	if (g->drain.cause == CAUSE_LOSS) {
		base_loss_judge(&g->base_loss, r);
		g->mode = MODE_FOLLOW;
		/* That there was no queue while all held back is no reason to hurry. */
		hurry_pause(&g->law.hurry);
		verdict = VERDICT_FOLLOW;
	} else {
		leap_forget(&g->leap);
		verdict = guide_judge(g, r, e->now, hold);
	}
	if (verdict != VERDICT_FOLLOW)
		return verdict;
	fitted = guide_fit_in(g, r, e->window, e->back, true);
	if (fitted) {
		*hold = fitted;
		return VERDICT_HOLD;
	}
	return together ? guide_leap(g, r, &averaged, e, s, hold) : VERDICT_FOLLOW;
}

/* A period has ended with these signals. */
noinline int guide_end_period(const struct policy *p, struct agent *a, const struct ended *e, u64 *hold)
{
	const struct rules *r;
	const struct signals *s;
	struct guide *g;
	bool following, fell, struck;
	u64 lowered;
	s64 rise;

	if (!p || !a || !e || !hold)
		return VERDICT_LEAVE;
	r = &p->rules;
	s = &a->signals;
	g = &a->guide;
	fell = guide_base_fell(g);
	g->room = wanted_delay(r, s->rate) / 4;
	rise = (s64)min(s->queue, 64 * SECOND) - g->average;
	following = g->mode == MODE_FOLLOW;
	g->average = followed(g->average, g->average + rise, e->length, r->drain_average);
	g->law.excess = base_loss_excess(&g->base_loss, r, s->rate);
	g->law.certain = g->base_loss.certain;
	g->law.crowding = crowd_crowding(&g->crowd, r, s->rate, g->law.certain);
	base_loss_end_period(&g->base_loss, r, e, s->loss);
	crowd_end_period(&g->crowd, r, e->length, s->loss);
	if (e->used)
		law_end_period(&g->law, r, s, e, following);
	else
		hurry_pause(&g->law.hurry);
	suspicion_end_period(&g->suspicion, r, e->length, s, e->window, following);
	if (following) {
		doubt_end_period(&g->doubt, r, s, e->length);
		if (e->used)
			leap_end_period(&g->leap, s->queue, e->length, e->srtt);
	}
	newcomer_end_period(&g->newcomer, r, e->now, e->srtt, e->low, g->mode == MODE_DRAIN || g->mode == MODE_TEST);
	tick_end_period(&g->tick, e->now);
	struck = tick_struck(&g->tick, r->tick);
	if (g->mode == MODE_FOLLOW || g->mode == MODE_COMPETE) {
		beat_end_period(&g->beat, tick_phase(&g->tick, r->beat), e->srtt, s->queue);
		if (struck)
			beat_strikes(&g->beat);
	}
	switch (g->mode) {
	case MODE_FOLLOW:
		/* Others have drained while this flow did not: it knows as much as they do. */
		lowered = fell ? guide_fit_in(g, r, e->window, e->back, false) : 0;
		if (!lowered)
			return guide_follow(g, r, e, s, rise, hold);
		*hold = lowered;
		return VERDICT_HOLD;
	case MODE_COMPETE:
		compete_end_period(&g->compete, r, e->now, e->length, s, e->window);
		/* Flows of the same kind after all. */
		if (struck && beat_falls(&g->beat, r)) {
			g->mode = MODE_FOLLOW;
			suspicion_competed(&g->suspicion, r, e->now, false, g->compete.peak, e->window);
			return VERDICT_FOLLOW;
		}
		if (compete_immovable(&g->compete, e->now, e->srtt, e->window)) {
			g->mode = MODE_FOLLOW;
			suspicion_mistaken(&g->suspicion, e->window);
			guide_believe(g, e->now, g->base + g->compete.plateau_delay);
			return VERDICT_FOLLOW;
		}
		if (compete_test_is_due(&g->compete, r, e->now, e->srtt, s, struck))
			return guide_drain(g, r, CAUSE_TEST, e, s, hold);
		return VERDICT_LEAVE;
	}
	switch (drain_end_period(&g->drain, e->now, e->low, s->spread, g->base)) {
	case STAGE_HOLDING:
		return VERDICT_LEAVE;
	case STAGE_AWAITING:
		*hold = g->drain.back;
		return VERDICT_HOLD;
	case STAGE_WATCHING:
		return VERDICT_FOLLOW;
	case STAGE_OVER:
		break;
	}
	return guide_end_drain(g, r, e, s, hold);
}

#endif
