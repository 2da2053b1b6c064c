// Frames that the engine keeps for people to look at (src/capture.rs): the first ones, or those around a jump. Of the
// latter a receive queue has a copy of its last ones, until it is known whether they are asked for.
#pragma once

#include "owner.h"

static __always_inline void hand_to_engine(struct shard *shard, struct frame_event *kept)
{
	__u32 bytes = kept->event.numbers[1] < FRAME_BYTES ? kept->event.numbers[1] : FRAME_BYTES;

	// From 1 to FRAME_BYTES, as the verifier must see.
	asm volatile("" : "+r"(bytes));
	bytes = ((bytes - 1) & (FRAME_BYTES - 1)) + 1;
	if (bpf_ringbuf_output(&events, kept, sizeof(kept->event) + bytes, BPF_RB_NO_WAKEUP))
		shard->events_lost++;
}

// Keeps a frame, and hands it to the engine where it is one of the first, or comes after a jump.
VERIFIED_ONCE int capture(struct xdp_md *context, const struct place *place)
{
	__u32 room = configuration.capture_around + 1;
	struct frame_event *kept;
	struct shard *shard;

	if (!place || !room)
		return 0;
	shard = AT(shards, place->number);
	if (!shard)
		return 0;
	kept = AT(history, place->number * room + (__u32)(shard->seen % room));
	if (!kept)
		return 0;
	kept->event.kind = CAPTURED;
	kept->event.shard = place->number;
	kept->event.stream = 0;
	kept->event.flow = 0;
	kept->event.numbers[0] = place->now_ns;
	kept->event.numbers[1] = place->length;
	kept->event.numbers[2] = 0;
	kept->event.numbers[3] = 0;
	if (copy_frame(context, kept->bytes, place->length, FRAME_BYTES))
		return 0;
	shard->seen++;
	if (shard->captured < configuration.capture_frames)
		shard->captured++;
	else if (shard->wanted)
		shard->wanted--;
	else
		return 0;
	shard->handed_over = shard->seen;
	hand_to_engine(shard, kept);
	return 0;
}

struct handing {
	__u64 first;
	__u32 shard, room;
};

static long hand_over_next(__u32 step, struct handing *handing)
{
	struct shard *shard = AT(shards, handing->shard);
	struct frame_event *kept =
		AT(history, handing->shard * handing->room + (__u32)((handing->first + step) % handing->room));

	if (shard && kept)
		hand_to_engine(shard, kept);
	return 0;
}

// The frame kept last jumped over sequences of its flow: those before it are wanted, and as many after it.
VERIFIED_ONCE int capture_around(const struct place *place, const struct signature *signature, __u64 jumped)
{
	struct event event = { .kind = JUMPED };
	struct handing handing = {};
	struct shard *shard;

	if (!place || !signature)
		return 0;
	shard = AT(shards, place->number);
	handing.room = configuration.capture_around + 1;
	if (!shard || !handing.room)
		return 0;
	handing.shard = place->number;
	handing.first = shard->seen > handing.room ? shard->seen - handing.room : 0;
	if (handing.first < shard->handed_over)
		handing.first = shard->handed_over;
	bpf_loop((__u32)(shard->seen - handing.first), hand_over_next, &handing, 0);
	shard->handed_over = shard->seen;
	shard->wanted = configuration.capture_around;
	event.shard = place->number;
	event.flow = signature->flow;
	event.numbers[0] = signature->sequence;
	event.numbers[1] = jumped;
	submit(place, &event);
	return 0;
}
