/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The policy's network on integers. Two weights share a 64-bit number, so that one multiplication serves both; networks that
 * are too steep for the 32 bits that this leaves a sum, the wide ones, have each weight alone.
 */
#ifndef ASTRAEA_NETWORK_H
#define ASTRAEA_NETWORK_H

#include "fixed.h"
#include "flow.h"

/* The sum of a unit, scaled and bounded as its activation says. */
static inline s32 activate(const struct unit *unit, s64 sum)
{
	s64 scaled = (sum + unit->bias) * unit->scale;
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

/* A layer's outputs from number `to` on, eight or, if the network is wide, four. */
static inline void block(const struct network *n, const s32 *x, s32 *y, u32 inputs, u32 weight, u32 unit, u32 to)
{
	s64 a0 = 0, a1 = 0, a2 = 0, a3 = 0;
	u32 i;

	times(i, inputs / 8) {
		u32 at = weight + i * 32, from = i * 8;

		OPAQUE(at);
		OPAQUE(from);
		if (at > WEIGHTS - 32 || from > WIDTH - 8)
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
	OPAQUE(to);
	if (unit > UNITS - 8 || to > WIDTH - 4)
		return;
	if (n->wide) {
		y[to] = activate(&n->unit[unit], a0);
		y[to + 1] = activate(&n->unit[unit + 1], a1);
		y[to + 2] = activate(&n->unit[unit + 2], a2);
		y[to + 3] = activate(&n->unit[unit + 3], a3);
	} else if (to <= WIDTH - 8) {
		pair(&n->unit[unit], &y[to], a0);
		pair(&n->unit[unit + 2], &y[to + 2], a1);
		pair(&n->unit[unit + 4], &y[to + 4], a2);
		pair(&n->unit[unit + 6], &y[to + 6], a3);
	}
}

/* Layer number `k`. */
noinline int network_layer(const struct policy *p, struct agent *a, u32 k)
{
	const struct layer *l;
	u32 b, size;
	s32 *x, *y;

	if (!p || !a)
		return 0;
	l = &p->network.layer[masked(k, LAYERS - 1)];
	x = &a->x[masked(k, 1) * WIDTH];
	y = &a->x[masked(k + 1, 1) * WIDTH];
	size = p->network.wide ? 4 : 8;
	times(b, l->outputs / size)
		block(&p->network, x, y, l->inputs, l->weights + b * 4 * l->inputs, l->units + b * size, b * size);
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
