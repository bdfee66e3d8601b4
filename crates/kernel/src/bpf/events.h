/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* One event of a flow, as a value: the same for the BPF program and its native twin. */
#ifndef ASTRAEA_EVENTS_H
#define ASTRAEA_EVENTS_H

#include "agent.h"

/* Feeds an event to a flow and writes what came of it. Periods are asked for, not timed. */
static inline void take_event(struct agent *a, const struct policy *p, struct probe *e)
{
	struct ack ack;

	switch (e->kind) {
	case PROBE_BEGIN:
		agent_begin(a, e->now, e->clock, e->value, e->acked);
		a->startup.next_round = e->delivered;
		break;
	case PROBE_ACK:
		ack.now = e->now;
		ack.rtt = e->rtt;
		ack.srtt = e->srtt;
		ack.stamped = e->stamped;
		ack.acked = e->acked;
		ack.in_flight = e->in_flight;
		ack.used = e->used;
		ack.delivered = e->delivered;
		ack.prior_delivered = e->prior_delivered;
		ack.app_limited = e->app_limited;
		ack.cwnd_limited = e->cwnd_limited;
		ack.in_recovery = e->in_recovery;
		agent_on_ack(a, p, &ack);
		break;
	case PROBE_LOSS:
		agent_on_loss(a, p, e->value, e->in_flight);
		break;
	case PROBE_CONGESTION:
		agent_on_congestion(a, p, e->value, e->in_flight);
		break;
	case PROBE_TIMEOUT:
		agent_on_timeout(a, p, e->now, e->value);
		break;
	case PROBE_SPURIOUS:
		agent_on_spurious_timeout(a);
		break;
	case PROBE_IDLE:
		agent_on_idle_restart(a, e->now, e->value, e->rtt);
		break;
	case PROBE_DECIDE:
		/* A period ends; without a time only the network is asked, for the state that comes with the event. */
		if (!e->now) {
			UNROLL for (u32 i = 0; i < STATE; i++)
				a->state[i] = e->state[i];
			e->action = network_action(p, a);
			return;
		}
		if (agent_end_period(p, a, e->now, agent_pacing(p, a), true)) {
			e->action = network_action(p, a);
			agent_act(p, a, e->action);
		}
		UNROLL for (u32 i = 0; i < STATE; i++)
			e->state[i] = a->state[i];
		break;
	}
	e->window = a->window;
	e->pacing = agent_pacing(p, a);
	e->room = agent_room(p, a);
}

#endif
