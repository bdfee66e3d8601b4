/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The decision core as native code: what tests compare the BPF program and the floating-point policy with. */
#include "events.h"

void astraea_native_events(struct agent *a, const struct policy *p, struct probe *events, u64 count)
{
	for (u64 i = 0; i < count; i++)
		take_event(a, p, &events[i]);
}

s64 astraea_native_ln(u64 x, s32 fraction) { return ln_q(x, fraction); }
u64 astraea_native_exp(s64 x) { return exp_q30(x); }
u64 astraea_native_root(u64 x, s32 fraction) { return root_q(x, fraction); }
s64 astraea_native_tanh(s64 x) { return tanh_q24(x); }
