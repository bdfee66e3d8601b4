/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * One flow's measurements, start-up, rules and window: the integer twin of crates/policy/src/agent/mod.rs, but that
 * acknowledgements end periods here, and not a timer: one can last longer than it should, and its step is for that time
 * (agent_act), none is silent, and what is measured begins anew after any pause that is longer (agent_on_idle_restart). And after a
 * spurious timeout the window comes back, and nothing was lost (agent_on_spurious_timeout), which the twin leaves to slow start.
 */
#ifndef ASTRAEA_AGENT_H
#define ASTRAEA_AGENT_H

#include "guide.h"
#include "network.h"
#include "startup.h"
#include "state.h"
#include "way_back.h"

#define PACKET (1ull << 20)		/* a window of one packet */
#define INITIAL_WINDOW (10 * PACKET)
#define FLOOR (2 * PACKET)
#define GUIDED_FLOOR (PACKET / 10)
#define CAP (1000000 * PACKET)
#define REFERENCE_PERIOD (30 * MS)

static inline void agent_set_window(struct agent *a, const struct policy *p, u64 window)
{
	a->window = clamp(window, p->form == FORM_GUIDED ? GUIDED_FLOOR : FLOOR, CAP);
}

/* A flow that begins at `now` with this window. */
static inline void agent_begin(struct agent *a, u64 now, u64 clock, u64 window, u32 mss)
{
	a->window = max(window, FLOOR);
	a->mss = mss;
	a->guide.tick.ahead = clock;
	startup_begin(&a->startup);
	monitor_begin(&a->monitor, now);
}

/* The path has become longer while somebody else drove the flow, and this is its shortest round trip now. */
static inline void agent_takes_for_base(struct agent *a, u64 now, u64 base)
{
	a->monitor.lifetime_min = base;
	guide_believe(&a->guide, now, base);
}

static inline bool is_competing(const struct agent *a)
{
	return a->guide.mode == MODE_COMPETE;
}

static inline void leave_startup(struct agent *a, const struct policy *p, enum startup_exit exit, u64 rtt)
{
	u64 base = a->guide.base, window = a->window;

	if (exit == EXIT_LOSS) {
		agent_set_window(a, p, window / 2);
		return;
	}
	if (p->form == FORM_PAPER)
		return;
	if (rtt && base)
		window = mul_shr(window, min(ratio(base, rtt, 24), (u64)Q24), 24);
	if (p->form == FORM_GUIDED)
		window = part_of(window, p->rules.kept);
	agent_set_window(a, p, window);
}

/*
 * Whether the window is used in the period under way: once application or receiver have limited the flow, five sixths of it
 * have to be in flight, with one more for a packet that was lost. One that is not says nothing about the path, and does not grow.
 */
static inline bool is_used(const struct agent *a)
{
	return !a->monitor.app_limited || 6 * (a->monitor.most_in_flight + 1) * PACKET >= 5 * a->window;
}

/* A flow among many finds a queue that is enough for its rate long before a round trip shows it. */
noinline u64 enough_delay(const struct policy *p, const struct agent *a, u64 srtt)
{
	u64 rate;

	if (!p || !a || !srtt)
		return 0;
	rate = mul_shr(ratio(a->window >> 4, srtt, 24), SECOND, 24);
	return max(part_of(wanted_delay(&p->rules, rate), p->rules.early), 1ull);
}

/*
 * A sample of the round-trip time without the queue on the way back, or 0 for what was sent before the last timeout. A function
 * that the verifier reads once.
 */
noinline u64 sample_of(struct agent *a, const struct policy *p, u64 now, u64 rtt, u64 stamped)
{
	u64 back;

	if (!a || !p)
		return 0;
	back = p->form == FORM_GUIDED ? way_back_queue(&a->way_back, now, rtt, stamped) : 0;
	return rtt && less(now, rtt) >= a->timed_out ? max(less(rtt, back), 1ull) : 0;
}

/* What an acknowledgement tells of the path, whoever drives the flow. */
static inline void agent_measure(struct agent *a, const struct policy *p, struct ack *ack)
{
	ack->rtt = sample_of(a, p, ack->now, ack->rtt, ack->stamped);
	monitor_on_ack(&a->monitor, ack);
	if (ack->rtt)
		guide_on_sample(&a->guide, ack->now, ack->rtt);
}

