/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Who drives a flow: the policy here, an agent in a process, or CUBIC; and what happens once a monitoring period. */
#ifndef ASTRAEA_DRIVER_H
#define ASTRAEA_DRIVER_H

#include "agent.h"
#include "fallback.h"
#include "maps.h"
#include "views.h"

/* Hash of intf.h, in the place of this number: policies say which one they are laid out by. */
const volatile u64 interface = INTERFACE_MARK;

#define TOGETHER MS		/* as much as fills this time leaves at once, as with the kernel's pacing … */
#define LEAST_TOGETHER 2	/* … two packets at least, as one acknowledgement is for, and two such pairs of a small window … */
#define MOST_TOGETHER 45	/* … and 64 KiB at most */
#define HURRIED 8		/* times the pace, while the kernel's own pacing is to go off */
#define GAP 8			/* what is missing in flight is a gap when it is more than this part of the window */
#define LEAVE_AFTER 3		/* periods outside the domain before a flow changes to CUBIC … */
#define RETURN_AFTER 33		/* … and inside before it comes back */
#define LATELY (5 * SECOND)	/* a shorter round trip is forgotten after once or twice that: paths become longer */

/*
 * Turns the kernel's own pacing of a flow on, or off again where nobody else wants it. It stays on while the next packet is to
 * wait: TCP would send at once, but stamp the packet with the time that it was to wait for, and its round trip would seem
 * shorter than the path by that. Returns whether it is on for such a packet only.
 */
static inline bool set_paced(struct sock *sk, struct flow *f, bool paced)
{
	const struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (paced && sk->sk_pacing_status == SK_PACING_NONE) {
		sk->sk_pacing_status = SK_PACING_NEEDED;
		f->paced = 1;
	} else if (!paced && f->paced && sk->sk_pacing_status == SK_PACING_NEEDED && sk->sk_max_pacing_rate == ~0ul) {
		if (tp->tcp_wstamp_ns > bpf_ktime_get_ns())
			return true;
		sk->sk_pacing_status = SK_PACING_NONE;
		f->paced = 0;
	}
	return false;
}

/*
 * The clock of acknowledgements: how many packets may leave at this one, so that they leave at a pace (`gap` ns from one to
 * the next, at most `most` at once). Bunches disperse as with the timers of pacing, without a timer for each.
 */
static inline u32 clock_out(struct clock *c, u64 now, u64 gap, u32 most, u32 used, u32 flight)
{
	u64 credit = (most - 1) * gap, next = max(c->next, less(c->seen, credit)) + less(used, c->flight) * gap;

	c->next = clamp(next, less(now, credit), now + most * gap);
	c->seen = now;
	c->flight = flight;
	return now < c->next ? 0 : min((now - c->next) / gap + 1, (u64)most);
}

/*
 * The window and the pace of a flow that the policy drives, at an acknowledgement with so many packets in flight before it,
 * or at a start. Acknowledgements clock packets out; the timers of the kernel's pacing cost more than all the rest and are
 * for slow start, where a window's growth in bunches decides who of two gets how much, and for gaps: the end of a drain, a
 * bunch of acknowledgements, less in flight than receivers acknowledge soon. Below two packets nothing but the pace keeps to the
 * window, and to a small one the pace keeps with a packet more in flight. Else, with a sixteenth more than window over
 * round-trip time, gaps close and the window stays what limits.
 */
static noinline int write_window(struct sock *sk, struct flow *f, const struct policy *p, u64 now, u32 used)
{
	struct tcp_sock *tp = (void *)sk;
	u64 room = agent_room(p, &f->agent), pacing = agent_pacing(p, &f->agent);
	u64 pace = room ? pacing : pacing + pacing / 16, gap;
	u32 cwnd = agent_cwnd(&f->agent, room), flight = in_flight_of(tp), most, allowed;
	bool paced;

	gap = pace ? max(SECOND * tp->mss_cache / pace, 1ull) : MS;
	most = clamp(TOGETHER / gap, (u64)LEAST_TOGETHER << (room >> 20), (u64)MOST_TOGETHER);
	allowed = clock_out(&f->clock, now, gap, most, used, flight);
	paced = f->agent.startup.running || flight + allowed < LEAST_TOGETHER || f->agent.window < FLOOR ||
		cwnd > flight + max(most, cwnd / GAP);
	/* Each packet that is paced puts off the next: at the pace of acknowledgements there would always be one that waits. */
	if (set_paced(sk, f, paced))
		pace *= HURRIED;
	tp->snd_cwnd = min(paced ? cwnd : min(cwnd, flight + allowed), tp->snd_cwnd_clamp);
	sk->sk_pacing_rate = pace ? min(pace, (u64)sk->sk_max_pacing_rate) : sk->sk_max_pacing_rate;
	return 0;
}

