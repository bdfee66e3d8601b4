/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The law: the integer twin of crates/policy/src/agent/law.rs. */
#ifndef ASTRAEA_LAW_H
#define ASTRAEA_LAW_H

#include "hurry.h"

#define LAW_BURST (Q24 / 20)
#define LAW_SHORTEST (MS / 10)
#define LAW_NO_QUEUE (Q24 / 4)	/* of the wanted backlog, at most */

#define SHORTEST_QUEUE (MS / 2)	/* shorter ones are noise: they do not tell the rate at which flows rest */

/* The flow's own packets in the queue, Q20, at most half a million. */
static inline u64 backlog_of(const struct signals *s, u64 delay)
{
	return min(mul_shr(s->rate, seconds_q30(delay), 26), 1ull << 39);
}

/* Own packets in the queue that the law wants at this rate, Q20. */
noinline u64 wanted(const struct rules *r, u64 rate)
{
	u64 relative; /* Q24 */

	if (!r)
		return 1;
	relative = max(mul_shr(rate, r->per_reference, 32), 1ull);
	return max(mul_shr(r->backlog, exp_q30((ln_q(relative, 24) * r->exponent) >> 18), 30), 1024ull);
}

/* Queueing delay of a backlog at a rate, of a packet/s at least; at most 64 s. */
static inline u64 delay_of(u64 backlog, u64 rate)
{
	u64 seconds = ratio(backlog, max(rate, 1ull << 16), 26); /* Q30 */

	return mul_shr(min(seconds, 64ull << 30), SECOND, 30);
}

/* Queueing delay at which flows of this rate, of a packet/s at least, have what the law wants. */
static inline u64 wanted_delay(const struct rules *r, u64 rate)
{
	rate = max(rate, 1ull << 16);
	return delay_of(wanted(r, rate), rate);
}

/* The window with which the law rests at a queueing delay over a base round-trip time. */
noinline u64 resting_window(const struct rules *r, u64 base, u64 queue)
{
	u64 own;
	s64 relative; /* ln(backlog / (queue * reference)), Q24 */

	if (!r || !queue)
		return 0;
	relative = ln_q(max(r->backlog, 1ll), 20) + ln_q(max(r->per_reference, 1ll), 40) - ln_q(seconds_q30(queue), 30);
	/* Its own packets in that queue; of the whole round trip it has as many as the queue is of it. */
	own = mul_shr(r->backlog, exp_q30((relative * r->resting) >> 18), 30);
	return mul_shr(own, ratio(base + queue, queue, 20), 20);
}

/* What a share of lost packets counts in the error. */
static inline s64 losses(const struct rules *r, s64 loss)
{
	return min(mul_q24(r->loss, loss), r->loss_most);
}

/* How far the own backlog at a delay is below the wanted one, as a share of it, less what losses count. Q24. */
noinline s64 law_error(const struct rules *r, const struct signals *s, u64 delay, s64 lost)
{
	u64 share;

	if (!r || !s)
		return 0;
	share = ratio(backlog_of(s, delay), wanted(r, s->rate), 24);
	return Q24 - (s64)min(share, 1ull << 40) - lost;
}

/* An average follows a value for `length` of its time constant. */
static inline s64 followed(s64 average, s64 value, u64 length, u64 constant)
{
	s64 part = min(ratio(min(length, 64 * SECOND), constant, 24), (u64)Q24);

	return average + (((value - average) * part) >> 24);
}

/* Whether there is hardly a queue: the one that is there, not the one expected. */
static inline bool no_queue(const struct rules *r, const struct signals *s)
{
	return backlog_of(s, s->queue) < mul_shr(wanted(r, s->rate), LAW_NO_QUEUE, 24);
}

/* What the wanted backlog is divided by, Q24. */
static inline s64 law_divisor(const struct law *l)
{
	return Q24 + l->crowding;
}

/* A delay as it counts beside the wanted backlog that is not divided; at most 64 s. */
static inline u64 law_weighed(const struct law *l, u64 delay)
{
	return min(mul_shr(min(delay, 64 * SECOND), law_divisor(l), 24), 64 * SECOND);
}

