// SPDX-License-Identifier: GPL-2.0
// Makes the frames of a trial: BPF_PROG_RUN runs this program over and over in one thread, and each run makes the frame
// that is due, or drops its buffer if none is. What differs from frame to frame was computed by the process before.

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "generate.h"

#define ARRAY(name_, type_, entries_)                     \
	struct {                                          \
		__uint(type, BPF_MAP_TYPE_ARRAY);         \
		__uint(map_flags, BPF_F_MMAPABLE);        \
		__uint(max_entries, entries_);            \
		__type(key, __u32);                       \
		__type(value, type_);                     \
	} name_ SEC(".maps")

struct template {
	__u8 bytes[TEMPLATE_BYTES];
};

struct image {
	__u64 words[2];
};

ARRAY(settings_map, struct settings, 1);
ARRAY(senders_map, struct sender, MAXIMUM_SENDERS);
ARRAY(progress_map, struct progress, 1);
ARRAY(outputs_map, struct output, MAXIMUM_PORTS);
ARRAY(templates_map, struct template, MAXIMUM_SENDERS);
ARRAY(images_map, struct image, 1);
ARRAY(sums_map, __u64, 1);
ARRAY(gaps_map, __u64, MAXIMUM_SENDERS * GAP_BUCKETS);

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, MAXIMUM_PORTS);
	__type(key, __u32);
	__type(value, __u32);
} devices SEC(".maps");

static __always_inline void advance(struct sender *sender)
{
	if (sender->left_in_burst) {
		sender->left_in_burst--;
		return;
	}
	sender->due_ns += sender->whole_ns;
	sender->remainder += sender->numerator;
	if (sender->remainder >= sender->denominator) {
		sender->remainder -= sender->denominator;
		sender->due_ns += 1;
	}
	sender->left_in_burst = sender->burst_frames - 1;
}

// Gives up frames that are too late to be made good, but the last that is due. Bounded: the rest follows at the next run.
static __always_inline void give_up_late(struct sender *sender, __u64 now_ns)
{
	for (int step = 0; step < 1024; step++) {
		if (sender->position + 1 >= sender->intended || sender->due_ns + sender->catch_up_ns >= now_ns)
			return;
		if (!sender->left_in_burst && sender->due_ns + sender->whole_ns + 1 > now_ns)
			return;
		advance(sender);
		sender->position++;
		sender->given_up++;
	}
}

static __always_inline int is_due(const struct sender *sender, const struct settings *settings, __u64 now_ns)
{
	return sender->is_paced ? sender->due_ns <= now_ns : now_ns < settings->end_ns;
}

// Finds the next sender that has a frame due, in turn; it is then `next_sender`. Results go to the map, so that the
// verifier does not follow each of them.
static __noinline int find_due(const struct settings *settings, struct progress *progress, __u64 now_ns)
{
	progress->is_behind = 0;
	progress->has_frames = 0;
	for (__u32 tried = 0; tried < MAXIMUM_SENDERS; tried++) {
		__u32 index = progress->next_sender;
		const struct sender *sender;

		if (tried >= settings->senders)
			return 0;
		if (index >= settings->senders)
			index = 0;
		progress->next_sender = index;
		sender = bpf_map_lookup_elem(&senders_map, &index);
		if (!sender)
			return 0;
		if (sender->position < sender->intended) {
			progress->has_frames = 1;
			if (sender->is_paced)
				progress->is_behind = 1;
			if (is_due(sender, settings, now_ns))
				return 1;
		}
		progress->next_sender = index + 1;
	}
	return 0;
}

// HdrHistogram's buckets for two digits: 256 of one width, then 128 for each doubling.
static __always_inline __u32 gap_bucket(__u64 gap_ns)
{
	__u32 octave = 0;

	if (gap_ns >= 1ULL << 36)
		gap_ns = (1ULL << 36) - 1;
	for (__u64 rest = gap_ns >> 8; rest && octave < 29; rest >>= 1)
		octave++;
	return (octave << 7) + (__u32)(gap_ns >> octave);
}

