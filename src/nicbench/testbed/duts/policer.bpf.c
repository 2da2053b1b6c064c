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

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

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
};

struct bucket {
    struct bpf_spin_lock lock; // a port with several queues is served by several CPUs at once
    __u32 started;
    __u64 arrival_ps;        // TAT
    __u64 arrival_remainder; // 1/rate of a picosecond
    __u64 forwarded_frames;
    __u64 dropped_frames;
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
        bucket->forwarded_frames += 1;
    } else {
        bucket->dropped_frames += 1;
    }
    bpf_spin_unlock(&bucket->lock);

    return conforms ? bpf_redirect(settings->output_interface, 0) : XDP_DROP;
}

// No helper used here is reserved to GPL programs (bpf_ktime_get_ns is free since Linux 5.8).
char _license[] SEC("license") = "Apache-2.0";
