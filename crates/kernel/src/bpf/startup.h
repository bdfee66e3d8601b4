/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Slow start, until the path shows a queue or a real loss: the integer twin of crates/policy/src/agent/startup.rs. */
#ifndef ASTRAEA_STARTUP_H
#define ASTRAEA_STARTUP_H

#include "monitor.h"

enum startup_exit { EXIT_NONE, EXIT_DELAY, EXIT_LOSS };

#define STARTUP_SAMPLES 8
#define STARTUP_LOSSES 4
#define STARTUP_ONE_IN 12

/* Shorter delays are noise. */
#define STARTUP_SHORTEST (4 * MS)

/* Begins, or runs again as at the beginning. */
static inline void startup_begin(struct startup *s)
{
	s->running = 1;
	s->queued = 0;
	s->lost = 0;
	s->acked = 0;
}

static inline bool shows_queue(u64 patience, u64 enough, u64 sample, u64 low)
{
	u64 most = patience * clamp(low / 8, STARTUP_SHORTEST, 4 * STARTUP_SHORTEST);

	return sample >= low + (enough ? clamp(enough, STARTUP_SHORTEST, most) : most);
}

static inline enum startup_exit startup_on_ack(struct startup *s, const struct ack *ack, u64 patience, u64 low)
{
	if ((s32)(ack->prior_delivered - s->next_round) >= 0) {
		s->next_round = ack->delivered;
		s->lost /= 2;
		s->acked = 0;
	}
	s->acked += ack->acked;
	s->queued = ack->rtt && low && shows_queue(patience, s->enough, ack->rtt, low) ? s->queued + 1 : 0;
	if (s->queued < STARTUP_SAMPLES)
		return EXIT_NONE;
	s->running = 0;
	return EXIT_DELAY;
}

static inline enum startup_exit startup_on_loss(struct startup *s, u64 lost, bool any_loss)
{
	s->lost += lost;
	if (!any_loss && (s->lost < STARTUP_LOSSES || s->lost * STARTUP_ONE_IN <= s->acked + s->lost))
		return EXIT_NONE;
	s->running = 0;
	return EXIT_LOSS;
}

#endif
