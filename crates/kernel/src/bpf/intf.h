/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * What the BPF program and Rust share. build.rs reads this file and writes the same for Rust, so it keeps to integer
 * constants, enums, and structs of integers, arrays and such structs.
 *
 * Units: times are nanoseconds, windows packets in Q20, rates packets/s in Q16, shares and steps Q24.
 */
#ifndef ASTRAEA_INTF_H
#define ASTRAEA_INTF_H

#include "types.h"

#define PERIODS 5	/* monitoring periods in a state */
#define STATE 40	/* numbers in a state at most */
#define LAYERS 4	/* layers of a network at most */
#define WIDTH 256	/* inputs and outputs of a layer at most */
#define UNITS 456	/* outputs of all layers at most: 256 + 128 + 64 + 8 */
#define WEIGHTS 51712	/* numbers with weights at most: the weights of 40-256-128-64-8 */
#define INTERFACE_MARK 0x61657274734121
#define FLOWS 4096	/* slots of the agent */

/* Which numbers a policy sees and what its action does: crates/policy/src/form.rs. */
enum form { FORM_PAPER, FORM_PURE, FORM_GUIDED };

/* An output of a layer: clamp((sum + bias) * scale / 2^shift, low, high). */
struct unit {
	__s64 bias;
	__s32 scale;
	__s32 shift;
	__s32 low;
	__s32 high;
};

/* Inputs and outputs are multiples of 8; `weights` and `units` say where the layer's begin. */
struct layer {
	__u32 inputs;
	__u32 outputs;
	__u32 weights;
	__u32 units;
};

/*
 * Weights lie as [block of 8 outputs][input][pair of outputs]; a pair is w0 + w1 * 2^32. For each output the sum of the
 * sizes of its weights times the largest input is below 2^31, so no half of a sum overflows into the other. In a wide
 * network sums have 64 bits, and weights lie as [block of 4 outputs][input][output].
 */
struct network {
	__u32 layers;
	__u32 inputs;
	__u32 wide;
	__s32 most;		/* size of an input, at most */
	__u32 input_scale[8];	/* units of each feature in one */
	struct layer layer[LAYERS];
	struct unit unit[UNITS];
	__s64 weight[WEIGHTS];
};

/* How soon and how far a flow leaps. */
struct stride {
	__u64 least;
	__s64 part;
	__s64 up;
};

/* The law and the rules: crates/policy/src/agent/rules.rs says what each means. */
struct rules {
	__s64 backlog;		/* packets, Q20 */
	__s64 per_reference;	/* 2^40 over the reference rate in packets/s */
	__s64 exponent;		/* of the wanted backlog, p, Q24 */
	__s64 resting;		/* p / (1 - p): of what it is where flows rest at a delay */
	__s64 gain;
	__u64 calm;
	__s64 calm_least;
	__s64 up;
	__s64 growth_left;
	__s64 random_loss;
	__s64 down;
	__s64 near_rest;
	__s64 loss;
	__s64 loss_most;
	__s64 burst;
	__s64 fair;
	__u64 level;
	__s64 hurry;
	__s64 hurry_after;
	__s64 hurry_near;
	__u64 patience;
	__s64 early;
	__s64 kept;
	__u64 modest;		/* packets, Q20 */
	__u64 newcomer;
	__s64 newcomer_least;
	__s64 newcomer_most;
	__s64 newcomer_short;

	__u64 losses_average;
	__s64 losses_burst;
	__s64 losses_gain;
	__s64 losses_most;
	__s64 losses_hurried;
	__s64 losses_seen;
	__s64 losses_depth;
	__u64 losses_settle;
	__u64 losses_rest;
	__s64 losses_unknown;
	__u64 losses_belief;	/* packets */
	__s64 losses_deviations;
	__u64 losses_counts;
	__s64 losses_unlike;

	__u64 crowd_average;
	__s64 crowd_seen;
	__s64 crowd_gain;

	__u64 leap_every;
	__s64 leap_loss;
	__s64 leap_high;
	__s64 leap_dead;
	__s64 leap_down;
	struct stride leap_old;
	__u64 leap_youth;
	struct stride leap_young;

	__u64 drain_rise;
	__s64 drain_rise_share;
	__u64 drain_average;
	__u64 drain_rest;
	__u64 drain_memory;
	__u64 tick;
	__u64 beat;
	__u64 echo;
	__u64 unseen;
	__u64 drain_length;
	__s64 drain_depth;
	__s64 tick_depth;
	__s64 drain_margin;
	__u64 drain_watch;
	__u64 drain_failures;
	__s64 doubtful;
	__u64 doubt;
	__u64 doubt_most;
	__s64 doubt_depth;

	__s64 pressure;
	__u64 pressed;
	__s64 shrunk;		/* its logarithm */
	__u64 pressed_shrunk;
	__s64 stayed;
	__u64 drains;
	__u64 strikes;
	__u64 former;		/* packets, Q20 */
	__s64 even;
	__s64 regained;
	__u64 test;
	__u64 first_test;
	__u64 test_length;
	__s64 empty;
	__u64 gone;
	__s64 like;
	__u64 neighbour_memory;
	__u64 immunity;
	__s64 lossy;
	__s64 per_loss;
};

