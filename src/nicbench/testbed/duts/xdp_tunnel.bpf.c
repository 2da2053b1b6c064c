// SPDX-License-Identifier: Apache-2.0
// An end of a tunnel: takes the headers of tunnels off a frame, puts others on, and sends the frame to the other port.
//
// Which bytes are expected and which are added is computed by xdp_tunnel.py; here only lengths and the checksums of IPv4
// headers are filled in. Frames without the expected headers are left to the kernel. If asked for, every n-th frame is
// dropped or damaged: a broken DUT.
//
// Each port has a copy of this program with maps of its own.

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define MOST_BYTES 192 // of headers
#define SCRATCH_BYTES 256
#define MOST_FIELDS 8
#define NOWHERE 0xffff
#define IPV4_WORDS 10

// xdp_tunnel.py has the names in this order.
enum fate { SENT_ON, NOT_IN_THE_TUNNEL, DROPPED, DAMAGED, FATES };

// A field of 16 bits, by its place behind Ethernet's header.
struct length {
    __u16 at;
    __u16 before; // bytes behind Ethernet's header that it does not count
};

// Written by xdp_tunnel.py before the program may send anything; 0 in output_interface means "not set yet".
struct settings {
    __u32 output_interface; // index, in the namespace of this program's device
    __u32 removed;          // bytes behind Ethernet's header
    __u32 added;
    __u16 type_in; // as on the wire
    __u16 type_out;
    __u32 drop_every; // 0: none
    __u32 damage_every;
    struct length lengths[MOST_FIELDS]; // of what is added
    __u16 checksums[MOST_FIELDS];       // where IPv4 headers begin in what is added
    __u8 expected[MOST_BYTES];
    __u8 mask[MOST_BYTES];
    __u8 header[MOST_BYTES];
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct settings);
} tunnel_settings SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} tunnel_frames SEC(".maps");

struct scratch {
    __u8 bytes[SCRATCH_BYTES];
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct scratch);
} tunnel_scratch SEC(".maps");

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

static __always_inline int leave_to_kernel(void)
{
    count(NOT_IN_THE_TUNNEL);
    return XDP_PASS;
}

// Whether the headers that are to be removed are there.
static __always_inline int is_in_tunnel(struct xdp_md *context, const struct settings *settings, struct scratch *scratch)
{
    __u32 removed = settings->removed;
    __u8 different = 0;

    if (removed == 0)
        return 1;
    if (removed > MOST_BYTES || bpf_xdp_load_bytes(context, ETH_HLEN, scratch->bytes, removed))
        return 0;
    // Behind the headers the mask is zero.
    for (int at = 0; at < MOST_BYTES; at++)
        different |= (scratch->bytes[at] ^ settings->expected[at]) & settings->mask[at];
    return !different;
}

static __always_inline void put(struct scratch *scratch, __u32 at, __u16 value)
{
    scratch->bytes[at % SCRATCH_BYTES] = value >> 8;
    scratch->bytes[(at + 1) % SCRATCH_BYTES] = (__u8)value;
}

// The headers that are added, with their lengths and checksums (RFC 791 3.1).
static __always_inline void make_headers(const struct settings *settings, struct scratch *scratch, __u32 length)
{
    for (int at = 0; at < MOST_BYTES; at++)
        scratch->bytes[at] = settings->header[at];
    for (int field = 0; field < MOST_FIELDS; field++) {
        const struct length *one = &settings->lengths[field];

        if (one->at != NOWHERE)
            put(scratch, one->at, (__u16)(length - ETH_HLEN - one->before));
    }
    for (int field = 0; field < MOST_FIELDS; field++) {
        __u32 sum = 0, at = settings->checksums[field];

        if (at == NOWHERE)
            continue;
        for (int word = 0; word < IPV4_WORDS; word++) {
            __u32 place = at + 2 * word;

            sum += (__u32)scratch->bytes[place % SCRATCH_BYTES] << 8 | scratch->bytes[(place + 1) % SCRATCH_BYTES];
        }
        sum = (sum & 0xffff) + (sum >> 16);
        sum = (sum & 0xffff) + (sum >> 16);
        put(scratch, at + 10, (__u16)~sum);
    }
}

static __always_inline int is_due(__u64 number, __u32 every)
{
    return every && number % every == 0;
}

SEC("xdp")
int tunnel(struct xdp_md *context)
{
    __u32 first = 0;
    const struct settings *settings = bpf_map_lookup_elem(&tunnel_settings, &first);
    struct scratch *scratch = bpf_map_lookup_elem(&tunnel_scratch, &first);
    __u64 *frames = bpf_map_lookup_elem(&tunnel_frames, &first);
    struct ethhdr ethernet;
    __u8 last;

    if (!settings || !scratch || !frames || !settings->output_interface)
        return XDP_DROP; // frames before the settings are nobody's: no trial runs yet
    if (bpf_xdp_load_bytes(context, 0, &ethernet, sizeof(ethernet)) || ethernet.h_proto != settings->type_in ||
        !is_in_tunnel(context, settings, scratch))
        return leave_to_kernel();

    __u64 number = __sync_fetch_and_add(frames, 1) + 1;
    if (is_due(number, settings->drop_every)) {
        count(DROPPED);
        return XDP_DROP;
    }

    if (bpf_xdp_adjust_head(context, (int)settings->removed - (int)settings->added))
        return leave_to_kernel();
    __u32 length = (__u32)(context->data_end - context->data), added = settings->added;
    ethernet.h_proto = settings->type_out;
    if (bpf_xdp_store_bytes(context, 0, &ethernet, sizeof(ethernet)))
        return XDP_DROP;
    if (added > 0) {
        make_headers(settings, scratch, length);
        if (added > MOST_BYTES || bpf_xdp_store_bytes(context, ETH_HLEN, scratch->bytes, added))
            return XDP_DROP;
    }
    if (is_due(number, settings->damage_every)) {
        if (bpf_xdp_load_bytes(context, length - 1, &last, 1))
            return XDP_DROP;
        last ^= 1;
        bpf_xdp_store_bytes(context, length - 1, &last, 1);
        count(DAMAGED);
    }
    count(SENT_ON);
    return bpf_redirect(settings->output_interface, 0);
}

char _license[] SEC("license") = "Apache-2.0";
