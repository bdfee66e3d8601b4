/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The list of flows, read as a file by `astraea status`. */
#ifndef ASTRAEA_VIEWS_H
#define ASTRAEA_VIEWS_H

#include "maps.h"

SEC("iter/bpf_sk_storage_map")
int views(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct sock *sk = ctx->sk;
	struct flow *f = ctx->value;
	struct view v;

	if (!sk || !f)
		return 0;
	v.flow = f->id;
	v.started = f->started;
	v.rate = f->agent.signals.rate;
	v.srtt = f->agent.monitor.srtt;
	v.base = f->agent.guide.base;
	v.window = f->agent.window;
	v.decisions = f->decisions;
	v.reason = f->reason;
	v.family = sk->__sk_common.skc_family;
	v.local_port = sk->__sk_common.skc_num;
	v.port = sk->__sk_common.skc_dport;
	if (v.family == AF_INET) {
		v.address[0] = sk->__sk_common.skc_daddr;
		v.address[1] = v.address[2] = v.address[3] = 0;
	} else {
		UNROLL for (u32 i = 0; i < 4; i++)
			v.address[i] = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[i];
	}
	bpf_seq_write(ctx->meta->seq, &v, sizeof(v));
	return 0;
}

#endif
