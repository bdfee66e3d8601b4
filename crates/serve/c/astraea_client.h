/* SPDX-License-Identifier: Apache-2.0
 *
 * Asking an inference service (`astraea serve`) for decisions, from C.
 *
 * The caller owns all memory and nothing is allocated. A client belongs to one thread. Where the service does not answer
 * in time a local rule decides, and the next period is asked for again. docs/protocol.md specifies the messages.
 *
 *     cc -c astraea_client.c hmac_sha256.c        (link with -lm)
 */
#ifndef ASTRAEA_CLIENT_H
#define ASTRAEA_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Periods that a service can be told at once: all that a state is made of. */
#define ASTRAEA_HISTORY 5

/* One monitoring period of one flow, in SI units; bytes and bits are those of the payload. A period without an
 * acknowledgement repeats throughput and latency. Before the first round trip there is nothing to report. */
struct astraea_report {
	double rate;           /* packets acknowledged per second over about a round trip */
	double queue;          /* queueing delay: smallest round-trip time less the base one */
	double ahead;          /* queueing delay expected once the last window has had its effect */
	double loss;           /* share of packets lost, over as long as 200 packets need */
	double burst;          /* share of packets lost over the time of rate, if at least four; else 0 */
	double spread;         /* mean less smallest round-trip time */
	double throughput;     /* bits acknowledged per second of the period ... */
	double throughput_max; /* ... and the most of the flow's life */
	double latency;        /* mean round-trip time of the period ... */
	double latency_min;    /* ... and the smallest of the flow's life */
	double lost;           /* bits declared lost per second of the period */
	double in_flight;      /* bytes in flight at the end of the period */
	double window;         /* window in bytes at the end of the period */
	double pacing;         /* pacing rate in bit/s at the end of the period */
	double srtt;           /* smoothed round-trip time */
};

enum astraea_form { ASTRAEA_PAPER, ASTRAEA_PURE, ASTRAEA_GUIDED };

/* What a service serves. */
struct astraea_terms {
	uint64_t definition; /* hash of what the policy sees */
	uint64_t version;    /* version of the policy */
	double alpha;        /* action scale */
	uint64_t period_ns;  /* monitoring period */
	enum astraea_form form;
};

struct astraea_decision {
	double action;    /* -1 to 1 */
	double window;    /* what it makes of the reported window, in bytes; floor and cap are the caller's */
	uint64_t version; /* version of the policy */
	int by_rule;      /* the service did not answer: the local rule decided */
};

/* A flow; begin with {.name = ...}. Names are the client's own. */
struct astraea_flow {
	uint64_t name;
	uint64_t session;
	uint32_t period, confirmed;
	struct astraea_report reports[ASTRAEA_HISTORY];
};

/* A client; its members are nobody else's business. */
struct astraea_client {
	char address[128];
	uint8_t key[32];
	int has_key, timeout_ms, socket, is_stream;
	uint64_t token, session, number;
	int64_t greet_at;
	int has_terms;
	struct astraea_terms terms;
	uint8_t input[4096];
	size_t filled;
};

/* A client for "unix:PATH" or "udp:ADDRESS:PORT" (numbers, IPv4 or [IPv6]). key: 32 bytes for a service that wants them on
 * UDP, or NULL. timeout_ms: how long an answer may take, a monitoring period. Returns 0, or -1 if the address is none. */
int astraea_client_init(struct astraea_client *client, const char *address, const uint8_t *key, int timeout_ms);

/* Waits until there is a session. Returns 0, or -1 if there is none within patience_ms. Needed once: what a service serves
 * has to be known before the first decision. */
int astraea_client_connect(struct astraea_client *client, int patience_ms);

/* Reports a period for which no decision is wanted. */
void astraea_client_note(struct astraea_flow *flow, const struct astraea_report *report);

/* Reports a period and waits for the decision, of the service or, after the timeout, of the rule. */
struct astraea_decision astraea_client_decide(struct astraea_client *client, struct astraea_flow *flow,
					      const struct astraea_report *report);

/* Tells the service that a flow has ended. */
void astraea_client_end(struct astraea_client *client, const struct astraea_flow *flow);

/* Ends the connection. */
void astraea_client_close(struct astraea_client *client);

/* The rule: the flow keeps a few packets of its own in the queue and gives way to losses. */
struct astraea_decision astraea_rule(const struct astraea_terms *terms, const struct astraea_report *report);

#ifdef __cplusplus
}
#endif

#endif
