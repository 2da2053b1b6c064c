// Whose frame it is, by its signature (src/signature.rs).
#pragma once

#include "headers.h"

#define MARK_FACTOR 0x9E3779B1U
#define MARK_INVERSE 0x0E8B2F51U
#define EARLIER_TRIALS (1U << 10)
#define LEARNING (1U << 30)

enum owner { NOBODY, OURS, EARLIER };

struct signature {
	__u32 flow, sequence;
	__u64 time_ns;
};

static __always_inline enum owner read_signature(__u64 front, __u64 lower, struct signature *signature)
{
	__u32 upper = front >> 32, mark = (__u32)front ^ mix(&configuration.keys, upper, lower), trial;

	signature->flow = upper & 0x00FFFFFF;
	signature->sequence = (__u32)lower;
	signature->time_ns = lower >> 32 | (__u64)(upper >> 24) << 32;
	if (mark == configuration.mark)
		return OURS;
	trial = mark * MARK_INVERSE;
	trial = (trial ^ trial >> 16) * MARK_INVERSE;
	if (trial >= 1 && trial < configuration.trial && configuration.trial - trial <= EARLIER_TRIALS)
		return EARLIER;
	if (trial - LEARNING < EARLIER_TRIALS)
		return EARLIER;
	return NOBODY;
}

static __always_inline int owner_at(struct xdp_md *context, __u32 offset, struct signature *signature)
{
	__u64 words[2];

	if (offset >= NOWHERE || bpf_xdp_load_bytes(context, offset, words, sizeof(words)))
		return NOBODY;
	return read_signature(words[0], words[1], signature);
}

// Looks where the streams of the trial put their signatures, then where the headers lead.
VERIFIED_ONCE int look_elsewhere(struct xdp_md *context, const struct place *place, struct signature *signature)
{
	struct shard *shard;
	int owner;

	if (!place || !signature)
		return NOBODY;
	shard = AT(shards, place->number);
	if (!shard)
		return NOBODY;
	for (__u32 number = 1; number < MOST_OFFSETS; number++) {
		if (number >= configuration.offsets)
			break;
		owner = owner_at(context, configuration.offset[number], signature);
		if (owner != NOBODY)
			return owner;
	}
	copy_front(context, shard, place->length);
	owner = owner_at(context, plain_offset(shard, place->length), signature);
	if (owner == NOBODY)
		owner = owner_at(context, payload_offset(shard, place->length), signature);
	if (owner == NOBODY && configuration.is_carried)
		owner = owner_at(context, carried_offset(shard, place->length), signature);
	return owner;
}
