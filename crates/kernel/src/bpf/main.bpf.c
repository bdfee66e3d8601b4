/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Astraea as a TCP congestion controller: what the kernel calls, and who decides for a flow.
 *
 * The decision core (agent.h and what it includes) knows nothing of the kernel. Here its inputs are taken from the
 * socket and its window and pace are written there, with every acknowledgement: beside a cong_control nothing else does.
 */
#include "agent.h"
#include "driver.h"
#include "fallback.h"
#include "maps.h"
#include "probe.h"
#include "tcp.h"
#include "views.h"

char _license[] SEC("license") = "Dual BSD/GPL";

static u64 next_flow;

SEC("struct_ops")
int astraea_init(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct tcp_sock *tp = (void *)sk;
	struct flow *f = bpf_sk_storage_get(&states, sk, (void *)0, BPF_SK_STORAGE_GET_F_CREATE);

	cubictcp_init(sk);
	if (!f) {
		COUNT(failed, 1);
		return 0;
	}
	COUNT(opened, 1);
	f->id = __sync_fetch_and_add(&next_flow, 1) + 1;
	f->started = bpf_ktime_get_ns();
	f->lost = tp->lost;
	f->delivered = tp->delivered;
	/* Pacing without a limit is what a controller before has left on, perhaps this one. */
	f->paced = sk->sk_pacing_status == SK_PACING_NEEDED && sk->sk_max_pacing_rate == ~0ul;
	set_driver(sk, tp, f, judge(f, the_policy()));
	view_open(f, sk);
	return 0;
}

/*
 * The socket may go on, under another controller or to another peer. When it comes back it is another flow, of which nothing
 * is known.
 */
SEC("struct_ops")
int astraea_release(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct flow *f = flow_of(sk);

	if (f)
		view_close(f);
	bpf_sk_storage_delete(&states, sk);
	return 0;
}

SEC("struct_ops")
int astraea_ssthresh(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct flow *f = flow_of(sk);

	if (f)
		f->prr_delivered = 0;
	return f && !f->reason ? agent_cwnd(&f->agent, 0) : cubictcp_recalc_ssthresh(sk);
}

SEC("struct_ops")
int astraea_undo_cwnd(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct flow *f = flow_of(sk);

	if (!f || f->reason)
		return tcp_reno_undo_cwnd(sk);
	if (f->state == TCP_CA_Loss)
		agent_on_spurious_timeout(&f->agent);
	return agent_cwnd(&f->agent, 0);
}

SEC("struct_ops")
int astraea_set_state(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct tcp_sock *tp = (void *)sk;
	u8 state = ctx[1];
	struct flow *f = flow_of(sk);
	const struct policy *p = the_policy();

	if (f && !f->reason && p) {
		if (state == TCP_CA_Loss) {
			COUNT(timeouts, 1);
			agent_on_timeout(&f->agent, p, bpf_ktime_get_ns(), newly_lost(f, tp));
		} else if (state == TCP_CA_Recovery || state == TCP_CA_CWR) {
			agent_on_congestion(&f->agent, p, state == TCP_CA_CWR, flight_before(f, tp));
		}
	} else {
		cubictcp_state(sk, state);
		if (!f)
			fallback_reduce_at_once(tp, state);
		else if (state <= TCP_CA_Disorder)
			fallback_end_reduction(tp, f);
	}
	if (f)
		f->state = state;
	return 0;
}

/* Something is sent while nothing is in flight. */
static inline int tx_start(struct sock *sk, struct flow *f)
{
	struct tcp_sock *tp = (void *)sk;
	const struct policy *p;
	u64 now, idle, rto, period;

	/* After a pause nothing is outstanding either; what is sent again after a timeout still is. */
	if (!f || !f->last_ack || tp->packets_out)
		return 0;
	now = bpf_ktime_get_ns();
	idle = less(now, f->last_ack);
	rto = 1000ull * ((tp->srtt_us >> 3) + tp->rttvar_us);
	if (f->reason)
		fallback_restart(tp, idle, rto);
	p = the_policy();
	period = p ? p->period : REFERENCE_PERIOD;
	if (idle > period) {
		agent_on_idle_restart(&f->agent, now, idle, rto);
		f->period_ends = now + period;
		if (!f->reason)
			write_window(sk, f, p, now, 0);
	}
	return 0;
}

