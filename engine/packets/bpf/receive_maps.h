// The maps of the receiving program. Each of them but the ring is memory of the engine too, which also sets its size.
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

TABLE(configuration, struct config);
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

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} events SEC(".maps");

#define AT(map, index) ({ __u32 key_of_map = (index); bpf_map_lookup_elem(&map, &key_of_map); })

// Copies the first bytes of a frame, at most as many as there is room for (a power of two).
static __always_inline int copy_frame(struct xdp_md *context, void *to, __u32 length, const __u32 room)
{
	__u32 bytes = length < room ? length : room;

	// The verifier must see the bounds, 1 to `room`, which the compiler takes for known. Linux 6.1 learns them from a
	// mask, and not from comparisons, of which the compiler makes one of the number less 1.
	asm volatile("" : "+r"(bytes));
	bytes = ((bytes - 1) & (room - 1)) + 1;
	return bpf_xdp_load_bytes(context, 0, to, bytes);
}

// Set before the program is loaded: time is what the configuration says.
const volatile __u32 is_test SEC(".rodata.settings") = 0;

// Who is at work: one receive queue, served by one processor at a time.
struct place {
	const struct config *config;
	struct shard *shard;
	__u32 number;
	__u32 length; // Of the frame.
	__u32 phase;
	__u64 now_ns; // Since the trial began.
};

static __always_inline void submit(struct shard *shard, const struct event *event)
{
	struct event *record = bpf_ringbuf_reserve(&events, sizeof(*record), 0);

	if (!record) {
		shard->events_lost++;
		return;
	}
	*record = *event;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}