static __always_inline void record_gap(struct sender *sender, __u32 index, __u64 now_ns)
{
	__u64 gap_ns = now_ns - sender->last_sent_ns;
	__u32 place = index * GAP_BUCKETS + gap_bucket(gap_ns);
	__u64 *count = bpf_map_lookup_elem(&gaps_map, &place);

	if (count)
		(*count)++;
	sender->gap_sum_ns += gap_ns;
	if (gap_ns < sender->gap_minimum_ns)
		sender->gap_minimum_ns = gap_ns;
	if (gap_ns > sender->gap_maximum_ns)
		sender->gap_maximum_ns = gap_ns;
}

// RFC 1624: what the signature adds to the sum of everything else that the checksum covers.
static __always_inline __u16 checksum(__u64 constant, const struct signature_words *words)
{
	__u64 sum = constant + (words->front & 0xFFFFFFFF) + (words->front >> 32) + (words->lower & 0xFFFFFFFF) +
		    (words->lower >> 32);
	__u16 result;

	sum = (sum >> 32) + (sum & 0xFFFFFFFF);
	sum = (sum >> 16) + (sum & 0xFFFF);
	sum = (sum >> 16) + (sum & 0xFFFF);
	sum = (sum >> 16) + (sum & 0xFFFF);
	result = ~(__u16)sum;
	// RFC 768, RFC 8200 8.1: a checksum of zero would say that there is none, and is sent as 0xFFFF.
	return result ? result : 0xFFFF;
}

static __always_inline int write_frame(struct xdp_md *context, const struct settings *settings, struct sender *sender,
				       __u32 index, __u64 now_ns)
{
	const struct template *template = bpf_map_lookup_elem(&templates_map, &index);
	__u32 length = sender->length, at;
	struct signature_words words;
	int longer = (int)length - (int)(context->data_end - context->data);
	__u8 *data, *end;

	if (!template || length < SIGNATURE_BYTES || length > LARGEST_FRAME)
		return 0;
	if (longer && bpf_xdp_adjust_tail(context, longer))
		return 0;
	if (bpf_xdp_store_bytes(context, 0, (void *)template->bytes, length))
		return 0;
	data = (__u8 *)(long)context->data;
	end = (__u8 *)(long)context->data_end;
	for (__u32 piece = 0; piece < MAXIMUM_PIECES; piece++) {
		__u32 key = sender->first_image + sender->flow * sender->pieces + piece;
		const struct image *image;

		if (piece >= sender->pieces)
			break;
		image = bpf_map_lookup_elem(&images_map, &key);
		at = (sender->image_at & 0x7FF) + piece * IMAGE_BYTES;
		if (!image || data + at + IMAGE_BYTES > end)
			return 0;
		*(__u64 *)(data + at) = image->words[0];
		*(__u64 *)(data + at + 8) = image->words[1];
	}
	words = sign(&settings->keys, settings->mark, sender->first_flow + sender->flow, (__u32)sender->sequence,
		     settings->is_scheduled ? sender->due_ns : now_ns);
	at = sender->signature_at & 0x7FF;
	if (data + at + SIGNATURE_BYTES > end)
		return 0;
	*(__u64 *)(data + at) = words.front;
	*(__u64 *)(data + at + 8) = words.lower;
	if (sender->checksum_at) {
		__u32 key = sender->first_sum + sender->flow;
		const __u64 *sum = bpf_map_lookup_elem(&sums_map, &key);

		at = sender->checksum_at & 0x7FF;
		if (!sum || data + at + 2 > end)
			return 0;
		*(__u16 *)(data + at) = checksum(*sum, &words);
	}
	return 1;
}

static __always_inline void count_sent(struct sender *sender, __u32 index, __u64 batch, __u64 now_ns)
{
	if (sender->sent)
		record_gap(sender, index, now_ns);
	sender->last_sent_ns = now_ns;
	sender->sent++;
	if (sender->burst != batch) {
		sender->burst = batch;
		sender->in_burst = 0;
		sender->bursts++;
	}
	sender->in_burst++;
	if (sender->in_burst > sender->largest_burst)
		sender->largest_burst = sender->in_burst;
	sender->position++;
	if (sender->is_paced)
		advance(sender);
	sender->flow++;
	if (sender->flow == sender->flows) {
		sender->flow = 0;
		sender->sequence++;
	}
}

static __always_inline void observe_run(struct progress *progress, const struct settings *settings, __u64 now)
{
	__u64 gap_ns = now - progress->last_run_ns;

	if (progress->last_run_ns) {
		if (gap_ns > progress->longest_gap_ns)
			progress->longest_gap_ns = gap_ns;
		if (gap_ns > settings->gap_floor_ns) {
			progress->total_gap_ns += gap_ns;
			progress->gaps++;
		}
	}
	progress->last_run_ns = now;
}