/* Changes who drives a flow, which goes on from the window that it has. */
static inline void set_driver(struct sock *sk, struct tcp_sock *tp, struct flow *f, u32 reason)
{
	struct agent *a = &f->agent;
	u32 zero = 0;
	struct counters *c;

	f->against = 0;
	if (f->reason == reason && f->begun)
		return;
	c = bpf_map_lookup_elem(&counters, &zero);
	if (reason) {
		if (c && reason < REASONS)
			__sync_fetch_and_add(&c->fallbacks[reason], 1);
		if (f->begun && !f->reason) {
			cubictcp_init(sk);
			tp->snd_cwnd = agent_cwnd(a, 0);
			if (!a->startup.running)
				tp->snd_ssthresh = tp->snd_cwnd;
		}
		set_paced(sk, f, false);
	} else {
		if (f->begun && c)
			__sync_fetch_and_add(&c->returns, 1);
		set_paced(sk, f, true);
		a->window = (u64)tp->snd_cwnd * PACKET;
		guide_restart(&a->guide);
		a->startup.running = tp->snd_cwnd < tp->snd_ssthresh;
		a->startup.queued = 0;
		f->answered = f->record;
	}
	f->reason = reason;
}

/* Whether anything but what a flow meets speaks against the policy. */
static inline u32 judge(const struct flow *f, const struct policy *p)
{
	const struct control *c = the_control();

	if (!p || !p->period)
		return REASON_NO_POLICY;
	if (p->interface != interface)
		return REASON_MISMATCH;
	if (!c || c->decider == DECIDER_DETACHED)
		return REASON_DETACHED;
	return REASON_NONE;
}

/* A period has ended whose shortest round trip was this one. Returns the shortest one lately, 0 if there was none. */
static inline u64 shortest_lately(struct lately *l, u64 now, u64 rtt)
{
	if (now - l->since >= LATELY) {
		l->before = l->low;
		l->low = 0;
		l->since = now;
	}
	l->low = l->low && rtt ? min(l->low, rtt) : l->low | rtt;
	return l->low && l->before ? min(l->low, l->before) : l->low | l->before;
}

/* Whether a flow with this shortest round trip is where the policy was made for. */
static inline bool is_inside(const struct flow *f, const struct policy *p, u64 base)
{
	return base >= p->domain.rtt_min && base <= p->domain.rtt_max && f->agent.signals.rate <= p->domain.rate_max;
}

/* Sends the flow's period to the agent. Returns whether it got there. */
static noinline int send_record(struct flow *f, struct sock *sk, const struct policy *p, u32 ask)
{
	struct record *r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);
	struct agent *a = &f->agent;

	f->record++;
	if (!ask)
		f->asked = f->record + 1;
	if (!r) {
		COUNT(dropped, 1);
		return 0;
	}
	r->flow = f->id;
	r->period = f->record;
	r->now = bpf_ktime_get_ns();
	r->length = a->length;
	r->acked = a->monitor.acked;
	r->lost = a->monitor.lost;
	r->rtt_min = a->last_rtt + a->way_back.standing;
	r->rtt_mean = r->rtt_min + a->signals.spread;
	r->srtt = a->monitor.srtt;
	r->base = a->guide.base;
	r->window = a->window;
	r->pacing = min(agent_pacing(p, a), (u64)sk->sk_max_pacing_rate);
	r->in_flight = a->monitor.in_flight;
	r->mss = a->mss;
	r->slot = f->id & (FLOWS - 1);
	r->ask = ask;
	r->signals = a->signals;
	UNROLL for (u32 i = 0; i < STATE; i++)
		r->state[i] = a->state[i];
	bpf_ringbuf_submit(r, 0);
	return 1;
}

/*
 * Carries out the agent's answer if there is a new one. A late one counts as long as the rules have not taken over, nor slow
 * start has begun again: an action that was wanted before a drain would disturb it, and what is said to a record that does
 * not ask only shows that the agent is there.
 */
