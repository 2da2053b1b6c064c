// The sink that calibrates the tester: every frame ends here, at the far end of the link, before the DUT sees it.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("xdp")
int sink(struct xdp_md *context)
{
	(void)context;
	return XDP_DROP;
}

char _license[] SEC("license") = "GPL";
