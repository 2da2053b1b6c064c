// SPDX-License-Identifier: Apache-2.0
// Lets every frame through. On a veth its mere presence switches the receive queue that redirected frames need on.

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("xdp")
int pass(__attribute__((unused)) struct xdp_md *context)
{
    return XDP_PASS;
}

char _license[] SEC("license") = "Apache-2.0";
