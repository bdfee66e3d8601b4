/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Means of times: the twin of crates/policy/src/agent/mean.rs. */
#ifndef ASTRAEA_MEAN_H
#define ASTRAEA_MEAN_H

#include "flow.h"

static inline void mean_add(struct mean *m, u64 time)
{
	m->sum += time;
	m->count++;
}

static inline void mean_forget(struct mean *m)
{
	m->sum = 0;
	m->count = 0;
}

/* 0 of none. */
static inline u64 mean_get(const struct mean *m)
{
	return m->count ? m->sum / m->count : 0;
}

#endif
