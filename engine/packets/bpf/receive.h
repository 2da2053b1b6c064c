// What the receiving program shares with src/sys/bpf/receiving.rs: the layout of its maps and of its events.
#pragma once

#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "signature.h"

#define MOST_OFFSETS 16
#define MOST_WORDS 32
#define MOST_LENGTHS 6
#define MOST_FIELDS 10
#define MOST_SUMS 4
#define MOST_SUMMED 12
// Blocks of 1024 counts that one histogram has (latency/counts.rs).
#define HISTOGRAM_BLOCKS 31
#define BLOCK_COUNTS 1024
#define HIGHEST_NS (TIME_MASK + 1 - EARLIEST_NS)
// 64-bit words in which a stream marks the lengths that its frames may have.
#define LENGTH_WORDS 256
#define SCRATCH_BYTES 256
#define FRAME_BYTES 4096
#define SHORT_FRAME_BYTES 256

enum phase { IDLE, RUNNING, AFTER_DRAIN };

// Set before the program is loaded.
struct settings {
	__u32 is_told_time; // In tests: time is what the configuration says.
	__u32 is_repeated; // In measurements: a frame that comes again stands for the next one of the next flow.
	__u32 is_stamped; // By the card's clock; in tests its stamps are the configuration's.
};

#define CLOCK_LINES 64

// The card's count `stamp` is at `time_ns` of the kernel's clock; a count more is 1 + correction / 2^32 ns later.
struct clock_line {
	__u64 stamp;
	__u64 time_ns;
	__s64 correction;
};

// The present line and earlier ones. The engine writes a line where none is read, and makes it the present one: its
// place comes again after 64 lines, longer than a program can be at work.
struct card_clock {
	__u32 present;
	__u32 padding;
	struct clock_line line[CLOCK_LINES];
};

struct config {
	struct keys keys;
	__u64 epoch_ns;
	__u64 last_slow_ns; // The last look that found the DUT's core shared; 0: none.
	__u64 test_now_ns;
	__u64 test_stamp;
	__u64 interval_ns;
	__u32 mark;
	__u32 trial;
	__u32 phase;
	__u32 streams;
	__u32 offsets;
	__u32 is_carried; // Some stream's signature lies in what VXLAN carries.
	__u32 flows; // Lines of a shard.
	__u32 ring_words; // Of each flow; a power of two.
	__u32 holes; // Of each flow.
	__u32 histograms; // Of a shard.
	__u32 intervals;
	__u32 shards;
	__u32 capture_frames;
	__u32 capture_around; // Frames before and after each jump; 0: none.
	__u32 is_ready; // Keys are known: before that, nothing is ours.
	__u32 offset[MOST_OFFSETS];
	__u32 padding;
};

// Where a measurement's repeated frame is. It goes through all flows in steps, which a cache cannot foresee.
struct repetition {
	__u32 flow, flows, step, sequence;
};

// Bits that a frame must have in the 8 bytes from `at` on.
struct word {
	__u64 value;
	__u64 mask;
	__u32 at;
	__u32 padding;
};

// A field of 16 bits that holds the frame's length, less `minus`.
struct length_field {
	__u32 at;
	__u32 minus;
};

// A field that differs between flows (traffic/varied_field.rs).
struct field {
	__u64 first_high, first_low;
	__u64 span_high, span_low;
	__u64 mask_high, mask_low;
	__u64 step, count;
	__u64 order; // Flows for each value, or the seed.
	__u32 at, bytes, shift;
	__u16 is_drawn;
	__u16 is_behind_options; // It moves with the options of IP.
};

struct summed {
	__u16 from, length, is_odd, padding;
};

// A checksum in what is carried (traffic/checksums.rs).
struct sum {
	__u64 constant;
	__u32 at, is_never_zero, ranges, padding;
	struct summed range[MOST_SUMMED];
};

struct stream {
	__u32 first_flow, flows;
	__u32 first_line;
	__u32 is_here;
	__u32 length; // 0: one of those that are marked.
	__u32 signature;
	__u32 first_group, group_shift;
	__u32 shared_group;
	__u32 search; // enum search
	__u32 words, found_words, lengths, fields, sums;
	__u32 address_words, address_fields, address_length;
	struct length_field length_field[MOST_LENGTHS];
	struct word word[MOST_WORDS];
	struct word found_word[MOST_WORDS];
	struct word address_word[MOST_WORDS];
	struct field field[MOST_FIELDS];
	struct field address_field[MOST_FIELDS];
	struct sum sum[MOST_SUMS];
};

enum search { ANYWHERE, PAYLOAD, CARRIED };

// As FlowLine in flows/line.rs.
struct line {
	__u64 next, recent, received, latency_sum_ns, variation_sum_ns;
	__u32 latency_minimum_ns, latency_maximum_ns, last_latency_ns;
	__u32 reordered, duplicated, corrupted;
};

struct hole {
	__u32 length, first;
	__u64 arrival; // Counted from 1.
};

// As StreamTally, Arrivals and Series in analyser/. Times are since the trial began.
struct tally {
	__u64 received, duplicated, reordered, corrupted, corrupted_copies, late, unattributed;
	__u64 variation_maximum_ns, unpaired;
	__s64 missing;
	__u64 last_jump_ns; // Counted from 1; 0: none.
	__u64 negative, negative_maximum_ns;
	__u64 beyond_least_ns, beyond_most_ns; // 0: none.
	__u64 first_ns, last_ns, silence_from_ns, silence_to_ns;
	__u64 interval, interval_end_ns, received_before;
	__s64 missing_before;
	__u64 is_rewritten; // The first frame that was received had other addresses than were sent.
};

struct interval {
	__u64 received;
	__s64 missing;
};

struct histogram_block {
	__u32 count[BLOCK_COUNTS];
};

// What one receive queue counted beside its streams.
struct shard {
	__u64 arrived, foreign, misdirected, unattributed, stale, last_ns;
	__u64 passed, events_lost, captured, last_stream;
	// Frames that the history has seen, up to which they were handed over, and how many more are wanted.
	__u64 seen, handed_over, wanted;
	__u64 stamped, unstamped, implausible, before_stamp, before_stamp_maximum_ns;
	__u8 scratch[SCRATCH_BYTES];
};

enum event_kind { REORDERED = 1, ADVANCED, OVERFLOW, UNKNOWN, CAPTURED, JUMPED };

struct event {
	__u32 kind, shard, stream, flow;
	__u64 numbers[4];
};

struct frame_event {
	struct event event;
	__u8 bytes[FRAME_BYTES];
};