// How long the first frame of a batch waits until it leaves.
static __always_inline void observe_batch(struct progress *progress, __u32 place, __u32 batch, __u64 now)
{
	if (place + 1 == batch && progress->batch_begins_ns) {
		progress->batches++;
		progress->batch_sum_ns += now - progress->batch_begins_ns;
		progress->batch_begins_ns = 0;
	}
}

SEC("xdp")
int generate(struct xdp_md *context)
{
	__u32 zero = 0, index, place;
	const struct settings *settings = bpf_map_lookup_elem(&settings_map, &zero);
	struct progress *progress = bpf_map_lookup_elem(&progress_map, &zero);
	__u64 now, elapsed_ns, batch;

	if (!settings || !progress)
		return XDP_DROP;
	place = progress->place;
	if (!place)
		progress->batch++;
	progress->place = place + 1 < settings->batch ? place + 1 : 0;
	batch = progress->batch;
	progress->runs++;
	progress->cpu = bpf_get_smp_processor_id();
	if (settings->phase != PHASE_SEND || progress->is_finished)
		return XDP_DROP;
	now = bpf_ktime_get_ns();
	if (now < settings->epoch_ns)
		return XDP_DROP;
	elapsed_ns = now - settings->epoch_ns;
	observe_run(progress, settings, now);
	observe_batch(progress, place, settings->batch, now);
	if (elapsed_ns < settings->last_ns && find_due(settings, progress, elapsed_ns)) {
		struct sender *sender;
		__u32 port;

		index = progress->next_sender;
		sender = bpf_map_lookup_elem(&senders_map, &index);
		if (!sender)
			return XDP_ABORTED;
		port = sender->port;
		if (sender->is_paced && elapsed_ns - sender->due_ns > sender->catch_up_ns)
			give_up_late(sender, elapsed_ns);
		if (!write_frame(context, settings, sender, index, elapsed_ns))
			return XDP_ABORTED;
		if (!progress->batch_begins_ns)
			progress->batch_begins_ns = now;
		count_sent(sender, index, batch, elapsed_ns);
		progress->next_sender = index + 1;
		return bpf_redirect_map(&devices, port, XDP_DROP);
	}
	progress->idle_runs++;
	if (elapsed_ns >= settings->last_ns || (elapsed_ns >= settings->end_ns && !progress->is_behind) ||
	    (settings->ends_with_frames && !progress->has_frames)) {
		progress->finished_ns = elapsed_ns;
		progress->is_finished = 1;
	}
	return XDP_DROP;
}

struct ns_common {
	unsigned int inum;
} __attribute__((preserve_access_index));

struct net {
	struct ns_common ns;
} __attribute__((preserve_access_index));

typedef struct {
	struct net *net;
} __attribute__((preserve_access_index)) possible_net_t;

struct net_device {
	int ifindex;
	possible_net_t nd_net;
} __attribute__((preserve_access_index));

// What became of the frames at the end of a batch. Other programs redirect frames too: those count that leave from the
// program's CPU, to an interface of this process's namespace. (A thread's number would depend on who asks for it.)
SEC("tp_btf/xdp_devmap_xmit")
int BPF_PROG(count_flushed, const struct net_device *from, const struct net_device *to, int sent, int drops, int err)
{
	__u32 zero = 0;
	const struct settings *settings = bpf_map_lookup_elem(&settings_map, &zero);
	const struct progress *progress = bpf_map_lookup_elem(&progress_map, &zero);

	(void)from;
	if (!settings || !progress || settings->phase == PHASE_WAIT || progress->cpu != bpf_get_smp_processor_id())
		return 0;
	if (to->nd_net.net->ns.inum != settings->namespace)
		return 0;
	for (__u32 port = 0; port < MAXIMUM_PORTS; port++) {
		struct output *output;
		__u32 key = port;

		if (port >= settings->ports)
			break;
		output = bpf_map_lookup_elem(&outputs_map, &key);
		if (output && output->interface == (__u32)to->ifindex) {
			output->taken += sent;
			if (err)
				output->failed += drops;
			else
				output->refused += drops;
			break;
		}
	}
	return 0;
}

char _license[] SEC("license") = "GPL";
