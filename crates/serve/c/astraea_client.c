/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "astraea_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "hmac_sha256.h"

enum { HEADER = 32, TAG = 16, NUMBERS = 15, REPORT = 8 * NUMBERS, LONGEST = HEADER + 16 + ASTRAEA_HISTORY * REPORT + TAG };
enum kind { HELLO = 1, WELCOME, ASK, ANSWER, REFUSE, END };
enum { REFUSED_SESSION = 1, RETRY_MS = 20 };

_Static_assert(sizeof(struct astraea_report) == REPORT, "a report is its numbers");

static int64_t now_ms(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static void put(uint8_t *at, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get(const uint8_t *at, int bytes)
{
	uint64_t value = 0;
	for (int i = 0; i < bytes; i++)
		value |= (uint64_t)at[i] << (8 * i);
	return value;
}

static void put_double(uint8_t *at, double value)
{
	uint64_t bits;
	memcpy(&bits, &value, 8);
	put(at, bits, 8);
}

static double get_double(const uint8_t *at)
{
	uint64_t bits = get(at, 8);
	double value;
	memcpy(&value, &bits, 8);
	return value;
}

/* CRC-32 of a message, the checksum itself counting as zero. */
static uint32_t checksum(const uint8_t *message, size_t length)
{
	uint32_t crc = UINT32_MAX;
	for (size_t i = 0; i < length; i++) {
		crc ^= i >= 8 && i < 12 ? 0 : message[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

static void lose(struct astraea_client *client)
{
	if (client->socket >= 0)
		close(client->socket);
	client->socket = -1;
	client->session = 0;
	client->filled = 0;
}

/* Sends a message whose body begins at message + HEADER. Returns its number. */
static uint64_t send_message(struct astraea_client *client, enum kind kind, uint8_t *message, size_t body)
{
	size_t length = HEADER + body;
	uint64_t number = ++client->number;
	memcpy(message, "ASTR", 4);
	message[4] = 1;
	message[5] = (uint8_t)kind;
	put(message + 6, length + (client->has_key ? TAG : 0), 2);
	put(message + 12, (uint64_t)client->has_key, 4);
	put(message + 16, client->session, 8);
	put(message + 24, number, 8);
	put(message + 8, checksum(message, length), 4);
	if (client->has_key) {
		uint8_t tag[32];
		astraea_hmac_sha256(client->key, message, length, tag);
		memcpy(message + length, tag, TAG);
		length += TAG;
	}
	if (client->socket < 0)
		return number;
	ssize_t sent = send(client->socket, message, length, MSG_DONTWAIT | MSG_NOSIGNAL);
	/* Of a datagram nothing or all is sent; a stream of which only a part was cannot go on. */
	if (client->is_stream && sent != (ssize_t)length)
		lose(client);
	return number;
}

static int parse(const char *address, struct sockaddr_storage *target, socklen_t *length)
{
	memset(target, 0, sizeof(*target));
	if (strncmp(address, "unix:", 5) == 0) {
		struct sockaddr_un *un = (struct sockaddr_un *)target;
		const char *path = address + 5;
		if (*path == 0 || strlen(path) >= sizeof(un->sun_path))
			return -1;
		un->sun_family = AF_UNIX;
		strcpy(un->sun_path, path);
		*length = sizeof(*un);
		return 0;
	}
	char host[64];
	const char *colon = strrchr(address, ':');
	if (strncmp(address, "udp:", 4) != 0 || colon <= address + 4 || (size_t)(colon - address - 4) >= sizeof(host))
		return -1;
	char *end;
	long port = strtol(colon + 1, &end, 10);
	if (*end != 0 || end == colon + 1 || port < 1 || port > UINT16_MAX)
		return -1;
	size_t bytes = (size_t)(colon - address - 4);
	memcpy(host, address + 4, bytes);
	host[bytes] = 0;
	struct sockaddr_in *in = (struct sockaddr_in *)target;
	if (inet_pton(AF_INET, host, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons((uint16_t)port);
		*length = sizeof(*in);
		return 0;
	}
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)target;
	if (host[0] != '[' || host[bytes - 1] != ']')
		return -1;
	host[bytes - 1] = 0;
	if (inet_pton(AF_INET6, host + 1, &in6->sin6_addr) != 1)
		return -1;
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons((uint16_t)port);
	*length = sizeof(*in6);
	return 0;
}

int astraea_client_init(struct astraea_client *client, const char *address, const uint8_t *key, int timeout_ms)
{
	struct sockaddr_storage target;
	socklen_t length;
	memset(client, 0, sizeof(*client));
	client->socket = -1;
	if (strlen(address) >= sizeof(client->address) || parse(address, &target, &length) != 0)
		return -1;
	strcpy(client->address, address);
	client->is_stream = target.ss_family == AF_UNIX;
	client->has_key = key != NULL && !client->is_stream;
	if (client->has_key)
		memcpy(client->key, key, sizeof(client->key));
	client->timeout_ms = timeout_ms;
	return getrandom(&client->token, sizeof(client->token), 0) == sizeof(client->token) ? 0 : -1;
}

/* Connects and greets if that is due. */
static void greet(struct astraea_client *client)
{
	if (client->session != 0 || now_ms() < client->greet_at)
		return;
	client->greet_at = now_ms() + RETRY_MS;
	if (client->socket < 0) {
		struct sockaddr_storage target;
		socklen_t length;
		if (parse(client->address, &target, &length) != 0)
			return;
		int type = client->is_stream ? SOCK_STREAM : SOCK_DGRAM;
		/* Blocking, it would wait for as long as a service that has stopped accepts nobody. */
		int found = socket(target.ss_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		if (found < 0)
			return;
		if (connect(found, (struct sockaddr *)&target, length) != 0) {
			close(found);
			return;
		}
		client->socket = found;
	}
	uint8_t message[HEADER + 8 + TAG];
	put(message + HEADER, client->token, 8);
	send_message(client, HELLO, message, 8);
}

/* The body of a message if it is whole, unchanged and authentic; else NULL. */
static const uint8_t *open_message(const struct astraea_client *client, const uint8_t *message, size_t length)
{
	static const uint8_t bodies[] = { [WELCOME] = 48, [ANSWER] = 40, [REFUSE] = 16 };
	if (length < HEADER || get(message + 12, 4) != (uint64_t)client->has_key)
		return NULL;
	if (client->has_key) {
		uint8_t tag[32], differ = 0;
		if (length < HEADER + TAG)
			return NULL;
		length -= TAG;
		astraea_hmac_sha256(client->key, message, length, tag);
		for (int i = 0; i < TAG; i++)
			differ |= tag[i] ^ message[length + (size_t)i];
		if (differ)
			return NULL;
	}
	uint8_t kind = message[5];
	if (kind >= sizeof(bodies) || bodies[kind] == 0 || length != (size_t)HEADER + bodies[kind])
		return NULL;
	return checksum(message, length) == get(message + 8, 4) ? message + HEADER : NULL;
}

/* Takes a welcome. */
static void welcomed(struct astraea_client *client, const uint8_t *message, const uint8_t *body)
{
	struct astraea_terms found = {
		.definition = get(body + 8, 8),
		.version = get(body + 16, 8),
		.alpha = get_double(body + 24),
		.period_ns = get(body + 32, 8),
		.form = (enum astraea_form)get(body + 40, 1),
	};
	const struct astraea_terms *known = &client->terms;
	int same = found.definition == known->definition && found.alpha == known->alpha && found.period_ns == known->period_ns;
	if (get(body, 8) != client->token || get(body + 40, 8) > ASTRAEA_GUIDED || !(found.alpha > 0 && found.alpha <= 1))
		return;
	/* Another kind of policy than before is not for the flows that there are. */
	if (client->has_terms && !same)
		return;
	client->terms = found;
	client->has_terms = 1;
	client->session = get(message + 16, 8);
}

/* What is asked for, and whether it has been answered. */
struct asked {
	const struct astraea_flow *flow;
	uint64_t number;
	int answered, refused;
	struct astraea_decision decision;
};

static void take(struct astraea_client *client, struct asked *asked, const uint8_t *message, size_t length)
{
	const uint8_t *body = open_message(client, message, length);
	if (body == NULL)
		return;
	int ours = client->session != 0 && get(message + 16, 8) == client->session;
	if (message[5] == WELCOME && client->session == 0) {
		welcomed(client, message, body);
		return;
	}
	if (asked == NULL || !ours || get(message + 24, 8) != asked->number)
		return;
	if (get(body, 8) != asked->flow->name || get(body + 8, 4) != asked->flow->period)
		return;
	if (message[5] == ANSWER) {
		double action = get_double(body + 16);
		if (!(action >= -1 && action <= 1))
			return;
		asked->answered = 1;
		asked->decision = (struct astraea_decision){ action, get_double(body + 24), get(body + 32, 8), 0 };
	} else if (message[5] == REFUSE && get(body + 12, 4) == REFUSED_SESSION) {
		client->session = 0; /* it has forgotten us: greet at once, and ask again */
		client->greet_at = 0;
	} else if (message[5] == REFUSE) {
		asked->refused = 1;
	}
}

/* Waits for something to come, at most until then, and takes it. */
static void receive(struct astraea_client *client, struct asked *asked, int64_t until)
{
	int64_t wait = until - now_ms();
	if (client->session == 0 && client->greet_at - now_ms() < wait)
		wait = client->greet_at - now_ms();
	struct pollfd ready = { .fd = client->socket, .events = POLLIN };
	/* Without a socket this only waits. */
	if (poll(&ready, 1, wait > 0 ? (int)wait : 0) <= 0)
		return;
	ssize_t got = recv(client->socket, client->input + client->filled, sizeof(client->input) - client->filled, MSG_DONTWAIT);
	if (!client->is_stream) {
		if (got >= HEADER && memcmp(client->input, "ASTR\1", 5) == 0 && get(client->input + 6, 2) == (uint64_t)got)
			take(client, asked, client->input, (size_t)got);
		return;
	}
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		lose(client);
		return;
	}
	client->filled += (size_t)got;
	size_t used = 0;
	while (client->filled - used >= 8) {
		const uint8_t *message = client->input + used;
		size_t length = get(message + 6, 2);
		if (memcmp(message, "ASTR\1", 5) != 0 || length < HEADER || length > LONGEST) {
			lose(client); /* no telling where the next message begins */
			return;
		}
		if (client->filled - used < length)
			break;
		take(client, asked, message, length);
		used += length;
	}
	memmove(client->input, client->input + used, client->filled - used);
	client->filled -= used;
}

int astraea_client_connect(struct astraea_client *client, int patience_ms)
{
	int64_t until = now_ms() + patience_ms;
	while (client->session == 0) {
		greet(client);
		receive(client, NULL, until);
		if (client->session == 0 && now_ms() >= until)
			return -1;
	}
	return 0;
}

void astraea_client_note(struct astraea_flow *flow, const struct astraea_report *report)
{
	memmove(flow->reports, flow->reports + 1, (ASTRAEA_HISTORY - 1) * sizeof(*report));
	flow->reports[ASTRAEA_HISTORY - 1] = *report;
	flow->period++;
}

static uint64_t ask(struct astraea_client *client, struct astraea_flow *flow)
{
	uint8_t message[LONGEST];
	if (flow->session != client->session)
		flow->confirmed = 0; /* this service knows nothing of it */
	flow->session = client->session;
	uint32_t count = flow->period - flow->confirmed;
	if (count > ASTRAEA_HISTORY)
		count = ASTRAEA_HISTORY;
	put(message + HEADER, flow->name, 8);
	put(message + HEADER + 8, flow->period, 4);
	put(message + HEADER + 12, count, 4);
	for (uint32_t i = 0; i < count; i++) {
		double numbers[NUMBERS];
		memcpy(numbers, &flow->reports[ASTRAEA_HISTORY - count + i], sizeof(numbers));
		for (uint32_t j = 0; j < NUMBERS; j++)
			put_double(message + HEADER + 16 + i * REPORT + 8 * j, numbers[j]);
	}
	return send_message(client, ASK, message, 16 + (size_t)count * REPORT);
}

struct astraea_decision astraea_client_decide(struct astraea_client *client, struct astraea_flow *flow,
					      const struct astraea_report *report)
{
	int64_t until = now_ms() + client->timeout_ms;
	struct asked asked = { .flow = flow };
	uint64_t asked_in = 0;
	astraea_client_note(flow, report);
	do {
		greet(client);
		if (client->session != 0 && client->session != asked_in) {
			asked_in = client->session;
			asked.number = ask(client, flow);
		}
		receive(client, &asked, until);
	} while (!asked.answered && !asked.refused && now_ms() < until);
	if (!asked.answered)
		return astraea_rule(&client->terms, report);
	flow->confirmed = flow->period;
	return asked.decision;
}

void astraea_client_end(struct astraea_client *client, const struct astraea_flow *flow)
{
	uint8_t message[HEADER + 8 + TAG];
	put(message + HEADER, flow->name, 8);
	if (client->session != 0)
		send_message(client, END, message, 8);
}

void astraea_client_close(struct astraea_client *client)
{
	lose(client);
}

struct astraea_decision astraea_rule(const struct astraea_terms *terms, const struct astraea_report *report)
{
	double wanted = fmax(10 * sqrt(report->rate / 2777), 1e-3);
	double error = 1 - report->rate * report->ahead / wanted - fmin(30 * report->loss, 0.6);
	double law = fmin(fmax(0.1 * error, -0.1), 0.025);
	if (report->burst > 0.05)
		law += 0.5 * log(1 - fmin(report->burst, 0.95));
	struct astraea_decision decision = { .by_rule = 1 };
	if (terms->form != ASTRAEA_GUIDED)
		decision.action = fmin(fmax(law / terms->alpha, -1), 1);
	double step = terms->alpha * decision.action;
	if (terms->form == ASTRAEA_PAPER) {
		decision.window = step >= 0 ? report->window * (1 + step) : report->window / (1 - step);
		return decision;
	}
	double period = (double)terms->period_ns / 1e9;
	double part = fmin(period / 0.03, period / fmax(report->srtt, 1e-9));
	decision.window = report->window * exp(((terms->form == ASTRAEA_GUIDED ? law : 0) + step) * part);
	return decision;
}
