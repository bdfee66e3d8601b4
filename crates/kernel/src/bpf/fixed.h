/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Arithmetic without floating point. Q24 is a signed number in units of 2^-24, and so on.
 *
 * Nothing here divides signed numbers or needs more than 64 bits: BPF has neither.
 */
#ifndef ASTRAEA_FIXED_H
#define ASTRAEA_FIXED_H

#include "types.h"

#define Q24 (1 << 24)
#define Q30 (1ll << 30)
#define LN2_Q24 11629080
#define LN2_Q30 744261118ll

/* ln(1 + i/32) and 2^(i/32), Q30. */
static const u32 LN_TABLE[32] = {
	0, 33040817, 65095192, 96220323, 126468572, 155887996, 184522808, 212413774,
	239598564, 266112055, 291986604, 317252283, 341937090, 366067135, 389666807, 412758919,
	435364845, 457504636, 479197128, 500460037, 521310048, 541762891, 561833416, 581535654,
	600882877, 619887653, 638561895, 656916903, 674963409, 692711611, 710171213, 727351448
};
static const u32 EXP_TABLE[32] = {
	1073741824, 1097253708, 1121280436, 1145833280, 1170923762, 1196563654, 1222764986, 1249540052,
	1276901417, 1304861917, 1333434672, 1362633090, 1392470869, 1422962010, 1454120821, 1485961921,
	1518500250, 1551751076, 1585730000, 1620452965, 1655936265, 1692196547, 1729250827, 1767116489,
	1805811301, 1845353420, 1885761398, 1927054196, 1969251188, 2012372174, 2056437387, 2101467502
};

#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define clamp(x, low, high) min(max(x, low), high)

/* The same for signed numbers, without a branch: the verifier follows one path instead of three. */
static inline s64 bounded(s64 x, s64 low, s64 high)
{
	s64 above = x - low, negative = above >> 63;

	OPAQUE(negative);
	above = low + (above & ~negative) - high;
	negative = above >> 63;
	OPAQUE(negative);
	return high + (above & negative);
}

/* An index of a table, in a way that the verifier sees its bounds whatever the compiler knows. */
static inline u32 masked(u64 x, u32 mask)
{
	OPAQUE(x);
	return (u32)x & mask;
}

/* What `a` exceeds `b` by, or 0. */
static inline u64 less(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

/* a * b / 2^shift with a product of 128 bits, for a shift of 1 to 63. */
static inline u64 mul_shr(u64 a, u64 b, u32 shift)
{
	u64 a0 = (u32)a, a1 = a >> 32, b0 = (u32)b, b1 = b >> 32;
	u64 middle = a0 * b1 + ((a0 * b0) >> 32);
	u64 low, high = a1 * b1 + (middle >> 32);

	middle = a1 * b0 + (u32)middle;
	high += middle >> 32;
	low = (middle << 32) | (u32)(a0 * b0);
	return (high << (64 - shift)) | (low >> shift);
}

/* a * 2^shift / b for a, b < 2^(64 - shift), b > 0. */
static inline u64 ratio(u64 a, u64 b, u32 shift)
{
	return ((a / b) << shift) + ((a % b) << shift) / b;
}

/* The product of two numbers of which one is Q24; it must fit into 63 bits before the shift. */
static inline s64 mul_q24(s64 a, s64 b)
{
	return (a * b) >> 24;
}

/* Place of the highest bit of x > 0. */
static inline u32 log2_floor(u64 x)
{
	u32 place = 0;

	if (x >> 32) { place += 32; x >>= 32; }
	if (x >> 16) { place += 16; x >>= 16; }
	if (x >> 8) { place += 8; x >>= 8; }
	if (x >> 4) { place += 4; x >>= 4; }
	if (x >> 2) { place += 2; x >>= 2; }
	return place + (u32)(x >> 1);
}

/* ln(x / 2^fraction) in Q24 for x > 0; off by less than 2^-22. */
noinline s64 ln_q(u64 x, s32 fraction)
{
	u32 place = log2_floor(x);
	/* 1 <= m < 2 in Q30; its five highest bits choose an entry, and 1 + t is what is left: t < 1/32. */
	u64 m = place > 30 ? x >> (place - 30) : x << (30 - place);
	u32 i = masked(m >> 25, 31);
	u64 base = (1ull << 30) + ((u64)i << 25);
	s64 t = ((m - base) << 30) / base;
	s64 t2 = (t * t) >> 30, t3 = (t2 * t) >> 30, t4 = (t3 * t) >> 30;
	s64 ln = (s64)LN_TABLE[i] + t - (t2 >> 1) + mul_shr(t3, Q30 / 3, 30) - (t4 >> 2);

	return ((s64)place - fraction) * LN2_Q24 + (ln >> 6);
}

/* e^x in Q30 for x in Q30, -32 <= x < 22; relative error below 2^-25. */
noinline u64 exp_q30(s64 x)
{
	/* x = (whole + i/32) ln 2 + rest */
	u64 shifted = (u64)(x + 47 * LN2_Q30);
	u64 whole = shifted / LN2_Q30, part = shifted % LN2_Q30;
	u32 i = masked((part << 5) / LN2_Q30, 31);
	u64 rest = part - ((u64)i * LN2_Q30 >> 5);
	u64 r2 = (rest * rest) >> 30, r3 = (r2 * rest) >> 30;
	u64 e = mul_shr(EXP_TABLE[i], Q30 + rest + r2 / 2 + r3 / 6, 30);

	return whole >= 47 ? e << (whole - 47) : e >> (47 - whole);
}

/* The root of x, both with `fraction` bits below the point. */
noinline u64 root_q(u64 x, s32 fraction)
{
	if (!x)
		return 0;
	return mul_shr(exp_q30(ln_q(x, fraction) << 5), 1ull << fraction, 30);
}

/* tanh of a Q24 number in Q24. */
noinline s64 tanh_q24(s64 x)
{
	u64 size = min((u64)(x < 0 ? -x : x), (u64)10 << 24);
	u64 e = exp_q30(-((s64)size << 7)); /* e^(-2 size) */
	s64 y = (((u64)Q30 - e) << 24) / (Q30 + e);

	return x < 0 ? -y : y;
}

/* Nanoseconds as seconds in Q30. */
static inline u64 seconds_q30(u64 ns)
{
	return mul_shr(ns, 1152921505, 30); /* 2^60 / 10^9 */
}

#endif
