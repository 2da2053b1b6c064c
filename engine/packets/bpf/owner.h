// Whose frame it is, by its signature (src/signature.rs).
#pragma once

#include "headers.h"

#define MARK_FACTOR 0x9E3779B1U
#define MARK_INVERSE 0x0E8B2F51U
#define EARLIER_TRIALS (1U << 10)

enum owner { NOBODY, OURS, EARLIER };

struct signature {
	__u32 flow, sequence;
	__u64 time_ns;
};

static __always_inline enum owner read_signature(const struct config *config, __u64 front, __u64 lower,
						  struct signature *signature)
{
	__u32 upper = front >> 32, mark = (__u32)front ^ mix(&config->keys, upper, lower), trial;

	signature->flow = upper & 0x00FFFFFF;
	signature->sequence = (__u32)lower;
	signature->time_ns = lower >> 32 | (__u64)(upper >> 24) << 32;
	if (mark == config->mark)
		return OURS;
	trial = mark * MARK_INVERSE;
	trial = (trial ^ trial >> 16) * MARK_INVERSE;
	if (trial >= 1 && trial < config->trial && config->trial - trial <= EARLIER_TRIALS)
		return EARLIER;
	return NOBODY;
}

static __always_inline enum owner owner_at(struct xdp_md *context, const struct config *config, __u32 offset,
					    struct signature *signature)
{
	__u64 words[2];

	if (offset >= NOWHERE || bpf_xdp_load_bytes(context, offset, words, sizeof(words)))
		return NOBODY;
	return read_signature(config, words[0], words[1], signature);
}

// Looks where the streams of the trial put their signatures, then where the headers lead.
static __noinline enum owner look_elsewhere(struct xdp_md *context, const struct place *place,
					    struct signature *signature)
{
	const struct config *config = place->config;
	enum owner owner;

	for (__u32 number = 1; number < MOST_OFFSETS; number++) {
		if (number >= config->offsets)
			break;
		owner = owner_at(context, config, config->offset[number], signature);
		if (owner != NOBODY)
			return owner;
	}
	copy_front(context, place);
	owner = owner_at(context, config, plain_offset(place->shard, place->length), signature);
	if (owner == NOBODY)
		owner = owner_at(context, config, payload_offset(place->shard, place->length), signature);
	if (owner == NOBODY && config->is_carried)
		owner = owner_at(context, config, carried_offset(place->shard, place->length), signature);
	return owner;
}
