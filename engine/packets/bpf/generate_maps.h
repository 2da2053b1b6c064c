// The memory of the program that makes frames, all of it the engine's too.
#pragma once

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "generate.h"
#include "numbers.h"

// What every run needs has a section, hence a map, of its own: its address is a constant of the program.
struct settings settings SEC(".bss.settings");
struct progress progress SEC(".bss.progress");
struct sender senders[MAXIMUM_SENDERS] SEC(".bss.senders");
struct output outputs[MAXIMUM_PORTS] SEC(".bss.outputs");
__u64 gaps[MAXIMUM_SENDERS * GAP_BUCKETS] SEC(".bss.gaps");

// Set before the program is loaded.
struct constants {
	__u32 template_bytes; // of each template
	__u32 last_step; // of enum step: what a run does no more is measured by leaving it out
};
const volatile struct constants constants SEC(".rodata.constants") = { .template_bytes = 64 };

enum step {
	STEP_ALL,
	STEP_BATCH,
	STEP_TIME,
	STEP_DUE,
	STEP_TEMPLATE,
	STEP_IMAGE,
	STEP_SIGNATURE,
	STEP_CHECKSUM,
	STEP_COUNT,
};

#define TABLE(name_, bytes_)                              \
	struct {                                          \
		__uint(type, BPF_MAP_TYPE_ARRAY);         \
		__uint(map_flags, BPF_F_MMAPABLE);        \
		__uint(max_entries, 1);                   \
		__uint(key_size, sizeof(__u32));          \
		__uint(value_size, bytes_);               \
	} name_ SEC(".maps")

struct image {
	__u64 words[2];
};

TABLE(templates_map, 64);
TABLE(variants_map, sizeof(struct variant));
TABLE(order_map, sizeof(__u64));
TABLE(images_map, sizeof(struct image));
TABLE(sums_map, sizeof(__u64));

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, MAXIMUM_PORTS);
	__type(key, __u32);
	__type(value, __u32);
} devices SEC(".maps");

// Ends a run here where no more is to be measured; otherwise it leaves nothing in the program.
#define END_OF(step)                           \
	do {                                   \
		if (constants.last_step == step) \
			return XDP_DROP;       \
	} while (0)

// A function that is not static is verified once, whatever leads to it.
#define ONCE __attribute__((noinline))
