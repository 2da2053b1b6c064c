// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Forwards IP packets between the DUT's ports by the kernel's own route table, in the driver's hook.
//
// As a router does (RFC 1812 section 5.2.1): hop limit lowered, header checksum updated (RFC 1624), MAC addresses of the
// next hop. The sum of the header is not verified: one that was wrong stays wrong. Tags of VLANs stay as they are. What
// the program cannot forward it leaves to the kernel, which answers or drops it, and counts why.
//
// Each port has a copy of this program with maps of its own.

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define ADDRESS_FAMILY_IPV4 2 // AF_INET and AF_INET6: their header is not for the bpf target
#define ADDRESS_FAMILY_IPV6 10
#define FLOW_INFORMATION bpf_htonl(0x0fffffff)
#define MAXIMUM_TAGS 2
#define MAXIMUM_PORTS 64
#define HEADER_WORDS 5 // of IPv4 without options

struct tag {
    __be16 identifier;
    __be16 type;
};

// What became of a frame: up to LOOKUP_RESULTS what bpf_fib_lookup gives (0 is success), the program's own reasons after
// them. xdp_forward.py has the names in this order.
enum fate {
    FORWARDED = 0,
    LOOKUP_RESULTS = 10, // what a later kernel may add is counted as this one
    LOOKUP_REFUSED,
    NOT_FOR_THIS_PORT,
    NOT_IP,
    MALFORMED,
    WITH_OPTIONS,
    HOP_LIMIT_REACHED,
    NOT_TO_A_PORT,
    FATES,
};

struct port {
    __u8 mac[8]; // the first six bytes
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct port);
} forward_port SEC(".maps");

// Index of each of the DUT's interfaces, by that index.
struct {
    __uint(type, BPF_MAP_TYPE_DEVMAP_HASH);
    __uint(max_entries, MAXIMUM_PORTS);
    __type(key, __u32);
    __type(value, __u32);
} forward_to SEC(".maps");

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

static __always_inline int leave_to_kernel(__u32 fate)
{
    count(fate);
    return XDP_PASS;
}

static __always_inline int is_for(const struct port *port, const struct ethhdr *ethernet)
{
    __u8 different = 0;

#pragma unroll
    for (int byte = 0; byte < ETH_ALEN; byte++)
        different |= port->mac[byte] ^ ethernet->h_dest[byte];
    return !different;
}

// RFC 1624: the hop limit is the upper byte of its word.
static __always_inline void lower_hop_limit(struct iphdr *header)
{
    __u32 sum = header->check + bpf_htons(0x0100);

    header->check = (__u16)(sum + (sum >= 0xffff));
    header->ttl--;
}

SEC("xdp")
int forward(struct xdp_md *context)
{
    void *end = (void *)(long)context->data_end;
    struct ethhdr *ethernet = (void *)(long)context->data;
    struct bpf_fib_lookup route = {.ifindex = context->ingress_ifindex};
    struct iphdr *ipv4 = 0;
    struct ipv6hdr *ipv6 = 0;
    __u32 first = 0;
    const struct port *port = bpf_map_lookup_elem(&forward_port, &first);

    if (!port || (void *)(ethernet + 1) > end)
        return leave_to_kernel(MALFORMED);
    if (!is_for(port, ethernet))
        return leave_to_kernel(NOT_FOR_THIS_PORT);

    void *header = ethernet + 1;
    __be16 type = ethernet->h_proto;
#pragma unroll
    for (int tags = 0; tags < MAXIMUM_TAGS; tags++) {
        const struct tag *tag = header;

        if (type != bpf_htons(ETH_P_8021Q) && type != bpf_htons(ETH_P_8021AD))
            break;
        if ((void *)(tag + 1) > end)
            return leave_to_kernel(MALFORMED);
        type = tag->type;
        header = (void *)(tag + 1);
    }

    if (type == bpf_htons(ETH_P_IP)) {
        ipv4 = header;
        if ((void *)(ipv4 + 1) > end || ipv4->version != 4)
            return leave_to_kernel(MALFORMED);
        if (ipv4->ihl != HEADER_WORDS)
            return leave_to_kernel(WITH_OPTIONS);
        if (ipv4->ttl <= 1)
            return leave_to_kernel(HOP_LIMIT_REACHED);
        route.family = ADDRESS_FAMILY_IPV4;
        route.tos = ipv4->tos;
        route.l4_protocol = ipv4->protocol;
        route.tot_len = bpf_ntohs(ipv4->tot_len);
        route.ipv4_src = ipv4->saddr;
        route.ipv4_dst = ipv4->daddr;
    } else if (type == bpf_htons(ETH_P_IPV6)) {
        ipv6 = header;
        if ((void *)(ipv6 + 1) > end || ipv6->version != 6)
            return leave_to_kernel(MALFORMED);
        if (ipv6->hop_limit <= 1)
            return leave_to_kernel(HOP_LIMIT_REACHED);
        route.family = ADDRESS_FAMILY_IPV6;
        route.flowinfo = *(const __be32 *)ipv6 & FLOW_INFORMATION;
        route.l4_protocol = ipv6->nexthdr;
        route.tot_len = bpf_ntohs(ipv6->payload_len) + sizeof(*ipv6);
        __builtin_memcpy(route.ipv6_src, &ipv6->saddr, sizeof(route.ipv6_src));
        __builtin_memcpy(route.ipv6_dst, &ipv6->daddr, sizeof(route.ipv6_dst));
    } else {
        return leave_to_kernel(NOT_IP);
    }

    long found = bpf_fib_lookup(context, &route, sizeof(route), 0);
    if (found < 0)
        return leave_to_kernel(LOOKUP_REFUSED);
    if (found != BPF_FIB_LKUP_RET_SUCCESS)
        return leave_to_kernel(found < LOOKUP_RESULTS ? (__u32)found : LOOKUP_RESULTS);
    __u32 to = route.ifindex;
    if (!bpf_map_lookup_elem(&forward_to, &to))
        return leave_to_kernel(NOT_TO_A_PORT);

    if (ipv4)
        lower_hop_limit(ipv4);
    else if (ipv6)
        ipv6->hop_limit--;
    __builtin_memcpy(ethernet->h_source, route.smac, ETH_ALEN);
    __builtin_memcpy(ethernet->h_dest, route.dmac, ETH_ALEN);
    count(FORWARDED);
    return (int)bpf_redirect_map(&forward_to, to, XDP_PASS);
}

// bpf_fib_lookup is reserved to programs under the GPL.
char _license[] SEC("license") = "GPL";