/* Share of a round trip's packets that was lost beyond what the path loses. */
static inline s64 law_burst(const struct law *l, const struct signals *s)
{
	return s->burst - l->certain;
}

/* A period has ended in which the law was followed or not, and the window used. */
noinline int law_end_period(struct law *l, const struct rules *r, const struct signals *s, const struct ended *e, int following)
{
	s64 queue;
	bool idle;

	if (!l || !r || !s || !e)
		return 0;
	queue = min(s->queue, 64 * SECOND);
	if (following) {
		l->level_queue = l->level_known ? followed(l->level_queue, queue, e->length, r->level) : queue;
		l->level_loss = l->level_known ? followed(l->level_loss, s->loss, e->length, r->level) : s->loss;
		l->level_known = 1;
	}
	/* Whether the window has outgrown the path is the question. */
	idle = no_queue(r, s) && law_burst(l, s) < LAW_BURST && l->excess <= r->losses_hurried;
	hurry_end_period(&l->hurry, r, ratio(min(e->length, 64 * SECOND), max(e->srtt, 1ull), 24), e->window, idle,
			 s->loss > 0);
	return 0;
}

/* What a share of lost packets counts, less in a crowd, or what is lost beyond the base loss if that is more. */
static inline s64 law_lost(const struct law *l, const struct rules *r, s64 loss)
{
	return max((s64)ratio(losses(r, loss), law_divisor(l), 24), l->excess);
}

/* The logarithm of the backlog at which the law would rest at this level over the own one, within +-1. Q24. */
noinline s64 law_unfairness(const struct law *l, const struct rules *r, const struct signals *s)
{
	u64 rest, own;

	if (!l || !r || !s || !l->level_known)
		return 0;
	rest = mul_shr(wanted(r, s->rate), max(Q24 - law_lost(l, r, l->level_loss), 0ll), 24);
	own = backlog_of(s, law_weighed(l, max((u64)l->level_queue, LAW_SHORTEST)));
	return clamp(ln_q(max(rest, 1ull), 20) - ln_q(max(own, 1ull), 20), -(s64)Q24, (s64)Q24);
}

/* Gain of the law, Q24: who wants a short queue and loses nothing answers less. */
static inline s64 law_gain(const struct rules *r, const struct signals *s)
{
	s64 share;

	if (s->loss > 0)
		return r->gain;
	share = min(ratio(wanted_delay(r, s->rate), max(r->calm, 1ull), 24), (u64)Q24);
	return mul_q24(r->gain, max(share, r->calm_least));
}

/* The step as a relative change of the window per round trip, Q24. */
static inline s64 law_step(const struct law *l, const struct rules *r, const struct signals *s, u64 window)
{
	s64 step = clamp(mul_q24(law_gain(r, s), law_error(r, s, law_weighed(l, s->ahead), law_lost(l, r, s->loss))), -r->down, r->up);
	s64 hurry = hurry_step(&l->hurry, r, window);

	step += mul_q24(r->fair, law_unfairness(l, r, s));
	if (hurry)
		step = hurry;
	if (law_burst(l, s) > LAW_BURST)
		step += mul_q24(r->burst, ln_q(Q24 - min(law_burst(l, s), (s64)(Q24 * 0.95)), 24));
	return step;
}

/*
 * The step of law and network together, Q24: Rules::step. The network may slow growth down, but not end it, unless many
 * packets are lost. Near the law's rest what it takes fades, unless packets are lost.
 */
static inline s64 rules_step(const struct rules *r, s64 law, s64 network, s64 loss)
{
	if (law > 0)
		return loss <= r->random_loss ? max(law + network, mul_q24(r->growth_left, law)) : law + network;
	if (network < 0 && !loss)
		network = mul_q24(network, min((s64)ratio(-law, max(r->near_rest, 1ll), 24), (s64)Q24));
	return law + network;
}

#endif
