// What generate.bpf.c and src/xdp/generator.rs share. Times are nanoseconds since the epoch of the trial, unless said.
#pragma once

#include <linux/types.h>

#include "signature.h"

#define MAXIMUM_SENDERS 64
#define MAXIMUM_PORTS 64
#define LARGEST_FRAME 3392
#define SHORT_BYTES 128
#define IMAGE_BYTES 16
#define MAXIMUM_PIECES 8
#define MAXIMUM_CHECKSUMS 4
#define GAP_BUCKETS 4096
// Runs that share one reading of the clock, if a frame is due in each; more where frames are so late that it is the
// batch that decides when they leave.
#define RUNS_BY_ONE_READING 8
#define MOST_RUNS_BY_ONE_READING 32
#define LATE_NS 10000
// Of this many batches one is timed.
#define TIMED_EVERY 16
#define NEVER (~0ULL)

enum phase { PHASE_WAIT, PHASE_SEND, PHASE_END };

// Written before and between transmissions by the process alone.
struct settings {
	struct keys keys;
	__u64 epoch_ns; // CLOCK_MONOTONIC
	__u64 end_ns;	// frames are due until then
	__u64 last_ns;	// what is late is made good until then
	__u64 gap_floor_ns;
	__u32 phase;
	__u32 mark;
	__u32 senders;
	__u32 ports;
	__u32 batch; // runs between which nothing leaves
	__u32 ends_with_frames;
	__u32 is_scheduled; // frames bear the time at which they were due
	__u32 namespace;
};

// One stream, or one worker's part of it. The process fills it in; during a transmission the program alone writes.
struct sender {
	// When the next frame is due, as in src/pacer.rs, of which a tick is a nanosecond here.
	__u64 due_ns;
	__u64 remainder;
	__u64 whole_ns;
	__u64 numerator;
	__u64 denominator;
	__u64 left_in_burst;
	__u64 burst_frames;
	__u64 sent;
	__u64 most; // frames to be sent: what is intended, less what was given up
	__u64 catch_up_ns;
	// Where the next frame stands in its flow.
	__u64 sequence;
	__u32 flow;
	__u32 flows;
	__u32 first_flow;
	__u32 is_paced;
	__u32 port;
	// The frame: its constant bytes, then what differs.
	__u32 length;
	__u32 signature_at;
	__u32 checksum_at; // 0: there is none
	__u32 image_at;
	__u32 pieces;
	__u32 first_image;
	__u32 first_sum;
	// Frames that differ in more: which of the variants comes next, as in src/traffic/sizes.rs and captured.rs.
	__u32 first_variant; // and its template
	__u32 is_varied;
	__u32 checksums; // of which each flow has a sum
	__u32 is_turned; // each period begins somewhere else in the order
	__u32 first_order;
	__u32 order_length;
	__u64 seed;
	__u64 jump; // in the stream's order of frames, from this sender's last flow to its first
	__u64 place; // in the period
	__u64 period;
	__u64 turned;
	// What was counted.
	__u64 given_up;
	__u64 bursts;
	__u64 largest_burst;
	__u64 burst; // the number of the batch of the last frame
	__u64 burst_from; // frames sent before it
	__u64 last_sent_ns; // NEVER: none yet
	__u64 gap_sum_ns;
	__u64 gap_minimum_ns;
	__u64 gap_maximum_ns;
};

enum checksum_kind {
	CHECKSUM_NEVER_ZERO = 1, // RFC 768, RFC 8200 8.1: zero is sent as 0xFFFF
	CHECKSUM_SIGNED = 2, // it covers the signature,
	CHECKSUM_ODD = 4, // which begins at an odd place of its sum
};

// One checksum of a variant: all under it that neither flow nor signature change is summed up.
struct checksum {
	__u16 at;
	__u16 kind;
	__u32 sum;
};

// A frame that a stream of several sizes, or of a file, has among others.
struct variant {
	__u32 length;
	__u32 signature_at;
	// Of a file: its flow, of which it is frame number `turn` of `of_flow`; the flow's sequence begins anew after so
	// many laps.
	__u64 laps;
	__u32 flow;
	__u32 turn;
	__u32 of_flow; // 0: flow and sequence are those of the sender
	__u32 checksums;
	struct checksum checksum[MAXIMUM_CHECKSUMS];
};

struct progress {
	__u64 now_ns; // as the clock was read last
	__u64 idle_runs;
	__u64 last_run_ns; // CLOCK_MONOTONIC
	__u64 longest_gap_ns;
	__u64 total_gap_ns;
	__u64 gaps;
	__u64 batch_begins_ns; // of the first frame of the batch; NEVER: none yet
	__u64 batches; // that were timed
	__u64 batch_sum_ns;
	__u64 finished_ns;
	__u64 batch; // its number, from 1
	__u32 is_begun;
	__u32 is_finished;
	__u32 next_sender;
	__u32 place; // of the next run in its batch
	__u32 cpu; // on which the program ran last
	__u32 padding;
};

// By port of the trial.
struct output {
	__u64 taken; // by the driver
	__u64 refused; // for want of room in a ring
	__u64 failed; // the driver gave an error: the link is down, or its peer does not receive
	__u32 interface;
	__u32 padding;
};
