// Hands every buffer to one interface: as it is, or with the bytes of a frame written into it.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} target SEC(".maps");

SEC("xdp")
int bare(struct xdp_md *context)
{
	(void)context;
	return bpf_redirect_map(&target, 0, XDP_DROP);
}

const volatile __u64 frame[8] = {};

SEC("xdp")
int same_bytes(struct xdp_md *context)
{
	__u64 *to = (void *)(long)context->data;
	__u32 *last = (void *)(to + 7);

	if ((void *)(last + 1) > (void *)(long)context->data_end)
		return XDP_DROP;
	for (int word = 0; word < 7; word++)
		to[word] = frame[word];
	*last = frame[7];
	return bpf_redirect_map(&target, 0, XDP_DROP);
}

char _license[] SEC("license") = "GPL";
