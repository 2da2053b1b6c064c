// Hands every buffer to one interface as it is.
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

char _license[] SEC("license") = "GPL";
