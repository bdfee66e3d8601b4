/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The time of day: the integer twin of crates/policy/src/agent/tick.rs. */
#ifndef ASTRAEA_TICK_H
#define ASTRAEA_TICK_H

#include "flow.h"

/* A period has ended: whether the clock, which strikes `every` so many ns, has struck in it. */
static inline bool tick_strikes(struct tick *t, u64 every, u64 now)
{
	u64 count = every ? (now + t->ahead) / every + 1 : 0;
	bool struck = t->counted && t->counted != count;

	t->counted = count;
	return struck;
}

#endif
