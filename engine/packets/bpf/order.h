// How a sequence number stands to those before it in its flow (src/flows.rs).
#pragma once

#include "intact.h"

#define BITS 64
#define NO_LATENCY 0xFFFFFFFFU

enum arrival { NEXT, AHEAD, LATE_IN_ORDER, TOO_OLD, DUPLICATE, IMPOSSIBLE, ALTERED_COPY };

struct observed {
	__u64 number; // AHEAD: how many were jumped over. LATE_IN_ORDER: the whole sequence.
	__u32 index; // The flow's line.
	__u32 arrival; // enum arrival, where it is not NEXT.
};

struct clearing {
	__u64 first;
	__u32 base, mask;
};

static long clear_word(__u32 step, struct clearing *clearing)
{
	__u64 *word = AT(rings, clearing->base + ((clearing->first + step) & clearing->mask));

	if (word)
		*word = 0;
	return 0;
}

// The block of 64 that holds the greatest sequence moves on: the bits of those before it go to the ring.
static __always_inline void enter_block(struct line *line, __u32 index, __u64 block)
{
	__u32 words = configuration.ring_words, base = index * words;
	struct clearing clearing = { .base = base, .mask = words - 1 };
	__u64 present, *word;

	if (!line->next)
		return;
	present = (line->next - 1) / BITS;
	if (block == present)
		return;
	word = AT(rings, base + (present & clearing.mask));
	if (word)
		*word = line->recent;
	line->recent = 0;
	clearing.first = present + 1;
	if (block > words && block - words > clearing.first)
		clearing.first = block - words;
	if (block > clearing.first)
		bpf_loop((__u32)(block - clearing.first), clear_word, &clearing, 0);
}

static __always_inline void add_hole(__u32 index, __u64 first, __u64 length, __u64 arrival)
{
	__u64 *count = AT(hole_counts, index);
	__u32 capacity = configuration.holes;
	struct hole *hole;

	if (!count || !capacity)
		return;
	hole = AT(holes, index * capacity + (__u32)(*count % capacity));
	if (!hole)
		return;
	hole->first = (__u32)first;
	hole->length = length < 0xFFFFFFFF ? length : 0xFFFFFFFF;
	hole->arrival = arrival + 1;
	*count += 1;
}

// When the hole of a sequence was opened, counted from 1; 0: it is not known any more.
VERIFIED_ONCE __u64 opened_at(__u32 index, __u32 sequence)
{
	__u64 *count = AT(hole_counts, index), low, high;
	__u32 capacity = configuration.holes;

	if (!count || !capacity)
		return 0;
	high = *count;
	low = high > capacity ? high - capacity : 0;
	for (__u32 step = 0; step < 14 && low < high; step++) {
		__u64 middle = low + (high - low) / 2;
		struct hole *hole = AT(holes, index * capacity + (__u32)(middle % capacity));
		__u32 distance;

		if (!hole)
			return 0;
		distance = sequence - hole->first;
		if (distance < hole->length)
			return hole->arrival;
		if ((__s32)distance < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return 0;
}

// The first of a block of 64, and everything that is not in its place.
VERIFIED_ONCE int observe_rare(struct line *line, __u32 sequence, struct observed *observed)
{
	__u64 full, block, present, jumped, bit, *word;
	__u32 ring_words = configuration.ring_words;
	__s64 ahead;

	if (!line || !observed)
		return IMPOSSIBLE;
	ahead = (__s32)(sequence - (__u32)line->next);
	full = line->next + ahead;
	if (ahead < 0 && line->next < (__u64)-ahead)
		return IMPOSSIBLE;
	block = full / BITS;
	bit = 1ULL << (full % BITS);
	if (ahead >= 0) {
		enter_block(line, observed->index, block);
		jumped = full - line->next;
		if (jumped) {
			add_hole(observed->index, line->next, jumped, line->received);
			line->last_latency_ns = NO_LATENCY;
		}
		line->recent |= bit;
		line->next = full + 1;
		observed->number = jumped;
		return jumped ? AHEAD : NEXT;
	}
	present = (line->next - 1) / BITS;
	if (present - block > ring_words)
		return TOO_OLD;
	word = AT(rings, observed->index * ring_words + (__u32)(block & (ring_words - 1)));
	if (block == present)
		word = &line->recent;
	if (!word)
		return TOO_OLD;
	if (*word & bit)
		return DUPLICATE;
	*word |= bit;
	observed->number = full;
	return LATE_IN_ORDER;
}

static __always_inline int observe(struct line *line, __u32 sequence, struct observed *observed)
{
	__u64 place = line->next % BITS;

	if (sequence == (__u32)line->next && place) {
		line->recent |= 1ULL << place;
		line->next++;
		return NEXT;
	}
	return observe_rare(line, sequence, observed);
}
