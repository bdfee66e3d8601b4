/* SPDX-License-Identifier: Apache-2.0
 *
 * SHA-256 as FIPS 180-4 has it, for messages of a few hundred bytes: small rather than fast.
 */
#include "hmac_sha256.h"

#include <string.h>

struct hash {
	uint32_t state[8];
	uint64_t length;
	uint8_t block[64];
};

static const uint32_t K[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotated(uint32_t x, int by)
{
	return x >> by | x << (32 - by);
}

static void take_block(struct hash *hash)
{
	uint32_t w[64], s[8];
	for (int i = 0; i < 16; i++) {
		const uint8_t *b = hash->block + 4 * i;
		w[i] = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
	}
	for (int i = 16; i < 64; i++) {
		uint32_t a = w[i - 15], b = w[i - 2];
		w[i] = w[i - 16] + (rotated(a, 7) ^ rotated(a, 18) ^ a >> 3) + w[i - 7] +
		       (rotated(b, 17) ^ rotated(b, 19) ^ b >> 10);
	}
	memcpy(s, hash->state, sizeof(s));
	for (int i = 0; i < 64; i++) {
		uint32_t sigma1 = rotated(s[4], 6) ^ rotated(s[4], 11) ^ rotated(s[4], 25);
		uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
		uint32_t one = s[7] + sigma1 + choice + K[i] + w[i];
		uint32_t sigma0 = rotated(s[0], 2) ^ rotated(s[0], 13) ^ rotated(s[0], 22);
		uint32_t two = sigma0 + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
		memmove(s + 1, s, 7 * sizeof(*s));
		s[4] += one;
		s[0] = one + two;
	}
	for (int i = 0; i < 8; i++)
		hash->state[i] += s[i];
}

static void begin(struct hash *hash)
{
	static const uint32_t initial[8] = {
		0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
	};
	memcpy(hash->state, initial, sizeof(initial));
	hash->length = 0;
}

static void add(struct hash *hash, const uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		hash->block[hash->length++ % 64] = bytes[i];
		if (hash->length % 64 == 0)
			take_block(hash);
	}
}

static void finish(struct hash *hash, uint8_t digest[32])
{
	uint64_t bits = 8 * hash->length;
	uint8_t end[8];
	for (int i = 0; i < 8; i++)
		end[i] = (uint8_t)(bits >> (56 - 8 * i));
	add(hash, (const uint8_t *)"\x80", 1);
	while (hash->length % 64 != 56)
		add(hash, (const uint8_t *)"", 1);
	add(hash, end, sizeof(end));
	for (int i = 0; i < 32; i++)
		digest[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

void astraea_hmac_sha256(const uint8_t key[32], const uint8_t *message, size_t length, uint8_t tag[32])
{
	struct hash hash;
	uint8_t pad[64] = { 0 }, inner[32];
	memcpy(pad, key, 32);
	for (int i = 0; i < 64; i++)
		pad[i] ^= 0x36;
	begin(&hash);
	add(&hash, pad, sizeof(pad));
	add(&hash, message, length);
	finish(&hash, inner);
	for (int i = 0; i < 64; i++)
		pad[i] ^= 0x36 ^ 0x5c;
	begin(&hash);
	add(&hash, pad, sizeof(pad));
	add(&hash, inner, sizeof(inner));
	finish(&hash, tag);
}
