// Frames of ours that another processor is to judge. The program in the driver's hook finds out whose a frame is, and
// hands what is ours over to the processor of a worker that only receives; the same program goes on there. What is not
// ours has never left the driver's path.
#pragma once

#include <bpf/bpf_tracing.h>

#include "owner.h"

// What a program does with a frame of ours.
enum role {
	JUDGE,
	HAND_OVER,
	JUDGE_HANDED_OVER,
};

// Set before the program is loaded: the worker's processor, which judges what is ours.
const volatile __u32 judging_processor SEC(".rodata.hand_over") = 0;

// By their numbers, as the kernel wants it; only that one is there.
struct {
	__uint(type, BPF_MAP_TYPE_CPUMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bpf_cpumap_val);
} processors SEC(".maps");

struct handed_over {
	__u64 refused; // The processor's queue was full.
	__u32 map; // The number of `processors`, by which the kernel tells of it.
	__u32 padding;
};

TABLE(handed_over, struct handed_over);

SEC("tp_btf/xdp_cpumap_enqueue")
int BPF_PROG(count_refused, int map, unsigned int processed, unsigned int drops, int processor)
{
	struct handed_over *counts = AT(handed_over, 0);

	(void)processed;
	(void)processor;
	if (counts && drops && counts->map == (__u32)map)
		__sync_fetch_and_add(&counts->refused, drops);
	return 0;
}

// When a frame came travels before its first byte. XDP_ABORTED where the driver leaves no room for it: the frame is then
// judged here.
static __always_inline int hand_over(struct xdp_md *context, __u64 came_ns)
{
	void *at = (void *)(long)context->data_meta;

	// A buffer that the kernel's sender used again may still have the room of its last frame.
	if (at + sizeof(came_ns) > (void *)(long)context->data) {
		if (bpf_xdp_adjust_meta(context, -(int)sizeof(came_ns)))
			return XDP_ABORTED;
		at = (void *)(long)context->data_meta;
		if (at + sizeof(came_ns) > (void *)(long)context->data)
			return XDP_ABORTED;
	}
	__builtin_memcpy(at, &came_ns, sizeof(came_ns));
	return bpf_redirect_map(&processors, judging_processor, XDP_ABORTED);
}

// When a frame that was handed over came. A function of its own: the compiler would use the address of the frame that is
// read here for its length too, and the verifier then loses sight of it.
static __noinline __u64 came_ns(struct xdp_md *context)
{
	void *at = (void *)(long)context->data_meta;
	__u64 time_ns = 0;

	if (at + sizeof(time_ns) <= (void *)(long)context->data)
		__builtin_memcpy(&time_ns, at, sizeof(time_ns));
	return time_ns;
}