/* Where a policy is trusted; outside, a flow runs CUBIC. */
struct domain {
	__u64 rtt_min;		/* base round-trip time */
	__u64 rtt_max;
	__u64 rate_max;
};

/* All that a decision needs: swapped as a whole. */
struct policy {
	__u8 name[32];
	__u64 hash;		/* of its file */
	__u64 interface;	/* hash of this header: a policy laid out by another version is not run */
	__u32 form;
	__u32 unused;
	__s64 alpha;
	__u64 period;
	struct domain domain;
	struct rules rules;
	struct network network;
};

/* What a flow takes from the path and what it finds there: crates/policy/src/backlog.rs. */
struct signals {
	__u64 rate;
	__u64 queue;
	__u64 ahead;
	__s64 loss;
	__s64 burst;
	__u64 spread;
};

/* Who decides, chosen when attaching and changeable at any time. */
enum decider { DECIDER_DETACHED, DECIDER_KERNEL, DECIDER_AGENT };

struct control {
	__u32 decider;
	__u32 patience;		/* periods that an agent may leave unanswered */
	__u64 clock;		/* time of day less the kernel's clock, modulo an hour, when this was written */
};

/* Why a flow runs CUBIC. */
enum reason {
	REASON_NONE,		/* it does not: the policy drives it */
	REASON_NO_POLICY,
	REASON_MISMATCH,	/* the policy is laid out for another version of this program */
	REASON_DETACHED,
	REASON_SILENT,		/* the agent does not answer */
	REASON_OUTSIDE,		/* the flow has left the domain of the policy */
	REASONS
};

/* Over all flows, since the program was loaded. */
struct counters {
	__u64 opened;
	__u64 failed;		/* flows without memory for their state: CUBIC for life */
	__u64 periods;
	__u64 decisions;
	__u64 decision_ns;
	__u64 decision_ns_max;
	__u64 actions;		/* of the agent, carried out */
	__u64 dropped;		/* records that found the ring full */
	__u64 timeouts;
	__u64 acked;		/* packets that arrived … */
	__u64 lost;		/* … and that were given up, as TCP finds them */
	__u64 fallbacks[REASONS];	/* changes to CUBIC, by reason */
	__u64 returns;		/* changes back to the policy */
};

/* A flow as `astraea status` lists it. */
struct view {
	__u64 flow;
	__u64 started;
	__u64 rate;
	__u64 srtt;
	__u64 base;
	__u64 window;
	__u64 decisions;
	__u64 acked;		/* packets since it began: that arrived, … */
	__u64 lost;		/* … and that were given up */
	__u32 reason;
	__u32 family;		/* 2: IPv4 in the first number, 10: IPv6 */
	__u32 address[4];
	__u32 local_port;
	__u32 port;
};

/* A flow's period, for the agent. */
struct record {
	__u64 flow;
	__u64 period;		/* number of this record, counted from 1 */
	__u64 now;
	__u64 length;
	__u64 acked;
	__u64 lost;
	__u64 rtt_min;		/* 0: no sample */
	__u64 rtt_mean;
	__u64 srtt;
	__u64 base;
	__u64 window;
	__u64 pacing;		/* bytes/s */
	__u32 in_flight;
	__u32 mss;
	__u32 slot;
	__u32 ask;		/* whether an action is wanted */
	struct signals signals;
	__s32 state[STATE];
};

/* What an answer is: an action that is added to the law, or a window. */
enum answer { ANSWER_ACTION, ANSWER_WINDOW };

/* The agent's answer. It makes `sequence` odd, writes the rest and makes it even again. */
struct action {
	__u64 sequence;
	__u64 flow;
	__u64 period;
	__s64 action;		/* Q24 */
	__u64 window;
	__u32 answer;
	__u32 unused;
};

/* What probe() does with one flow outside the network stack, for tests and measurements. */
enum probe_kind { PROBE_BEGIN, PROBE_ACK, PROBE_LOSS, PROBE_CONGESTION, PROBE_TIMEOUT, PROBE_SPURIOUS, PROBE_IDLE, PROBE_DECIDE };

#define PROBES 512

/* The arguments of an event, and what came of it. */
struct probe {
	__u64 now;
	__u64 clock;		/* of PROBE_BEGIN */
	__u64 rtt;
	__u64 srtt;
	__u64 stamped;
	__u64 value;
	__u32 kind;
	__u32 acked;
	__u32 in_flight;
	__u32 used;
	__u32 delivered;
	__u32 prior_delivered;
	__u32 app_limited;
	__u32 cwnd_limited;
	__u32 in_recovery;
	__s32 action;
	__u64 window;
	__u64 pacing;
	__u64 room;
	__u64 ns;
	__s32 state[STATE];	/* of PROBE_DECIDE: the state that is answered */
};

#endif