static inline void agent_on_ack(struct agent *a, const struct policy *p, struct ack *ack)
{
	agent_measure(a, p, ack);
	if (a->startup.running) {
		enum startup_exit exit;

		if (!ack->app_limited && (p->form == FORM_PAPER || is_used(a)))
			agent_set_window(a, p, a->window + ack->acked * PACKET);
		if (p->form == FORM_GUIDED && ack->srtt)
			a->startup.enough = enough_delay(p, a, ack->srtt);
		exit = startup_on_ack(&a->startup, ack, p->form == FORM_PAPER ? 1 : p->rules.patience,
				      a->guide.base);
		if (exit)
			leave_startup(a, p, exit, ack->rtt);
		else if (a->window >= CAP)
			a->startup.running = 0;
	} else if (p->form == FORM_GUIDED && is_competing(a)) {
		compete_on_ack(&a->guide.compete, ack);
		agent_set_window(a, p, compete_window(&a->guide.compete));
	}
}

static inline void agent_on_loss(struct agent *a, const struct policy *p, u64 lost, u64 in_flight)
{
	a->monitor.lost += lost;
	a->monitor.in_flight = in_flight;
	if (a->startup.running && startup_on_loss(&a->startup, lost, p->form == FORM_PAPER))
		leave_startup(a, p, EXIT_LOSS, 0);
	if (p->form == FORM_GUIDED && is_competing(a)) {
		compete_on_loss(&a->guide.compete, &p->rules, lost);
		agent_set_window(a, p, compete_window(&a->guide.compete));
	}
}

/* A round trip with losses or marks begins, with so many packets in flight. */
static inline void agent_on_congestion(struct agent *a, const struct policy *p, bool mark, u64 flight)
{
	/* A mark is no accident; of losses agent_on_loss has judged. */
	if (a->startup.running && mark) {
		a->startup.running = 0;
		leave_startup(a, p, EXIT_LOSS, 0);
	}
	if (p->form != FORM_GUIDED || a->guide.mode < MODE_TEST)
		return;
	compete_on_congestion(&a->guide.compete, mark, flight);
	if (is_competing(a))
		agent_set_window(a, p, compete_window(&a->guide.compete));
	else
		a->guide.drain.back = compete_window(&a->guide.compete);
}

static inline void agent_on_timeout(struct agent *a, const struct policy *p, u64 now, u64 lost)
{
	a->restore = a->window;
	a->restore_running = a->startup.running;
	a->in_doubt += lost;
	a->monitor.in_flight = 0;
	a->startup.running = 0;
	a->window = FLOOR;
	guide_restart(&a->guide);
	if (p->form == FORM_GUIDED) {
		startup_begin(&a->startup);
		a->timed_out = now;
	}
}

/*
 * The timeout was spurious: what was before it comes back, if the window was larger. The second in a row had none left. Nor
 * was what it gave up lost: that would take a part of the window again as soon as the period ends.
 */
static inline void agent_on_spurious_timeout(struct agent *a)
{
	if (a->restore > a->window) {
		a->window = a->restore;
		a->startup.running = a->restore_running;
	}
	a->restore = 0;
	a->in_doubt = 0;
}

/*
 * There is data again after a pause that may have been longer than a timeout: what the window was says less with each second
 * (between RFC 5681 section 4.1 and RFC 7661: the flow is paced), so it is halved for each, and slow start finds out.
 */
static inline void agent_on_idle_restart(struct agent *a, u64 now, u64 idle, u64 rto)
{
	u64 halvings = idle > rto ? min(idle / SECOND, 60ull) : 0;

	monitor_begin(&a->monitor, now);
	if (!halvings)
		return;
	if (a->window > INITIAL_WINDOW)
		a->window = max(a->window >> halvings, INITIAL_WINDOW);
	startup_begin(&a->startup);
	a->guide.touched = now;
	guide_restart(&a->guide);
}

/*
 * Closes the monitoring period that ends at `now`. Returns whether the policy is to be asked. Unless the policy has `driven` the
 * flow there are measurements and no rules: those would judge what has become of a window that was never theirs.
 */
