// The maps of the receiving program. Each of them but the ring is memory of the engine too, which also sets its size.
//
// Functions that are VERIFIED_ONCE are global: the verifier looks at each by itself, for all arguments, and not again at
// every call of it in every state (static ones took a second or more, and most of what the verifier allows). So they take
// no pointers but the context and whole structures, which they must compare with NULL, and give back numbers; what they
// are given holds no pointers either.
#pragma once

#include "receive.h"

#define TABLE(name, kind)                                \
	struct {                                         \
		__uint(type, BPF_MAP_TYPE_ARRAY);        \
		__uint(map_flags, BPF_F_MMAPABLE);       \
		__uint(max_entries, 1);                  \
		__type(key, __u32);                      \
		__type(value, kind);                     \
	} name SEC(".maps")

struct config configuration SEC(".data.configuration");
struct repetition repetition SEC(".data.repetition");
struct card_clock card_clock SEC(".data.card_clock");

TABLE(streams, struct stream);
TABLE(lengths, __u64);
TABLE(shards, struct shard);
TABLE(lines, struct line);
TABLE(rings, __u64);
TABLE(hole_counts, __u64);
TABLE(holes, struct hole);
TABLE(tallies, struct tally);
TABLE(histograms, struct histogram_block);
TABLE(series, struct interval);
TABLE(history, struct frame_event);

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} events SEC(".maps");

#define VERIFIED_ONCE __attribute__((noinline))

#define AT(map, index) ({ __u32 key_of_map = (index); bpf_map_lookup_elem(&map, &key_of_map); })

// Copies the first bytes of a frame, at most as many as there is room for (a power of two).
static __always_inline int copy_frame(struct xdp_md *context, void *to, __u32 length, const __u32 room)
{
	__u32 bytes = length < room ? length : room;

	// From 1 to `room`, which every verifier understands: Linux 6.1 learns nothing from a comparison with 0.
	asm volatile("" : "+r"(bytes));
	return bpf_xdp_load_bytes(context, 0, to, ((bytes - 1) & (room - 1)) + 1);
}

// Constants while the program is verified, which leaves out what they do not ask for.
const volatile struct settings settings SEC(".rodata.settings") = {};

// Who is at work: one receive queue, served by one processor at a time.
struct place {
	__u64 now_ns; // Since the trial began.
	__u64 quiet_ns; // Since the DUT's core was last found shared.
	__u32 number;
	__u32 length; // Of the frame.
	__u32 phase;
	__u32 padding;
};

static __always_inline void count_lost_event(const struct place *place)
{
	struct shard *shard = AT(shards, place->number);

	if (shard)
		shard->events_lost++;
}

static __always_inline void submit(const struct place *place, const struct event *event)
{
	struct event *record = bpf_ringbuf_reserve(&events, sizeof(*record), 0);

	if (!record) {
		count_lost_event(place);
		return;
	}
	*record = *event;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}
