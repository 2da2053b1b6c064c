// Arithmetic that the instructions of BPF lack.
#pragma once

#include <linux/types.h>

struct wide {
	__u64 high, low;
};

static __always_inline struct wide product(__u64 left, __u64 right)
{
	__u64 left_low = (__u32)left, left_high = left >> 32;
	__u64 right_low = (__u32)right, right_high = right >> 32;
	__u64 low = left_low * right_low;
	__u64 middle = left_high * right_low + (low >> 32);
	__u64 cross = left_low * right_high + (__u32)middle;

	return (struct wide){ .high = left_high * right_high + (middle >> 32) + (cross >> 32), .low = left * right };
}

static __always_inline struct wide add_wide(struct wide one, struct wide other)
{
	__u64 low = one.low + other.low;

	return (struct wide){ .high = one.high + other.high + (low < one.low), .low = low };
}

static __always_inline struct wide subtract_wide(struct wide one, struct wide other)
{
	return (struct wide){ .high = one.high - other.high - (one.low < other.low), .low = one.low - other.low };
}

// SplitMix64's finaliser, as in packets/src/signature.rs.
static __always_inline __u64 scramble(__u64 value)
{
	__u64 mixed = value + 0x9E3779B97F4A7C15ULL;

	mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9ULL;
	mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EBULL;
	return mixed ^ mixed >> 31;
}

// The position of the highest bit of a number below 2^32, counted from 1; 0 of 0.
static __always_inline __u32 bits_of(__u32 number)
{
	__u32 bits = 0;

	if (number >> 16) {
		bits += 16;
		number >>= 16;
	}
	if (number >> 8) {
		bits += 8;
		number >>= 8;
	}
	if (number >> 4) {
		bits += 4;
		number >>= 4;
	}
	if (number >> 2) {
		bits += 2;
		number >>= 2;
	}
	if (number >> 1) {
		bits += 1;
		number >>= 1;
	}
	return bits + number;
}
