/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* CUBIC (RFC 9438) in congestion avoidance: the integer twin of crates/cc/src/cubic.rs as a competition needs it. */
#ifndef ASTRAEA_CUBIC_H
#define ASTRAEA_CUBIC_H

#include "fixed.h"
#include "flow.h"

#define CUBIC_C 6710886		/* .4 */
#define CUBIC_BETA 11744051	/* .7 */
#define CUBIC_ALPHA 8882055	/* 3 (1 - beta) / (1 + beta) */
#define CUBIC_FURTHEST 500000000000ll

static inline void cubic_continue_from(struct cubic *c, u64 window)
{
	window = max(window, 2ull << 20);
	c->cwnd = window;
	c->ssthresh = window;
	c->w_max = window;
	c->cwnd_prior = window;
	c->epoch = 0;
}

/* The cubic at a time in ns after the start of the epoch. */
noinline s64 w_cubic(const struct cubic *c, u64 time)
{
	s64 distance, cube;
	u64 d;

	if (!c)
		return 0;
	distance = bounded((s64)time - (s64)c->k, -CUBIC_FURTHEST, CUBIC_FURTHEST);
	d = seconds_q30((u64)(distance < 0 ? -distance : distance)) >> 10;
	cube = mul_shr(mul_shr(mul_shr(d, d, 20), d, 20), CUBIC_C, 24);
	return (s64)c->w_max + (distance < 0 ? -cube : cube);
}

/* Seconds, as ns, until the cubic reaches `rise` packets (Q20) more. */
static inline u64 cubic_root_time(u64 rise)
{
	u64 x = ratio(rise, CUBIC_C, 24);

	/* e^(ln(x) / 3) */
	return x ? mul_shr(exp_q30((ln_q(x, 20) * 357913941ll) >> 24), 1000000000, 30) : 0;
}

static inline void cubic_on_ack(struct cubic *c, const struct ack *ack)
{
	u64 since = less(ack->now, c->last_ack), part, time;
	s64 target, alpha;

	c->last_ack = ack->now;
	if (ack->in_recovery)
		return;
	if (!ack->cwnd_limited) {
		if (c->epoch)
			c->epoch = min(c->epoch + since, ack->now);
		return;
	}
	if (!c->epoch) {
		c->w_max = max(c->w_max, c->cwnd);
		c->epoch = ack->now;
		c->k = cubic_root_time(c->w_max - c->cwnd);
		c->w_est = c->cwnd;
	}
	time = ack->now - c->epoch;
	part = min(ratio((u64)ack->acked << 20, c->cwnd, 24), (u64)Q24);
	alpha = c->w_est >= c->cwnd_prior ? Q24 : CUBIC_ALPHA;
	c->w_est += mul_shr(alpha, part, 28);
	if (w_cubic(c, time) < (s64)c->w_est) {
		c->cwnd = max(c->cwnd, c->w_est);
		return;
	}
	target = clamp(w_cubic(c, time + ack->srtt), (s64)c->cwnd, (s64)(3 * c->cwnd / 2));
	c->cwnd += mul_shr(target - c->cwnd, part, 24);
}

/* After a loss two packets are the least, after a mark one. */
static inline void cubic_on_congestion(struct cubic *c, bool mark, u64 flight)
{
	u64 reduced = mul_shr(min(c->cwnd, flight << 20), CUBIC_BETA, 24);

	c->w_max = c->cwnd < c->w_max ? mul_shr(c->cwnd, 14260634, 24) : c->cwnd; /* .85 */
	c->cwnd_prior = c->cwnd;
	c->epoch = 0;
	c->cwnd = max(reduced, (mark ? 1ull : 2ull) << 20);
	c->ssthresh = c->cwnd;
}

#endif
