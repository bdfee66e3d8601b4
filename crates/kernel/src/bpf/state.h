/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* What a policy sees: the integer twin of crates/policy/src/{backlog,state}.rs. */
#ifndef ASTRAEA_STATE_H
#define ASTRAEA_STATE_H

#include "law.h"
#include "monitor.h"

#define BACKLOG_FEATURES 5
#define PAPER_FEATURES 8
#define SLOWEST 655		/* .01 packets/s in Q16 */

/* Feature number `i` (Q24, size below 2^9) as the network takes it. */
static inline s32 encoded(const struct network *n, u32 i, s64 value)
{
	return (s32)bounded((value * n->input_scale[i] + (1 << 23)) >> 24, -(s64)n->most, n->most);
}

/* Another policy may see something else, or in other units: what is in the state then is nothing to it. */
noinline int state_keep_to(const struct policy *p, struct agent *a)
{
	u64 encoding;

	if (!p || !a)
		return 0;
	encoding = (u64)p->network.most << 2 | p->form;
	if (a->encoding == encoding)
		return 0;
	a->encoding = encoding;
	a->known = 0;
	UNROLL for (u32 i = 0; i < STATE; i++)
		a->state[i] = 0;
	return 0;
}

/* Moves `features` numbers in as the newest of PERIODS; the first ones stand for those before them too if `repeat`. */
static inline void push(struct agent *a, const s32 *newest, u32 features, bool repeat)
{
	if (repeat && !a->known) {
		UNROLL for (u32 period = 1; period < PERIODS; period++) {
			UNROLL for (u32 i = 0; i < features; i++)
				a->state[period * features + i] = newest[i];
		}
	}
	UNROLL for (u32 period = 0; period < PERIODS - 1; period++) {
		UNROLL for (u32 i = 0; i < features; i++)
			a->state[period * features + i] = a->state[(period + 1) * features + i];
	}
	UNROLL for (u32 i = 0; i < features; i++)
		a->state[(PERIODS - 1) * features + i] = newest[i];
	a->known = 1;
}

noinline int push_backlog(const struct policy *p, struct agent *a)
{
	const struct signals *s;
	const struct network *n;
	s32 f[BACKLOG_FEATURES];

	if (!p || !a)
		return 0;
	s = &a->signals;
	n = &p->network;
	/* 1 + ln(x / 1666.7) / 4 */
	f[0] = encoded(n, 0, Q24 + ((ln_q(max(s->rate, (u64)SLOWEST), 16) - 124463470) >> 2));
	/* ln(.2 + 20 q) */
	f[1] = encoded(n, 1, ln_q((u64)(Q30 / 5) + 20 * min(seconds_q30(s->ahead), 1ull << 50), 30));
	/* ln(.3 + x q) / 2 */
	f[2] = encoded(n, 2, ln_q((3ull << 20) / 10 + backlog_of(s, s->ahead), 20) >> 1);
	f[3] = encoded(n, 3, 3 * (s64)root_q(s->loss, 24));
	/* ln(.05 + 1000 spread) / 2 */
	f[4] = encoded(n, 4, ln_q((u64)(Q30 / 20) + 1000 * min(seconds_q30(s->spread), 1ull << 50), 30) >> 1);
	push(a, f, BACKLOG_FEATURES, true);
	return 0;
}

/* ln(x / low) / ln(high / low) in Q24 for five decades, 0 to 1; x and low as logarithms in Q24. */
static inline s64 five_decades(s64 ln_x, s64 ln_low)
{
	/* 2^24 / ln(10^5) */
	return bounded(((ln_x - ln_low) * 1457250ll) >> 24, 0, Q24);
}

noinline int push_paper(const struct policy *policy, struct agent *a, const struct period *period, u64 pacing)
{
	struct paper *p;
	u64 loss, product, peak, window;
	const struct network *n;
	s32 f[PAPER_FEATURES];
	s64 limit = 20ll << 24;

	if (!policy || !a || !period)
		return 0;
	p = &a->paper;
	window = a->window;
	n = &policy->network;
	if (period->rtt_mean) {
		p->throughput = ratio(min(period->acked, 1ull << 33) * SECOND, max(period->length, 1ull), 16);
		p->throughput_max = max(p->throughput_max, p->throughput);
		p->latency = period->rtt_mean;
		p->latency_min = p->latency_min ? min(p->latency_min, a->monitor.lifetime_min) : a->monitor.lifetime_min;
	}
	peak = p->throughput_max;
	if (!peak || !p->latency_min)
		return 0;
	loss = ratio(min(period->lost, 1ull << 33) * SECOND, max(period->length, 1ull), 16);
	product = max(mul_shr(peak, seconds_q30(p->latency_min), 26), 1ull); /* packets, Q20 */
	f[0] = encoded(n, 0, (s64)ratio(p->throughput, peak, 24));
	/* In bit/s above 10^5: Q16 packets of 8 mss bits. */
	f[1] = encoded(n, 1, five_decades(ln_q(peak * a->mss, 13), 193154837));
	f[2] = encoded(n, 2, min((s64)ratio(p->latency, p->latency_min, 24), limit));
	/* In s above 10^-4. */
	f[3] = encoded(n, 3, five_decades(ln_q(max(p->latency_min, 1ull), 0), 193154837));
	f[4] = encoded(n, 4, min((s64)ratio(min(window, 1ull << 39), product, 24), limit));
	f[5] = encoded(n, 5, min((s64)ratio(loss, peak, 24), (s64)Q24));
	f[6] = encoded(n, 6, min((s64)ratio(min(a->monitor.in_flight, 1ull << 19) << 20, max(window, 1ull), 24), 2ll << 24));
	/* Pacing in bytes/s: peak * mss are bytes/s in Q16. */
	f[7] = encoded(n, 7, min((s64)ratio(min(pacing, 1ull << 39) , max(peak * a->mss >> 16, 1ull), 24), limit));
	push(a, f, PAPER_FEATURES, false);
	return 0;
}

#endif
