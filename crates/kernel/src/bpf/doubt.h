/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Losses without a queue: the integer twin of crates/policy/src/agent/doubt.rs. */
#ifndef ASTRAEA_DOUBT_H
#define ASTRAEA_DOUBT_H

#include "law.h"

/* Round-trip times that are not told apart. */
#define NOISE (MS / 5)

/* The longest round-trip time that counts as this base. */
static inline u64 near(u64 base)
{
	return base + base / 50 + NOISE;
}

static inline u64 doubt_patience(const struct doubt *d, const struct rules *r)
{
	return d->patience ? d->patience : r->doubt;
}

static inline void doubt_end_period(struct doubt *d, const struct rules *r, const struct signals *s, u64 length)
{
	bool doubtful = s->loss > r->doubtful && no_queue(r, s);

	d->lasted = doubtful ? d->lasted + length : less(d->lasted, length);
}

static inline bool doubt_asks(const struct doubt *d, const struct rules *r, u64 srtt)
{
	return d->lasted > max(doubt_patience(d, r), 4 * srtt);
}

static inline void doubt_begin(struct doubt *d, u64 base)
{
	d->lasted = 0;
	d->base = base;
}

/* The drain has ended, with this base: losses that were random ask again later and later. */
static inline void doubt_judge(struct doubt *d, const struct rules *r, u64 base)
{
	d->patience = near(base) < d->base ? r->doubt : min(2 * doubt_patience(d, r), r->doubt_most);
}

#endif
