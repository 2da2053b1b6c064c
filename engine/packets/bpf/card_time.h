// When a frame arrived by the card's clock, as stamps/mod.rs places stamps in a worker's time.
#pragma once

#include "receive_maps.h"

// Longer than any trial goes without a new line; a correction of 1 % of it has room in 64 bits.
#define FARTHEST_NS 100000000000LL
// A stamp farther than this from the moment at which its frame was received is no time of this trial.
#define PLAUSIBLE_NS 10000000000LL

#ifdef CARD_STAMPS
// Linux 6.3. The kernel takes a program that calls it only for one interface, whose driver then answers.
extern int bpf_xdp_metadata_rx_timestamp(const struct xdp_md *context, __u64 *stamp) __ksym;

static __always_inline __u64 read_stamp(struct xdp_md *context)
{
	__u64 stamp = 0;

	return bpf_xdp_metadata_rx_timestamp(context, &stamp) ? 0 : stamp;
}
#else
static __always_inline __u64 read_stamp(struct xdp_md *context)
{
	return configuration.test_stamp;
}
#endif

// The frame was received at `now_ns`, which stands in where the stamp is missing (0) or cannot be.
static __always_inline __u64 place_stamp(struct shard *shard, __u64 stamp, __u64 now_ns)
{
	const struct clock_line *line = &card_clock.line[card_clock.present & (CLOCK_LINES - 1)];
	__s64 distance = stamp - line->stamp, after;
	__u64 given_ns;

	if (!stamp) {
		shard->unstamped++;
		return now_ns;
	}
	given_ns = line->time_ns + distance + (distance * line->correction >> 32);
	after = given_ns - now_ns;
	if (distance > FARTHEST_NS || distance < -FARTHEST_NS || after > PLAUSIBLE_NS || after < -PLAUSIBLE_NS) {
		shard->implausible++;
		return now_ns;
	}
	shard->stamped++;
	if (after > 0) {
		shard->before_stamp++;
		if ((__u64)after > shard->before_stamp_maximum_ns)
			shard->before_stamp_maximum_ns = after;
	}
	return given_ns;
}
