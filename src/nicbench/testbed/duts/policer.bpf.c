// SPDX-License-Identifier: Apache-2.0
// The golden DUT in the kernel: a token bucket of a known rate and burst that redirects what conforms to the other port.
//
// The bucket is a Generic Cell Rate Algorithm (ITU-T I.371 annex A, virtual scheduling), which equals the single token
// bucket of RFC 2697 section 3 with a committed burst of `burst` frames, and needs no refill: it keeps the theoretical
// arrival time (TAT) of the next frame. Time is in picoseconds modulo 2^64 and compared by signed difference, so neither
// uptime nor rounding of the interval matters: the remainder of 10^12 / rate is carried, and no rate drifts.
//
// Each port has a copy of this program with maps of its own: one bucket for each direction, or for each of its receive
// queues.
//
// Told to mark, it forwards what does not conform with CE where its IP header has an ECT codepoint, or CE already
// (RFC 3168 section 5; RFC 5670 section 3.3, excess-traffic marking), and drops the rest. Its faults are for tests.

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <linux/if_ether.h>

#define PICOSECONDS_PER_NANOSECOND 1000ULL
#define MAXIMUM_QUEUES 64

// Written by policer.py before the program may forward anything; 0 in rate_frames_per_s means "not set yet".
struct settings {
    __u64 rate_frames_per_s;
    __u64 interval_ps;           // floor(10^12 / rate)
    __u64 interval_remainder;    // 10^12 mod rate, in 1/rate of a picosecond
    __u64 tolerance_ps;          // (burst - 1) frames of time: I.371's tau
    __u32 output_interface;      // index, in the namespace of this program's device
    __u32 per_queue;             // whether each receive queue has a bucket of its own
    __u32 marking;               // bits: see below
    __u32 unused;
};

#define MARK 1U          // mark what does not conform, in place of dropping it
#define MARK_NOT_ECT 2U  // fault: also frames of senders that do not know ECN
#define CLEAR_CE 4U      // fault: CE that came in goes out as ECT(0)

#define CODEPOINTS 3
#define NOT_ECT 0
#define ECT_0 2
#define CE 3

struct bucket {
    struct bpf_spin_lock lock; // a port with several queues is served by several CPUs at once
    __u32 started;
    __u64 arrival_ps;        // TAT
    __u64 arrival_remainder; // 1/rate of a picosecond
    __u64 forwarded_frames;
    __u64 dropped_frames;
    __u64 marked_frames;
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct settings);
} policer_settings SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, MAXIMUM_QUEUES);
    __type(key, __u32);
    __type(value, struct bucket);
} policer_bucket SEC(".maps");

// Puts a codepoint into the first bytes of an IP header, two of them; the checksum of IPv4 follows (RFC 1624).
static __always_inline void set_codepoint(__u8 *ip, int is_v4, __u8 codepoint)
{
    if (!is_v4) {
        ip[1] = (ip[1] & ~(CODEPOINTS << 4)) | (codepoint << 4);
        return;
    }
    __u16 old = (ip[0] << 8) | ip[1];
    ip[1] = (ip[1] & ~CODEPOINTS) | codepoint;
    __u16 new = (ip[0] << 8) | ip[1];
    __u32 sum = (__u16)~((ip[10] << 8) | ip[11]);
    sum += (__u16)~old + new;
    sum = (sum & 0xFFFF) + (sum >> 16);
    sum = (sum & 0xFFFF) + (sum >> 16);
    ip[10] = (__u8)(~sum >> 8);
    ip[11] = (__u8)~sum;
}

// What the codepoint of a frame becomes, and whether it may pass. Frames without IP, or with tags, are Not-ECT.
static __always_inline int mark(struct xdp_md *context, __u32 marking, int conforms, int *marked)
{
    __u8 *data = (__u8 *)(long)context->data;
    __u8 *end = (__u8 *)(long)context->data_end;
    if (data + ETH_HLEN + 20 > end)
        return conforms;
    __u16 type = (data[12] << 8) | data[13];
    if (type != ETH_P_IP && type != ETH_P_IPV6)
        return conforms;
    __u8 *ip = data + ETH_HLEN;
    int is_v4 = type == ETH_P_IP;
    __u8 now = is_v4 ? ip[1] & CODEPOINTS : (ip[1] >> 4) & CODEPOINTS;
    if (now == CE && (marking & CLEAR_CE)) {
        set_codepoint(ip, is_v4, ECT_0);
        return 1;
    }
    if (conforms || (now == NOT_ECT && !(marking & MARK_NOT_ECT)))
        return conforms;
    if (now != CE)
        set_codepoint(ip, is_v4, CE);
    *marked = 1;
    return 1;
}

SEC("xdp")
int police(struct xdp_md *context)
{
    __u32 first = 0;
    const struct settings *settings = bpf_map_lookup_elem(&policer_settings, &first);
    if (!settings || !settings->rate_frames_per_s)
        return XDP_DROP; // frames before the settings are nobody's: no trial runs yet

    __u32 queue = settings->per_queue ? context->rx_queue_index : 0;
    struct bucket *bucket = bpf_map_lookup_elem(&policer_bucket, &queue);
    if (!bucket)
        return XDP_DROP; // policer.py refuses ports with more queues

    __u64 now_ps = bpf_ktime_get_ns() * PICOSECONDS_PER_NANOSECOND;
    int conforms;

    bpf_spin_lock(&bucket->lock);
    // I.371: a TAT in the past is brought to now, that is, the bucket is full and does not fill further.
    if (!bucket->started || (__s64)(now_ps - bucket->arrival_ps) > 0) {
        bucket->started = 1;
        bucket->arrival_ps = now_ps;
        bucket->arrival_remainder = 0;
    }
    conforms = (__s64)(bucket->arrival_ps - now_ps) <= (__s64)settings->tolerance_ps;
    if (conforms) {
        bucket->arrival_ps += settings->interval_ps;
        bucket->arrival_remainder += settings->interval_remainder;
        if (bucket->arrival_remainder >= settings->rate_frames_per_s) {
            bucket->arrival_remainder -= settings->rate_frames_per_s;
            bucket->arrival_ps += 1;
        }
    }
    bpf_spin_unlock(&bucket->lock);

    int marked = 0;
    int passes = settings->marking ? mark(context, settings->marking, conforms, &marked) : conforms;
    __sync_fetch_and_add(passes ? &bucket->forwarded_frames : &bucket->dropped_frames, 1);
    if (marked)
        __sync_fetch_and_add(&bucket->marked_frames, 1);
    return passes ? bpf_redirect(settings->output_interface, 0) : XDP_DROP;
}

// No helper used here is reserved to GPL programs (bpf_ktime_get_ns is free since Linux 5.8).
char _license[] SEC("license") = "Apache-2.0";
