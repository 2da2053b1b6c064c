// Hands every frame of a queue to the AF_XDP socket of that queue: what DPDK's driver attaches to an interface.
//
// The program that comes with libxdp is attached to drivers that run XDP programs themselves, and to no others.

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define MOST_QUEUES 1024

struct {
    __uint(type, BPF_MAP_TYPE_XSKMAP);
    __uint(max_entries, MOST_QUEUES);
    __type(key, __u32);
    __type(value, __u32);
} xsks_map SEC(".maps"); // the name under which DPDK looks for it

SEC("xdp")
int redirect(struct xdp_md *frame)
{
    return bpf_redirect_map(&xsks_map, frame->rx_queue_index, XDP_PASS);
}

char _license[] SEC("license") = "Dual BSD/GPL";
