/* SPDX-License-Identifier: Apache-2.0
 *
 * A flow of some periods, decided by a service:
 *
 *     cc -o example example.c astraea_client.c hmac_sha256.c -lm
 *     ./example unix:/run/astraea/serve.sock [PERIODS [TIMEOUT_MS [KEY]]]
 *
 * KEY is the shared key of a service on UDP, 64 hexadecimal digits. Prints one line per period: its number, the action, the
 * window, and who decided.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "astraea_client.h"

int main(int argc, char **argv)
{
	struct astraea_client client;
	struct astraea_flow flow = { .name = 1 };
	uint8_t key[32];
	int periods = argc > 2 ? atoi(argv[2]) : 10, timeout = argc > 3 ? atoi(argv[3]) : 30;

	for (size_t i = 0; argc > 4 && i < sizeof(key); i++)
		if (strlen(argv[4]) != 64 || sscanf(argv[4] + 2 * i, "%2" SCNx8, &key[i]) != 1)
			return fprintf(stderr, "example: key: expected 64 hexadecimal digits\n"), 2;
	if (argc < 2 || astraea_client_init(&client, argv[1], argc > 4 ? key : NULL, timeout) != 0)
		return fprintf(stderr, "example: expected an address, unix:PATH or udp:ADDRESS:PORT\n"), 2;
	if (astraea_client_connect(&client, 5000) != 0)
		return fprintf(stderr, "example: %s: no service answers\n", argv[1]), 2;

	double window = 60000;
	for (int period = 1; period <= periods; period++) {
		/* A path of 30 Mbit/s and 40 ms: what does not fit into it waits. */
		double rate = window / 1448 / 0.04, most = 30e6 / 8 / 1448, queue = 0;
		if (rate > most) {
			queue = (window - 30e6 / 8 * 0.04) / (30e6 / 8);
			rate = most;
		}
		struct astraea_report report = {
			.rate = rate,
			.queue = queue,
			.ahead = queue,
			.throughput = rate * 1448 * 8,
			.throughput_max = 30e6,
			.latency = 0.04 + queue,
			.latency_min = 0.04,
			.in_flight = window,
			.window = window,
			.pacing = window * 8 / (0.04 + queue),
			.srtt = 0.04 + queue,
		};
		struct astraea_decision decision = astraea_client_decide(&client, &flow, &report);
		printf("%d %.17g %.17g %s\n", period, decision.action, decision.window, decision.by_rule ? "rule" : "service");
		fflush(stdout);
		window = decision.window < 2 * 1448 ? 2 * 1448 : decision.window;
	}
	astraea_client_end(&client, &flow);
	astraea_client_close(&client);
	return 0;
}
