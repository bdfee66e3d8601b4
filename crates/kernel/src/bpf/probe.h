/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The decision core on events from a process: how tests compare it and benchmarks time it, in the kernel itself. */
#ifndef ASTRAEA_PROBE_H
#define ASTRAEA_PROBE_H

#include "events.h"
#include "maps.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct agent);
} probed SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, PROBES);
	__type(key, u32);
	__type(value, struct probe);
} probes SEC(".maps");

/* Feeds the first ctx[0] events of `probes` to the flow in `probed`. */
SEC("syscall")
int probe(u64 *ctx)
{
	const struct policy *p = the_policy();
	u32 zero = 0, i;
	struct agent *a = bpf_map_lookup_elem(&probed, &zero);

	if (!a || !p)
		return -1;
	times(i, (u32)min(ctx[0], (u64)PROBES)) {
		u32 key = i;
		struct probe *e = bpf_map_lookup_elem(&probes, &key);
		u64 start;

		if (!e)
			break;
		start = bpf_ktime_get_ns();
		take_event(a, p, e);
		e->ns = bpf_ktime_get_ns() - start;
	}
	return 0;
}

#endif
