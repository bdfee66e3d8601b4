/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* State of one flow. Read by build.rs too, see intf.h. */
#ifndef ASTRAEA_FLOW_H
#define ASTRAEA_FLOW_H

#include "intf.h"

#define ENDS 64		/* ends of periods that are remembered; a power of two */

/* Sums since the flow started, at the end of a period, and the window from then on. */
struct total {
	__u64 time;
	__u64 acked;
	__u64 lost;
	__u64 window;
};

struct monitor {
	__u64 acked;
	__u64 lost;
	__u64 in_flight;
	__u64 most_in_flight;	/* over the period, before acknowledgements */
	__u64 srtt;
	__u64 rtt_sum;
	__u64 rtt_count;
	__u64 rtt_min;		/* over the period; 0: no sample */
	__u64 lifetime_min;	/* 0: no sample */
	__u32 closed;		/* ends of periods so far */
	__u32 app_limited;	/* whether application or receiver have ever limited the flow */
	struct total ends[ENDS];
};

/* A closed period; round-trip times are 0 if there was no sample. */
struct period {
	__u64 length;
	__u64 rtt_min;
	__u64 rtt_mean;
	__u64 acked;
	__u64 lost;
};

struct startup {
	__u32 running;
	__u32 queued;
	__u64 lost;
	__u64 acked;
	__u64 enough;		/* a delay that ends it though it is below the threshold; 0: none */
	__u32 next_round;	/* packets delivered at which the round ends */
	__u32 unused;
};

/* Those up to CAUSE_TICK watch on where they have not shown the base. */
enum cause { CAUSE_RISE, CAUSE_CLOCK, CAUSE_TICK, CAUSE_TEST, CAUSE_DOUBT, CAUSE_LOSS };

struct drain {
	__u32 cause;
	__u32 unused;
	__u64 until;
	__u64 judge;
	__u64 give_up;
	__u64 hold;
	__u64 back;
	__u64 start;
	__u64 before;
	__u64 wanted;		/* queueing delay at the rate of the start */
	__u64 own;		/* queueing delay that this flow itself keeps up during a test */
	__u64 low;
	__u64 high;
	__u64 shortest;		/* the two smallest round trips since it began: others may have begun theirs before */
	__u64 second;
	__u64 spread;
	__u64 lossy;
};

/* CUBIC (RFC 9438), windows in Q20; an epoch that starts at 0 has not begun. */
struct cubic {
	__u64 cwnd;
	__u64 ssthresh;
	__u64 w_max;
	__u64 cwnd_prior;
	__u64 epoch;
	__u64 k;		/* ns until the cubic reaches w_max */
	__u64 w_est;
	__u64 last_ack;
};

/* Packets between round trips with losses, Q20: the average of those that are over, and the one that is not. */
struct loss_intervals {
	__u64 mean;
	__u64 open;
	__u64 count;
};

/* Mean of round-trip times, or of queueing delays. */
struct mean {
	__u64 sum;
	__u64 count;
};

/* The queue when the drains of a flow's like show, and else, since the clock has struck: crates/policy/src/agent/beat.rs. */
struct beat {
	struct mean drained;
	struct mean rest;
	__u64 last_drained;	/* means of both from one strike to the next; 0: not known */
	__u64 last_rest;
};

struct compete {
	struct cubic cubic;
	struct loss_intervals losses;
	__u64 steadfast;	/* window; 0: CUBIC's counts */
	__u64 peak;
	__u64 tested;
	__u64 plateau_delay;
	__u64 plateau_since;
	__u64 plateau_window;
	__u32 confirmed;
	__u32 alone;		/* tests in a row since then that found nobody */
};

struct suspicion {
	__u64 pressed;
	__u64 pressed_at;
	__s64 yielded;
	__u64 last_window;
	__u64 reference;
	__u64 in_vain;		/* drains that left the queue as it was, since one has emptied it */
	__u64 strikes_in_vain;	/* drains by the time of day that did, one after the other */
	__u64 level;
	__u64 past_ended;	/* 0: there was no competition */
	__u64 past_peak;
	__u64 past_window;
	__u64 immune_until;
	__u64 immunity;
};

/* What speaks against the base round-trip time that is known; a patience of 0 is the rules'. */
struct doubt {
	__u64 lasted;
	__u64 patience;
	__u64 base;
};

/* What the path loses whatever is sent; shares of lost packets. */
struct base_loss {
	__s64 average;		/* of all that is lost */
	__u64 from;		/* when the last count did; 0: there was none */
	__u64 lost;		/* packets that it has counted since then, and all */
	__u64 all;
	__u64 found[2];		/* what the last two allow for; 0: not counted yet */
	__u64 held[2];		/* packets lost, and all, when the last count was over, and from then to the next */
	__u64 free[2];
	__u64 counted[2];	/* packets lost, and all, of every count, the longer ago the less: Q24 */
	__s64 certain;		/* share that those leave no doubt of */
};