noinline int agent_end_period(const struct policy *p, struct agent *a, u64 now, u64 pacing, bool driven)
{
	struct period period;
	struct ended ended;
	int verdict = VERDICT_FOLLOW;
	u64 hold = 0;

	if (!p || !a)
		return 0;
	a->used = is_used(a);
	a->monitor.lost += a->in_doubt;
	a->in_doubt = 0;
	monitor_close(&a->monitor, now, &period);
	way_back_end_period(&a->way_back);
	a->length = period.length;
	if (period.rtt_min)
		a->last_rtt = period.rtt_min;
	monitor_signals(a, &period, a->guide.base);
	state_keep_to(p, a);
	if (p->form == FORM_PAPER)
		push_paper(p, a, &period, pacing);
	else if (a->last_rtt)
		push_backlog(p, a);
	if (a->startup.running && p->form == FORM_GUIDED && driven)
		hold = guide_arrives(&a->guide, &p->rules, period.rtt_min, a->way_back.standing, a->window);
	if (hold) {
		a->startup.running = 0;
		verdict = VERDICT_HOLD;
	} else if (a->startup.running || !a->last_rtt || !driven)
		verdict = VERDICT_LEAVE;
	else if (p->form == FORM_GUIDED) {
		ended.now = now;
		ended.length = period.length;
		ended.low = period.rtt_min;
		ended.srtt = a->monitor.srtt;
		ended.back = a->way_back.standing;
		ended.window = a->window;
		ended.used = a->used;
		/* Not below guide_end_period: the stacks of the deepest calls have 512 bytes together, and no more. */
		base_loss_count(&a->guide.base_loss, now, period.acked, period.lost);
		verdict = guide_end_period(p, a, &ended, &hold);
	}
	if (verdict == VERDICT_HOLD)
		agent_set_window(a, p, hold);
	monitor_note_window(&a->monitor, a->window);
	return verdict == VERDICT_FOLLOW;
}

/*
 * Carries out an action (Q24, -1 to 1). A step is meant for a reference period; a longer round trip spreads it over its
 * periods. A period can last longer than it should where acknowledgements are rare: then the step is for that time.
 */
noinline int agent_act(const struct policy *p, struct agent *a, s64 action)
{
	u64 length, part;
	s64 step;

	if (!p || !a)
		return 0;
	action = clamp(action, -(s64)Q24, (s64)Q24);
	if (p->form == FORM_PAPER) {
		u64 factor = Q24 + mul_q24(p->alpha, action < 0 ? -action : action);
		u64 window = min(a->window, CAP);

		agent_set_window(a, p, action < 0 ? ratio(window, factor, 24) : mul_shr(window, factor, 24));
	} else {
		length = clamp(a->length, p->period, 4 * p->period);
		part = min(ratio(length, REFERENCE_PERIOD, 24), ratio(length, max(a->monitor.srtt, 1ull), 24));
		step = mul_q24(p->alpha, action);
		if (p->form == FORM_GUIDED)
			step = rules_step(&p->rules, law_step(&a->guide.law, &p->rules, &a->signals, a->window), step, a->signals.loss);
		step = clamp(mul_q24(step, min(part, 64ull << 24)), -(s64)Q24 * 16, (s64)Q24 * 4);
		if (step < 0 || a->used)
			agent_set_window(a, p, mul_shr(a->window, exp_q30(step << 6), 30));
	}
	monitor_note_window(&a->monitor, a->window);
	return 0;
}

/*
 * PACKET where the law drives a window of so few packets that whole ones would change it by much, else 0. The pace keeps to
 * such a window, and one packet more may be in flight: three packets for 3.7 would be a fifth less than it says.
 */
noinline u64 agent_room(const struct policy *p, const struct agent *a)
{
	if (!p || !a)
		return 0;
	return p->form == FORM_GUIDED && !a->startup.running && !is_competing(a) && a->window <= p->rules.modest ? PACKET : 0;
}

/* How many whole packets may be in flight. */
static inline u32 agent_cwnd(const struct agent *a, u64 room)
{
	return (u32)(max(a->window + room, FLOOR) >> 20);
}

/* The pace in payload bytes/s, 0 before the first round trip. */
noinline u64 agent_pacing(const struct policy *p, const struct agent *a)
{
	u64 gain, srtt;

	if (!p || !a)
		return 0;
	/* In quarters. After an outage the average remembers the packet that waited through it. */
	gain = a->startup.running ? 8 : p->form == FORM_GUIDED && is_competing(a) ? 5 : 4;
	srtt = a->last_rtt ? min(a->monitor.srtt, 2 * (a->last_rtt + a->way_back.standing)) : a->monitor.srtt;
	if (!srtt)
		return 0;
	return mul_shr(ratio((a->window * a->mss >> 12) * gain, srtt, 20), SECOND, 30);
}

#endif