static noinline int take_answer(struct flow *f, const struct policy *p)
{
	u32 slot = f->id & (FLOWS - 1), answer;
	struct action *a = bpf_map_lookup_elem(&actions, &slot);
	u64 before, flow, period, window;
	s64 action;

	if (!a || !p)
		return 0;
	/* The addition of nothing orders the reads around it on every processor. */
	before = __sync_fetch_and_add(&a->sequence, 0);
	if (before & 1 || before == f->sequence)
		return 0;
	flow = a->flow;
	period = a->period;
	action = a->action;
	window = a->window;
	answer = a->answer;
	if (__sync_fetch_and_add(&a->sequence, 0) != before || flow != f->id)
		return 0;
	f->sequence = before;
	f->answered = max(f->answered, period);
	if (f->reason || period < f->asked || f->agent.startup.running)
		return 0;
	if (answer == ANSWER_WINDOW) {
		agent_set_window(&f->agent, p, window);
		monitor_note_window(&f->agent.monitor, f->agent.window);
	} else {
		agent_act(p, &f->agent, action);
	}
	COUNT(actions, 1);
	return 0;
}

/* A monitoring period has ended: who drives the flow from now on, and what does the policy say? */
static inline void end_period(struct sock *sk, struct tcp_sock *tp, struct flow *f, const struct policy *p, u64 now)
{
	struct agent *a = &f->agent;
	struct control *c = the_control();
	u32 reason = judge(f, p), zero = 0;
	u64 base;
	struct counters *counted = bpf_map_lookup_elem(&counters, &zero);
	int ask;

	if (f->reason)
		a->window = (u64)tp->snd_cwnd * PACKET;
	ask = agent_end_period(p, a, now, agent_pacing(p, a), !f->reason);
	if (counted)
		__sync_fetch_and_add(&counted->periods, 1);
	if (reason || !c) {
		set_driver(sk, tp, f, reason);
		return;
	}
	if (c->decider == DECIDER_AGENT) {
		send_record(f, sk, p, ask && !f->reason);
		reason = f->record - f->answered > c->patience ? REASON_SILENT : REASON_NONE;
	}
	base = shortest_lately(&f->lately, now, a->last_rtt);
	if (!reason && base) {
		bool inside = is_inside(f, p, base);

		reason = f->reason == REASON_OUTSIDE ? REASON_OUTSIDE : REASON_NONE;
		if (inside == (reason == REASON_OUTSIDE))
			f->against++;
		else
			f->against = 0;
		if (!inside && f->against >= LEAVE_AFTER)
			reason = REASON_OUTSIDE;
		else if (inside && f->against >= RETURN_AFTER) {
			reason = REASON_NONE;
			agent_takes_for_base(a, now, base);
		}
	}
	if (reason != f->reason) {
		set_driver(sk, tp, f, reason);
		return;
	}
	if (reason || !ask || c->decider != DECIDER_KERNEL)
		return;
	f->decisions++;
	agent_act(p, a, network_action(p, a));
	if (counted) {
		u64 spent = bpf_ktime_get_ns() - now;

		__sync_fetch_and_add(&counted->decisions, 1);
		__sync_fetch_and_add(&counted->decision_ns, spent);
		if (spent > counted->decision_ns_max)
			counted->decision_ns_max = spent;
	}
}

/* An acknowledgement has come. */
static inline void drive(struct sock *sk, struct tcp_sock *tp, struct flow *f, const struct policy *p,
			 struct ack *ack, u32 lost)
{
	struct agent *a = &f->agent;
	struct control *c = the_control();

	if (!f->begun) {
		f->begun = 1;
		agent_begin(a, f->started, c ? c->clock : 0, (u64)tp->snd_cwnd * PACKET, tp->mss_cache);
		a->startup.next_round = ack->delivered;
		f->period_ends = ack->now + p->period;
	}
	f->last_ack = ack->now;
	a->mss = tp->mss_cache;
	if (f->reason) {
		/* Measuring goes on, for when the policy comes back. */
		a->monitor.lost += lost;
		agent_measure(a, p, ack);
	} else {
		if (lost)
			agent_on_loss(a, p, lost, ack->in_flight);
		agent_on_ack(a, p, ack);
	}
	if (c && c->decider == DECIDER_AGENT)
		take_answer(f, p);
	if (ack->now >= f->period_ends) {
		f->period_ends = ack->now + p->period;
		end_period(sk, tp, f, p, ack->now);
		view_end_period(f);
	}
}

#endif
