/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* What a flow measures: the integer twin of crates/policy/src/agent/monitor.rs. */
#ifndef ASTRAEA_MONITOR_H
#define ASTRAEA_MONITOR_H

#include "fixed.h"
#include "flow.h"

/* A period that has ended, as the rules see it. */
struct ended {
	u64 now;
	u64 length;
	u64 low;
	u64 srtt;
	u64 back;	/* queue on the way back, which is in srtt but neither in low nor in the base */
	u64 window;
	u64 used;	/* whether the window was */
};

#define MS 1000000ull
#define SECOND 1000000000ull
#define SHORTEST (60 * MS)
#define PACKETS 4
#define LOSS_PACKETS 200

static inline void monitor_begin(struct monitor *m, u64 now)
{
	m->ends[0].time = now;
	m->ends[0].acked = m->acked;
	m->ends[0].lost = m->lost;
	m->ends[0].window = 0;
	m->closed = 1;
}

static inline void monitor_on_ack(struct monitor *m, const struct ack *ack)
{
	m->acked += ack->acked;
	/* What is sent in answer is not told, so what was in flight before stands for it. */
	m->in_flight = ack->used;
	m->most_in_flight = max(m->most_in_flight, (u64)ack->used);
	m->app_limited |= ack->app_limited;
	m->srtt = ack->srtt;
	if (ack->rtt) {
		m->rtt_sum += ack->rtt;
		m->rtt_count++;
		m->rtt_min = m->rtt_min ? min(m->rtt_min, ack->rtt) : ack->rtt;
		m->lifetime_min = m->lifetime_min ? min(m->lifetime_min, ack->rtt) : ack->rtt;
	}
}

static inline struct total *end_of(struct monitor *m, u32 back)
{
	return &m->ends[(m->closed - 1 - back) & (ENDS - 1)];
}

static inline void monitor_close(struct monitor *m, u64 now, struct period *period)
{
	struct total *last = end_of(m, 0), *end;
	u32 place = m->closed & (ENDS - 1);

	period->length = m->closed ? now - last->time : 0;
	period->acked = m->acked - (m->closed ? last->acked : 0);
	period->lost = m->lost - (m->closed ? last->lost : 0);
	period->rtt_min = m->rtt_min;
	period->rtt_mean = m->rtt_count ? m->rtt_sum / m->rtt_count : 0;
	end = &m->ends[place];
	end->time = now;
	end->acked = m->acked;
	end->lost = m->lost;
	end->window = 0;
	m->closed++;
	m->rtt_sum = 0;
	m->rtt_count = 0;
	m->rtt_min = 0;
	m->most_in_flight = m->in_flight;
}

static inline void monitor_note_window(struct monitor *m, u64 window)
{
	end_of(m, 0)->window = window;
}

static inline u32 oldest_known(const struct monitor *m)
{
	return min(m->closed - 1, (u32)ENDS - 1);
}

/*
 * How many periods to go back from the newest end for so much time, packets that arrived, and packets of all kinds: one
 * at least, and as many as are known if they are too few.
 */
noinline u32 periods_back(struct monitor *m, u64 time, u64 acked, u64 packets)
{
	struct total *newest, *end;
	u32 known, back = 0, i;

	if (!m)
		return 0;
	newest = end_of(m, 0);
	known = oldest_known(m);
	/* The counter of the loop itself is what the verifier understands. */
	times(i, ENDS) {
		back = i;
		end = end_of(m, back);
		if (back >= known)
			break;
		if (back >= 1 && newest->time - end->time >= time && newest->acked - end->acked >= acked &&
		    newest->acked - end->acked + newest->lost - end->lost >= packets)
			break;
	}
	return back;
}

/* What happened since then. */
static inline void since(struct monitor *m, u32 back, struct total *s)
{
	const struct total *newest = end_of(m, 0), *oldest = end_of(m, back);

	s->time = newest->time - oldest->time;
	s->acked = newest->acked - oldest->acked;
	s->lost = newest->lost - oldest->lost;
}

/* A share of two counts in Q24. */
static inline s64 share(u64 part, u64 whole)
{
	return whole ? (s64)ratio(part, whole, 24) : 0;
}

/*
 * Rate and shares of loss over the last round trip: whole periods, at least one, and more for slow flows. The share `loss` looks
 * back until it has enough packets.
 */
static inline void rate_and_loss(struct monitor *m, struct signals *s)
{
	u64 span = max(m->srtt, SHORTEST);
	struct total total;

	since(m, periods_back(m, span, PACKETS, 0), &total);
	s->rate = ratio(min(total.acked, 1ull << 33) * SECOND, max(total.time, 1ull), 16);
	s->burst = total.lost >= 4 ? share(total.lost, total.lost + total.acked) : 0;
	since(m, periods_back(m, span, PACKETS, LOSS_PACKETS), &total);
	s->loss = share(total.lost, total.lost + total.acked);
}

/* The signals of a closed period for a base round-trip time; the last round-trip time stands in where it has none. */
noinline int monitor_signals(struct agent *a, const struct period *period, u64 base)
{
	struct monitor *m;
	struct signals *s;
	u64 low, before;
	s64 change = 0;

	if (!a || !period)
		return 0;
	m = &a->monitor;
	s = &a->signals;
	low = period->rtt_min ? period->rtt_min : a->last_rtt;
	/* The window a round trip before the end of the period. */
	before = end_of(m, periods_back(m, m->srtt, 0, 0))->window;
	rate_and_loss(m, s);
	s->queue = less(low, base);
	if (before && a->window)
		change = ((ln_q(a->window, 20) - ln_q(before, 20)) * (s64)min(m->srtt, 64 * SECOND)) >> 24;
	s->ahead = (u64)max((s64)s->queue + change, 0ll);
	s->spread = period->rtt_mean ? less(period->rtt_mean, low) : 0;
	return 0;
}

#endif