SEC("struct_ops")
int astraea_cwnd_event_tx_start(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct flow *f = flow_of(sk);

	if (!f || f->reason)
		cubictcp_cwnd_event_tx_start(sk);
	return tx_start(sk, f);
}

SEC("struct_ops")
int astraea_cwnd_event(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	enum tcp_ca_event event = ctx[1];
	struct flow *f = flow_of(sk);

	if (!f || f->reason)
		cubictcp_cwnd_event(sk, event);
	return event == CA_EVENT_TX_START ? tx_start(sk, f) : 0;
}

SEC("struct_ops")
int astraea_pkts_acked(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	const struct ack_sample *sample = (void *)ctx[1];
	struct flow *f = flow_of(sk);

	if (!f || f->reason)
		cubictcp_acked(sk, sample);
	return 0;
}

/*
 * Whether the application, and not the network, limited what has arrived; a receiver whose window is full limits like one.
 * tcp_sendmsg() says so of all that finds nothing in flight before it, and so of every flow's first flight, when nothing but the
 * SYN had arrived: that is no application that is slow.
 */
static inline bool is_limited(const struct tcp_sock *tp, const struct rate_sample *rs)
{
	return (rs->is_app_limited && rs->prior_delivered > 1) || (u64)(rs->prior_in_flight + 1) * tp->mss_cache > tp->snd_wnd;
}

SEC("struct_ops")
int astraea_cong_control(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct tcp_sock *tp = (void *)sk;
	const struct rate_sample *rs = (void *)ctx[3];
	struct flow *f = flow_of(sk);
	const struct policy *p = the_policy();
	struct ack ack;
	u32 lost;

	if (!f) {
		fallback_control(sk, tp, f, ctx[1], ctx[2], rs->acked_sacked, rs->losses);
		return 0;
	}
	lost = newly_lost(f, tp);
	f->delivered = tp->delivered;
	if (!p) {
		if (f->reason != REASON_NO_POLICY)
			set_driver(sk, tp, f, REASON_NO_POLICY);
		set_paced(sk, f, false);
		fallback_control(sk, tp, f, ctx[1], ctx[2], rs->acked_sacked, lost);
		return 0;
	}
	ack.now = bpf_ktime_get_ns();
	ack.rtt = rs->rtt_us >= 0 ? 1000ull * max((u64)rs->rtt_us, 1ull) : 0;
	ack.srtt = 125ull * tp->srtt_us;
	ack.stamped = stamp_of(f, tp);
	ack.acked = rs->acked_sacked;
	ack.in_flight = in_flight_of(tp);
	ack.used = rs->prior_in_flight;
	ack.delivered = tp->delivered;
	ack.prior_delivered = rs->prior_delivered;
	ack.app_limited = is_limited(tp, rs);
	/* As tcp_is_cwnd_limited() outside slow start, with a little room for what pacing holds back. */
	ack.cwnd_limited = 5 * ack.used / 4 + 2 >= tp->snd_cwnd;
	ack.in_recovery = f->state == TCP_CA_Recovery || f->state == TCP_CA_CWR;
	drive(sk, tp, f, p, &ack, lost);
	if (f->reason) {
		set_paced(sk, f, false);
		fallback_control(sk, tp, f, ctx[1], ctx[2], ack.acked, lost);
	} else {
		write_window(sk, f, p, ack.now, ack.used);
	}
	return 0;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops astraea = {
	.init = (void *)astraea_init,
	.release = (void *)astraea_release,
	.ssthresh = (void *)astraea_ssthresh,
	.undo_cwnd = (void *)astraea_undo_cwnd,
	.set_state = (void *)astraea_set_state,
	.cwnd_event_tx_start = (void *)astraea_cwnd_event_tx_start,
	.cwnd_event = (void *)astraea_cwnd_event,
	.pkts_acked = (void *)astraea_pkts_acked,
	.cong_control = (void *)astraea_cong_control,
	/* Any process may choose it; without this the kernel can lose a reference, and the program with it. */
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "astraea",
};
