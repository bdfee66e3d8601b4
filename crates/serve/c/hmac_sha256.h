/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASTRAEA_HMAC_SHA256_H
#define ASTRAEA_HMAC_SHA256_H

#include <stddef.h>
#include <stdint.h>

/* HMAC-SHA256 (RFC 2104, FIPS 180-4) of a message under a key of 32 bytes. */
void astraea_hmac_sha256(const uint8_t key[32], const uint8_t *message, size_t length, uint8_t tag[32]);

#endif
