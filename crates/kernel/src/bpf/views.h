/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * What `astraea status` reads: a flow enters itself into the list, and says once a period how it is. An iterator over the
 * sockets' storage would need no list, but is a tracing program, which some kernels refuse.
 */
#ifndef ASTRAEA_VIEWS_H
#define ASTRAEA_VIEWS_H

#include "maps.h"

/* A flow begins. */
static noinline int view_open(struct flow *f, struct sock *sk)
{
	struct view v = {.flow = f->id, .started = f->started, .reason = f->reason};

	v.family = sk->__sk_common.skc_family;
	v.local_port = sk->__sk_common.skc_num;
	v.port = sk->__sk_common.skc_dport;
	if (v.family == AF_INET)
		v.address[0] = sk->__sk_common.skc_daddr;
	else
		UNROLL for (u32 i = 0; i < 4; i++)
			v.address[i] = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[i];
	bpf_map_update_elem(&flows, &v.flow, &v, 0);
	return 0;
}

/* Packets that are not yet among all flows'. */
static inline void count_packets(struct flow *f)
{
	const struct monitor *m = &f->agent.monitor;

	COUNT(acked, m->acked - f->acked_counted);
	COUNT(lost, m->lost - f->lost_counted);
	f->acked_counted = m->acked;
	f->lost_counted = m->lost;
}

/* A period has ended. */
static noinline int view_end_period(struct flow *f)
{
	struct view *v = bpf_map_lookup_elem(&flows, &f->id);

	count_packets(f);
	if (!v)
		return 0;
	v->rate = f->agent.signals.rate;
	v->srtt = f->agent.monitor.srtt;
	v->base = f->agent.guide.base;
	v->window = f->agent.window;
	v->decisions = f->decisions;
	v->acked = f->agent.monitor.acked;
	v->lost = f->agent.monitor.lost;
	v->reason = f->reason;
	return 0;
}

static inline void view_close(struct flow *f)
{
	count_packets(f);
	bpf_map_delete_elem(&flows, &f->id);
}

#endif
