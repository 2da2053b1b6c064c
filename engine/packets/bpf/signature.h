// The signature of a frame, as src/signature.rs writes and reads it.
#pragma once

#include <linux/types.h>

#define SIGNATURE_BYTES 16
#define TIME_MASK ((1ULL << 40) - 1)
#define EARLIEST_NS (1ULL << 36)

struct keys {
	__u64 first;
	__u64 second;
};

struct signature_words {
	__u64 front;
	__u64 lower;
};

// The two halves of a product of 128 bits, combined by exclusive or.
static __always_inline __u64 fold(__u64 left, __u64 right)
{
	__u64 left_low = (__u32)left, left_high = left >> 32;
	__u64 right_low = (__u32)right, right_high = right >> 32;
	__u64 low = left_low * right_low;
	__u64 middle = left_high * right_low + (low >> 32);
	__u64 cross = left_low * right_high + (__u32)middle;
	__u64 high = left_high * right_high + (middle >> 32) + (cross >> 32);

	return high ^ (left * right);
}

static __always_inline __u32 mix(const struct keys *keys, __u32 upper, __u64 lower)
{
	__u64 inner = fold(lower ^ keys->first, ((__u64)upper ^ keys->second) | 1ULL << 63);
	__u64 outer = fold(inner ^ keys->second, 0xE7037ED1A0B428DBULL ^ ((__u64)upper << 32));

	return (__u32)(outer ^ outer >> 32);
}

static __always_inline struct signature_words sign(const struct keys *keys, __u32 mark, __u32 flow, __u32 sequence,
						   __u64 time_ns)
{
	__u32 upper = (flow & 0x00FFFFFF) | (__u32)((time_ns & TIME_MASK) >> 32) << 24;
	__u64 lower = (__u64)sequence | time_ns << 32;
	__u32 check = mix(keys, upper, lower) ^ mark;

	return (struct signature_words){ .front = (__u64)check | (__u64)upper << 32, .lower = lower };
}
