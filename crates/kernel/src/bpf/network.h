/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The policy's network on integers. Two weights share a 64-bit number, so that one multiplication serves both. */
#ifndef ASTRAEA_NETWORK_H
#define ASTRAEA_NETWORK_H

#include "fixed.h"
#include "flow.h"

/* The sum of a unit, scaled and bounded as its activation says. */
static inline s32 activate(const struct unit *unit, s32 sum)
{
	s64 scaled = ((s64)sum + unit->bias) * unit->scale;
	u32 shift = unit->shift & 63;
	s64 y = (scaled + (1ll << shift >> 1)) >> shift;

	return (s32)bounded(y, unit->low, unit->high);
}

/* Both sums of a pair of units: the low half borrows from the high one when it is negative. */
static inline void pair(const struct unit *unit, s32 *y, s64 sums)
{
	s32 low = (s32)sums;

	y[0] = activate(unit, low);
	y[1] = activate(unit + 1, (s32)((sums - low) >> 32));
}

/* Eight outputs of a layer from `x` to `y`. */
static inline void block(const struct network *n, const s32 *x, s32 *y, u32 inputs, u32 weight, u32 unit)
{
	s64 a0 = 0, a1 = 0, a2 = 0, a3 = 0;
	u32 i;

	times(i, inputs / 8) {
		u32 at = weight + i * 32, from = i * 8;

		OPAQUE(at);
		OPAQUE(from);
		if (at > PAIRS - 32 || from > WIDTH - 8)
			break;
		const s64 *w = &n->weight[at];
		const s32 *input = &x[from];
		UNROLL for (u32 u = 0; u < 8; u++) {
			s64 v = input[u];

			a0 += w[u * 4] * v;
			a1 += w[u * 4 + 1] * v;
			a2 += w[u * 4 + 2] * v;
			a3 += w[u * 4 + 3] * v;
		}
	}
	OPAQUE(unit);
	if (unit > UNITS - 8)
		return;
	pair(&n->unit[unit], y, a0);
	pair(&n->unit[unit + 2], y + 2, a1);
	pair(&n->unit[unit + 4], y + 4, a2);
	pair(&n->unit[unit + 6], y + 6, a3);
}

/* Layer number `k`. */
noinline int network_layer(const struct policy *p, struct agent *a, u32 k)
{
	const struct layer *l;
	s32 *x, *y;
	u32 b;

	if (!p || !a)
		return 0;
	l = &p->network.layer[masked(k, LAYERS - 1)];
	x = &a->x[masked(k, 1) * WIDTH];
	y = &a->x[masked(k + 1, 1) * WIDTH];
	times(b, l->outputs / 8) {
		u32 to = b * 8;

		OPAQUE(to);
		if (to > WIDTH - 8)
			break;
		block(&p->network, x, &y[to], l->inputs, l->weights + b * 4 * l->inputs, l->units + to);
	}
	return 0;
}

/* The action for the flow's state, in Q24, -1 to 1. */
noinline int network_action(const struct policy *p, struct agent *a)
{
	u32 i;

	if (!p || !a)
		return 0;
	times(i, STATE) {
		u32 k = i;

		OPAQUE(k);
		if (k >= STATE)
			break;
		a->x[k] = a->state[k];
	}
	times(i, min(p->network.layers, (u32)LAYERS))
		network_layer(p, a, i);
	/* The last sum is Q20. */
	return (int)tanh_q24((s64)a->x[masked(p->network.layers, 1) * WIDTH] << 4);
}

#endif
