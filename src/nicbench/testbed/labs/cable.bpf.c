// A cable in place of the DUT: every frame goes out of the other port unchanged.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

// The interface index of the other port; 0 until it is set.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} cable_peer SEC(".maps");

SEC("xdp")
int cable(struct xdp_md *context)
{
	(void)context;
	__u32 first = 0;
	__u32 *peer = bpf_map_lookup_elem(&cable_peer, &first);

	if (!peer || !*peer)
		return XDP_DROP;
	return bpf_redirect(*peer, 0);
}

char _license[] SEC("license") = "GPL";
