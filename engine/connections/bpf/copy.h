// Segments with data: one takes the place of the frame that it answers, if it fits there. Else, and where several are
// due, the kernel copies the frame, and a program writes a segment into each copy before it leaves.
#pragma once

#include "segment.h"

#define COPY 0xB588 // 88B5, an EtherType for local experiments (IEEE 802 section 9.2.3): no frame of ours has it
#define MOST_COPIES 4 // more than this for each frame of a batch overrun the ring of a veth

// What is to be sent: of a request or an answer the bytes from `from` to `to`, in segments of at most `most`.
struct part {
	__u32 from, to, most;
	__u32 body; // of the answer; the kind of object of a request
	__u16 ends; // whether the connection ends with what is asked, or what is answered
	__u16 is_last; // whether FIN follows
};

// What stands before the frame that is copied.
struct copy {
	__u8 addresses[2 * ETH_ALEN];
	__u16 type; // COPY
	__u16 count;
	__u32 burst;
	struct outgoing out;
	struct part part;
};

// The bursts of a CPU: copies leave it in their order.
struct bursts {
	__u32 begun, present, number;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bursts);
} bursts_map SEC(".maps");

// Has the frame copied as often as there are segments.
static __always_inline int send_copies(struct xdp_md *context, const struct part *part, const struct outgoing *out,
				       __u32 count)
{
	__u32 zero = 0;
	struct bursts *bursts = bpf_map_lookup_elem(&bursts_map, &zero);
	struct copy *copy;

	if (!bursts || bpf_xdp_adjust_head(context, -(int)sizeof(*copy)))
		return XDP_ABORTED;
	copy = (void *)(long)context->data;
	if ((void *)(copy + 1) > (void *)(long)context->data_end)
		return XDP_ABORTED;
	copy->type = COPY;
	copy->count = count;
	copy->burst = ++bursts->begun;
	copy->out = *out;
	copy->part = *part;
	if (count == 1)
		return bpf_redirect_map(&one_copy, 0, BPF_F_BROADCAST);
	if (count == 2)
		return bpf_redirect_map(&two_copies, 0, BPF_F_BROADCAST);
	return bpf_redirect_map(&four_copies, 0, BPF_F_BROADCAST);
}

// Reads what stands before a copy; whether this is one to be written. The last of a burst is the frame itself, which may
// be too small.
static __always_inline int read_copy(struct xdp_md *context, struct part *part, struct outgoing *out, int *verdict)
{
	struct copy *copy = (void *)(long)context->data;
	__u32 zero = 0;
	struct bursts *bursts = bpf_map_lookup_elem(&bursts_map, &zero);

	*verdict = XDP_PASS;
	if ((void *)(copy + 1) > (void *)(long)context->data_end || copy->type != COPY)
		return 0;
	*verdict = XDP_DROP;
	if (!bursts)
		return 0;
	if (copy->burst != bursts->present) {
		bursts->present = copy->burst;
		bursts->number = 0;
	}
	if (bursts->number >= copy->count)
		return 0;
	*out = copy->out;
	*part = copy->part;
	part->from += bursts->number++ * part->most;
	return !bpf_xdp_adjust_head(context, sizeof(*copy));
}
