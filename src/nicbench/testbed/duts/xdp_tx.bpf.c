// SPDX-License-Identifier: Apache-2.0
// Sends every frame back out of the port that it came in on, with its MAC addresses swapped. The rest is not looked at.
//
// A frame to a group of stations is left to the kernel, for no frame may come from one (IEEE 802.3 section 3.2.3).
// Each port has a copy of this program with maps of its own.

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_helpers.h>

// xdp_tx.py has the names in this order.
enum fate {
    RETURNED = 0,
    MALFORMED,
    TO_A_GROUP,
    FATES,
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, FATES);
    __type(key, __u32);
    __type(value, __u64);
} frame_counts SEC(".maps");

static __always_inline void count(__u32 fate)
{
    __u64 *frames = bpf_map_lookup_elem(&frame_counts, &fate);

    if (frames)
        *frames += 1;
}

SEC("xdp")
int return_frame(struct xdp_md *context)
{
    void *end = (void *)(long)context->data_end;
    struct ethhdr *ethernet = (void *)(long)context->data;
    __u8 sender[ETH_ALEN];

    if ((void *)(ethernet + 1) > end) {
        count(MALFORMED);
        return XDP_PASS;
    }
    if (ethernet->h_dest[0] & 1) {
        count(TO_A_GROUP);
        return XDP_PASS;
    }
    __builtin_memcpy(sender, ethernet->h_source, ETH_ALEN);
    __builtin_memcpy(ethernet->h_source, ethernet->h_dest, ETH_ALEN);
    __builtin_memcpy(ethernet->h_dest, sender, ETH_ALEN);
    count(RETURNED);
    return XDP_TX;
}

char _license[] SEC("license") = "Apache-2.0";