/* What is lost over a long time. */
struct crowd {
	__s64 average;		/* share of lost packets, Q32 */
};

/* How long a path has shown no queue, and what is known of its end. */
struct hurry {
	__s64 idle_rounds;	/* Q24 */
	__u64 brink;		/* window with which packets were lost at the end; 0: not known */
};

/* The level around which queue and loss move while the law is followed. */
struct law {
	struct hurry hurry;
	__s64 level_queue;
	__s64 level_loss;
	__u64 level_known;
	__s64 excess;		/* what losses beyond the base loss add to the law's error */
	__s64 crowding;		/* how much it is one of a crowd: it wants the backlog over 1 and this */
	__s64 certain;		/* share of packets that the path certainly loses by itself: no part of a burst */
};

/* The clock as a flow hears it. */
struct tick {
	__u64 ahead;		/* time of day less the kernel's clock, modulo an hour */
	__u64 began;		/* time of day at the start of the last period; 0: there was none before it */
	__u64 ended;		/* and at its end; 0: there was none */
};

/* The round trips of a flow that begins: what it found (the least and the most of it), and what it met since slow start had
 * ended (0: it has not). */
struct newcomer {
	struct mean found;
	__u64 least;
	__u64 most;
	struct mean since;
	__u64 settled;
};

/* The queue since the last leap or drain, over periods in which the law was followed: crates/policy/src/agent/leap.rs. */
struct leap {
	__s64 queue;		/* average queueing delay */
	__u64 lasted;
};

/* MODE_TEST is a drain that interrupts a competition. */
enum mode { MODE_FOLLOW, MODE_DRAIN, MODE_TEST, MODE_COMPETE };

struct guide {
	__u32 mode;
	__u32 failures;
	__u64 base;		/* 0: no sample */
	__u64 touched;
	__u64 last_base;	/* the base when the last period ended */
	__u64 room;		/* 0: not known */
	__s64 average;
	__u64 risen;		/* whether the queue has, since the last drain began */
	__u64 drained;		/* when that was over */
	__u64 last_drain;
	__u64 undisturbed_drain;	/* that and the average when the drain under way began */
	__s64 undisturbed_average;
	struct law law;
	struct suspicion suspicion;
	struct doubt doubt;
	struct base_loss base_loss;
	struct crowd crowd;
	struct tick tick;
	struct beat beat;
	struct newcomer newcomer;
	struct leap leap;
	struct drain drain;
	struct compete compete;
};

/* The papers' quantities over the flow's life: crates/policy/src/state.rs. */
struct paper {
	__u64 throughput;
	__u64 throughput_max;
	__u64 latency;
	__u64 latency_min;
};

/* How long acknowledgements take to come, beyond the shortest time: crates/policy/src/agent/way_back.rs. */
struct way_back {
	__u64 arrived;		/* the first one; 0: there was none */
	__u64 began;		/* when the receiver sent it */
	__s64 shortest;		/* clocks' difference included */
	__u64 grown;		/* until when it has grown for the clocks' drift */
	__u64 least;		/* shortest queue of the period */
	__u64 seen;		/* whether there was an acknowledgement in it */
	__u64 standing;		/* shortest queue of the last period with one */
};

struct agent {
	__u64 window;
	__u64 last_rtt;
	__u64 restore;		/* window before the last timeout, for when it was spurious … */
	__u64 restore_running;	/* … and whether slow start was running */
	__u64 timed_out;	/* when that was */
	__u64 in_doubt;		/* packets that it gave up, until a period has ended and it was not found to be spurious */
	__u32 mss;
	__u32 known;		/* whether there is a period in the state */
	__u64 length;		/* of the last period */
	__u64 used;		/* whether the window was, in it */
	__u64 encoding;		/* what the numbers of the state mean */
	struct signals signals;
	struct monitor monitor;
	struct startup startup;
	struct way_back way_back;
	struct guide guide;
	struct paper paper;
	__s32 state[STATE];
	/* Working memory of the network: the flow's own, since a decision in a process can be interrupted by another's. */
	__s32 x[2*WIDTH];	/* what goes into a layer and what comes out, in turns */
};

/* What an acknowledgement tells. */
struct ack {
	__u64 now;
	__u64 rtt;		/* 0: no sample */
	__u64 srtt;
	__u64 stamped;		/* when the receiver sent it, by its clock; 0: not known */
	__u32 acked;
	__u32 in_flight;	/* after it */
	__u32 used;		/* in flight before it */
	__u32 delivered;	/* since the flow started, packets */
	__u32 prior_delivered;	/* when the newest packet acknowledged was sent */
	__u32 app_limited;	/* by the application, or by the receiver's window */
	__u32 cwnd_limited;
	__u32 in_recovery;
};

#endif
