/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* What a flow measures: the integer twin of crates/policy/src/agent/monitor.rs. */
#ifndef ASTRAEA_MONITOR_H
#define ASTRAEA_MONITOR_H

#include "fixed.h"
#include "flow.h"

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
	m->most_in_flight = 0;
}

static inline void monitor_note_window(struct monitor *m, u64 window)
{
	end_of(m, 0)->window = window;
}

static inline u32 oldest_known(const struct monitor *m)
{
	return min(m->closed - 1, (u32)ENDS - 1);
}

/* Window a round trip before the end of the last period, 0 if it is not known. */
static inline u64 window_before(struct monitor *m)
{
	u64 now = end_of(m, 0)->time;
	u32 oldest = oldest_known(m), back = 0, i;

	/* The counter of the loop itself is what the verifier understands. */
	times(i, ENDS) {
		back = i;
		if (back >= oldest || (back >= 1 && now - end_of(m, back)->time >= m->srtt))
			break;
	}
	return end_of(m, back)->window;
}

/* A share of two counts in Q24. */
static inline s64 share(u64 part, u64 whole)
{
	return whole ? (s64)ratio(part, whole, 24) : 0;
}

/* Rate and shares of loss over the last round trip: whole periods, at least two, more for slow flows. */
static inline void rate_and_loss(struct monitor *m, struct signals *s)
{
	struct total *newest = end_of(m, 0), *oldest;
	u64 span = max(m->srtt, SHORTEST), acked, lost, time;
	u32 known = oldest_known(m), back = 0, from, i;

	times(i, ENDS) {
		back = i;
		if (back >= known || (back >= 1 && newest->time - end_of(m, back)->time >= span))
			break;
	}
	from = back;
	times(i, ENDS) {
		back = i;
		if (back >= known || (back >= from && newest->acked - end_of(m, back)->acked >= PACKETS))
			break;
	}
	from = back;
	oldest = end_of(m, back);
	acked = newest->acked - oldest->acked;
	lost = newest->lost - oldest->lost;
	time = max(newest->time - oldest->time, 1ull);
	s->rate = ratio(min(acked, 1ull << 33) * SECOND, time, 16);
	s->burst = lost >= 4 ? share(lost, lost + acked) : 0;
	times(i, ENDS) {
		back = i;
		oldest = end_of(m, back);
		acked = newest->acked - oldest->acked;
		lost = newest->lost - oldest->lost;
		if (back >= known || (back >= from && acked + lost >= LOSS_PACKETS))
			break;
	}
	oldest = end_of(m, back);
	acked = newest->acked - oldest->acked;
	lost = newest->lost - oldest->lost;
	s->loss = share(lost, lost + acked);
}

/* The signals of a closed period for a base round-trip time; `rtt` stands in for a period without one. */
static inline void monitor_signals(struct monitor *m, const struct period *period, u64 rtt, u64 base, u64 window,
				   struct signals *s)
{
	u64 low = period->rtt_min ? period->rtt_min : rtt, before = window_before(m);
	s64 change = 0;

	rate_and_loss(m, s);
	s->queue = less(low, base);
	if (before && window)
		change = ((ln_q(window, 20) - ln_q(before, 20)) * (s64)min(m->srtt, 64 * SECOND)) >> 24;
	s->ahead = (u64)max((s64)s->queue + change, 0ll);
	s->spread = period->rtt_mean ? less(period->rtt_mean, low) : 0;
}

#endif
