// SPDX-License-Identifier: GPL-2.0
// Makes the frames of a trial: BPF_PROG_RUN runs this program over and over in one thread, and each run makes the frame
// that is due, or drops its buffer if none is. What differs from frame to frame was computed by the process before.

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

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

enum step { STEP_ALL, STEP_BATCH, STEP_TIME, STEP_DUE, STEP_TEMPLATE, STEP_IMAGE, STEP_SIGNATURE, STEP_CHECKSUM, STEP_COUNT };

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
ONCE int give_up_late(struct sender *sender, __u64 now_ns)
{
	if (!sender)
		return 0;
	for (int step = 0; step < 64; step++) {
		if (sender->sent + 1 >= sender->most || sender->due_ns + sender->catch_up_ns >= now_ns)
			return 0;
		if (!sender->left_in_burst && sender->due_ns + sender->whole_ns + 1 > now_ns)
			return 0;
		advance(sender);
		sender->most--;
		sender->given_up++;
	}
	return 0;
}

static __always_inline int is_due(const struct sender *sender, __u64 now_ns)
{
	return sender->sent < sender->most &&
	       (sender->is_paced ? sender->due_ns <= now_ns : now_ns < settings.end_ns);
}

// Finds the next sender that has a frame due, in turn: the one before `next_sender`. That stands in memory all along, so
// that the verifier does not follow each of its values.
ONCE int search_due(__u64 now_ns)
{
	for (__u32 tried = 0; tried < MAXIMUM_SENDERS; tried++) {
		__u32 index = progress.next_sender;

		if (tried >= settings.senders)
			break;
		if (index >= settings.senders)
			index = 0;
		progress.next_sender = index + 1;
		barrier();
		index = (progress.next_sender - 1) % MAXIMUM_SENDERS;
		if (is_due(&senders[index], now_ns))
			return 1;
	}
	return 0;
}

static __always_inline int find_due(__u64 now_ns)
{
	// `next_sender` is then 1, from the beginning.
	return settings.senders == 1 ? is_due(&senders[0], now_ns) : search_due(now_ns);
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

// The gap before the first frame of one time. Frames of the same time have no gap, and are not counted here.
ONCE int record_gap(struct sender *sender, __u32 index, __u64 now_ns)
{
	__u64 gap_ns;

	if (!sender)
		return 0;
	gap_ns = now_ns - sender->last_sent_ns;
	gaps[(index % MAXIMUM_SENDERS) * GAP_BUCKETS + gap_bucket(gap_ns) % GAP_BUCKETS]++;
	sender->gap_sum_ns += gap_ns;
	if (gap_ns < sender->gap_minimum_ns)
		sender->gap_minimum_ns = gap_ns;
	if (gap_ns > sender->gap_maximum_ns)
		sender->gap_maximum_ns = gap_ns;
	return 0;
}

static __always_inline __u64 halves(__u64 word)
{
	return (word & 0xFFFFFFFF) + (word >> 32);
}

static __always_inline __u16 fold_sum(__u64 sum)
{
	sum = halves(sum);
	sum = (sum >> 16) + (sum & 0xFFFF);
	sum = (sum >> 16) + (sum & 0xFFFF);
	sum = (sum >> 16) + (sum & 0xFFFF);
	return (__u16)sum;
}

// RFC 1624: what the signature adds to the sum of everything else that the checksum covers.
static __always_inline __u16 checksum(__u64 constant, const struct signature_words *words)
{
	__u16 result = ~fold_sum(constant + halves(words->front) + halves(words->lower));

	// RFC 768, RFC 8200 8.1: a checksum of zero would say that there is none, and is sent as 0xFFFF.
	return result ? result : 0xFFFF;
}

// Copies a template into a frame of at most SHORT_BYTES: a call of the kernel costs more than that many bytes.
ONCE int write_short(struct xdp_md *context, __u32 number)
{
	const __u8 *template = bpf_map_lookup_elem(&templates_map, &number);
	__u8 *place = (__u8 *)(long)context->data;
	__u8 *end = (__u8 *)(long)context->data_end;
	__u32 word = 0;

	if (!template)
		return 0;
	for (; word < SHORT_BYTES / 8 - 1; word++) {
		if (place + 8 > end)
			break;
		*(__u64 *)place = *(const __u64 *)template;
		place += 8;
		template += 8;
	}
	for (__u32 byte = 0; byte < 8; byte++) {
		if (place + 1 > end)
			break;
		*place++ = *template++;
	}
	return 1;
}

// Makes the frame so long, and copies the template of this number into it.
static __always_inline int write_template(struct xdp_md *context, __u32 number, __u32 length)
{
	const __u64 *template = bpf_map_lookup_elem(&templates_map, &number);
	int longer = (int)length - (int)(context->data_end - context->data);
	__u8 *data, *end;

	if (!template || length < SIGNATURE_BYTES || length > LARGEST_FRAME || length > constants.template_bytes)
		return 0;
	if (longer && bpf_xdp_adjust_tail(context, longer))
		return 0;
	data = (__u8 *)(long)context->data;
	end = (__u8 *)(long)context->data_end;
	if (length == 60 && data + 60 <= end) {
		// Frames of 64 bytes with FCS are those of the highest rates: no call for them.
		for (__u32 word = 0; word < 7; word++)
			*(__u64 *)(data + 8 * word) = template[word];
		*(__u32 *)(data + 56) = *(const __u32 *)(template + 7);
		return 1;
	}
	if (length <= SHORT_BYTES && SHORT_BYTES <= constants.template_bytes)
		return write_short(context, number);
	return !bpf_xdp_store_bytes(context, 0, (void *)template, length);
}

static __always_inline int write_signature(struct xdp_md *context, __u32 at, const struct signature_words *words)
{
	__u8 *place = (__u8 *)(long)context->data + (at & 0xFFF);

	if (place + SIGNATURE_BYTES > (__u8 *)(long)context->data_end)
		return 0;
	*(__u64 *)place = words->front;
	*(__u64 *)(place + 8) = words->lower;
	return 1;
}

static __always_inline int write_checksum(struct xdp_md *context, __u32 at, __u16 value)
{
	__u8 *place = (__u8 *)(long)context->data + (at & 0xFFF);

	if (place + 2 > (__u8 *)(long)context->data_end)
		return 0;
	*(__u16 *)place = value;
	return 1;
}

// Writes what a flow has in the place of what the template has: images of varied frames are differences from it, so
// that lengths, which differ between variants, stay.
static __always_inline int write_images(struct xdp_md *context, const struct sender *sender, int are_differences)
{
	__u32 key = sender->first_image + sender->flow * sender->pieces;
	__u8 *place = (__u8 *)(long)context->data + (sender->image_at & 0xFFF);
	__u8 *end = (__u8 *)(long)context->data_end;

#pragma clang loop unroll(disable)
	for (__u32 piece = 0; piece < MAXIMUM_PIECES; piece++) {
		const struct image *image;

		if (piece >= sender->pieces)
			break;
		image = bpf_map_lookup_elem(&images_map, &key);
		if (!image || place + IMAGE_BYTES > end)
			return 0;
		*(__u64 *)place = image->words[0] ^ (are_differences ? *(__u64 *)place : 0);
		*(__u64 *)(place + 8) = image->words[1] ^ (are_differences ? *(__u64 *)(place + 8) : 0);
		place += IMAGE_BYTES;
		key++;
	}
	return 1;
}

static __always_inline int write_checksums(struct xdp_md *context, const struct sender *sender,
					   const struct variant *variant, const struct signature_words *words)
{
	__u64 signature = fold_sum(halves(words->front) + halves(words->lower));

#pragma clang loop unroll(disable)
	for (__u32 number = 0; number < MAXIMUM_CHECKSUMS; number++) {
		const struct checksum *checksum = &variant->checksum[number];
		__u64 sum = checksum->sum;
		__u16 result;

		if (number >= variant->checksums)
			break;
		if (number < sender->checksums) {
			__u32 key = sender->first_sum + sender->flow * sender->checksums + number;
			const __u64 *of_flow = bpf_map_lookup_elem(&sums_map, &key);

			if (!of_flow)
				return 0;
			sum += *of_flow;
		}
		// RFC 1071 2 (B): bytes that are off by one give the byte-swapped sum.
		if (checksum->kind & CHECKSUM_SIGNED)
			sum += checksum->kind & CHECKSUM_ODD ? (signature & 0xFF) << 8 | signature >> 8 : signature;
		result = ~fold_sum(sum);
		if (!result && checksum->kind & CHECKSUM_NEVER_ZERO)
			result = 0xFFFF;
		if (!write_checksum(context, checksum->at, result))
			return 0;
	}
	return 1;
}

// A frame of a stream whose frames differ in size, or come from a file.
ONCE int write_varied(struct xdp_md *context, struct sender *sender, __u64 time_ns)
{
	const struct variant *variant;
	struct signature_words words;
	__u32 flow, sequence, key;
	const __u64 *number;
	__u64 place;

	if (!sender)
		return 0;
	flow = sender->first_flow;
	sequence = (__u32)sender->sequence;
	place = sender->place + sender->turned;
	if (place >= sender->order_length)
		place -= sender->order_length;
	key = sender->first_order + (__u32)place;
	number = bpf_map_lookup_elem(&order_map, &key);
	if (!number)
		return 0;
	key = sender->first_variant + (__u32)*number;
	variant = bpf_map_lookup_elem(&variants_map, &key);
	if (!variant || !write_template(context, key, variant->length))
		return 0;
	if (variant->of_flow) {
		__u64 lap = sender->period;

		if (lap >= variant->laps && variant->laps)
			lap %= variant->laps;
		flow += variant->flow;
		sequence = (__u32)lap * variant->of_flow + variant->turn;
	} else {
		flow += sender->flow;
		if (!write_images(context, sender, 1))
			return 0;
	}
	words = sign(&settings.keys, settings.mark, flow, sequence, time_ns);
	return write_signature(context, variant->signature_at, &words) &&
	       write_checksums(context, sender, variant, &words);
}

// Goes on to the next frame in the order of a stream whose frames are varied.
ONCE int step_in_order(struct sender *sender, __u64 frames)
{
	__u64 length;

	if (!sender)
		return 0;
	length = sender->order_length;
	sender->place += frames;
	if (sender->place < length || !length)
		return 0;
	sender->period += sender->place / length;
	sender->place %= length;
	if (sender->is_turned)
		sender->turned = scramble(sender->seed ^ sender->period) % length;
	return 0;
}

static __always_inline void count_sent(struct sender *sender, __u32 index, __u64 now_ns)
{
	__u64 frames = 1;

	if (sender->last_sent_ns != now_ns) {
		if (sender->last_sent_ns != NEVER)
			record_gap(sender, index, now_ns);
		sender->last_sent_ns = now_ns;
	}
	if (sender->burst != progress.batch) {
		__u64 before = sender->sent - sender->burst_from;

		if (before > sender->largest_burst)
			sender->largest_burst = before;
		sender->burst = progress.batch;
		sender->burst_from = sender->sent;
		sender->bursts++;
	}
	sender->sent++;
	if (sender->is_paced)
		advance(sender);
	sender->flow++;
	if (sender->flow == sender->flows) {
		sender->flow = 0;
		sender->sequence++;
		frames = sender->jump;
	}
	if (sender->is_varied)
		step_in_order(sender, frames);
}

// Reads the clock; 0: the trial has not begun.
static __always_inline int read_time(void)
{
	__u64 now = bpf_ktime_get_ns(), gap_ns;

	if (now < settings.epoch_ns)
		return 0;
	progress.is_begun = 1;
	progress.now_ns = now - settings.epoch_ns;
	if (progress.last_run_ns) {
		gap_ns = now - progress.last_run_ns;
		if (gap_ns > progress.longest_gap_ns)
			progress.longest_gap_ns = gap_ns;
		if (gap_ns > settings.gap_floor_ns) {
			progress.total_gap_ns += gap_ns;
			progress.gaps++;
		}
	}
	progress.last_run_ns = now;
	return 1;
}

// A batch that is late all along, or has no pace, is read at its beginning: what its frames wait for is no schedule.
static __always_inline int needs_time(__u32 place)
{
	const struct sender *last = &senders[(progress.next_sender - 1) % MAXIMUM_SENDERS];

	if (!(place % MOST_RUNS_BY_ONE_READING) || !progress.is_begun)
		return 1;
	return last->is_paced && last->due_ns + LATE_NS > progress.now_ns;
}

// How long the first frame of a batch waits until it leaves.
static __always_inline void time_batch(void)
{
	if (progress.batch_begins_ns == NEVER)
		return;
	if (progress.batch % TIMED_EVERY == 0) {
		progress.batches++;
		progress.batch_sum_ns += bpf_ktime_get_ns() - settings.epoch_ns - progress.batch_begins_ns;
	}
	progress.batch_begins_ns = NEVER;
}

// Nothing was due: whether anything will be.
ONCE int finish(__u64 now_ns)
{
	int is_behind = 0, has_frames = 0;

	progress.idle_runs++;
	if (now_ns < settings.end_ns && !settings.ends_with_frames)
		return 0;
	for (__u32 index = 0; index < MAXIMUM_SENDERS; index++) {
		const struct sender *sender = &senders[index];

		if (index >= settings.senders)
			break;
		if (sender->sent < sender->most) {
			has_frames = 1;
			is_behind |= sender->is_paced;
		}
	}
	if (now_ns >= settings.last_ns || (now_ns >= settings.end_ns && !is_behind) ||
	    (settings.ends_with_frames && !has_frames)) {
		progress.finished_ns = now_ns;
		progress.is_finished = 1;
	}
	return 0;
}

SEC("xdp")
int generate(struct xdp_md *context)
{
	__u32 place = progress.place, index;
	int is_found;
	struct signature_words words;
	struct sender *sender;
	__u64 now_ns, time_ns;

	progress.place = place + 1 < settings.batch ? place + 1 : 0;
	if (!place) {
		progress.batch++;
		progress.cpu = bpf_get_smp_processor_id();
	}
	if (settings.phase != PHASE_SEND || progress.is_finished)
		return XDP_DROP;
	END_OF(STEP_BATCH);
	// Frames that are due already share a reading of the clock: they leave together.
	if (!(place % RUNS_BY_ONE_READING) && needs_time(place) && !read_time())
		return XDP_DROP;
	END_OF(STEP_TIME);
	now_ns = progress.now_ns;
	is_found = progress.is_begun && find_due(now_ns);
	if (!is_found && place % RUNS_BY_ONE_READING) {
		// One that is not due yet must not wait for the next reading.
		if (!read_time())
			return XDP_DROP;
		now_ns = progress.now_ns;
		is_found = find_due(now_ns);
	}
	if (place + 1 == settings.batch)
		time_batch();
	if (!is_found || now_ns >= settings.last_ns) {
		finish(now_ns);
		return XDP_DROP;
	}
	END_OF(STEP_DUE);
	index = (progress.next_sender - 1) % MAXIMUM_SENDERS;
	sender = &senders[index];
	if (sender->is_paced && now_ns - sender->due_ns > sender->catch_up_ns)
		give_up_late(sender, now_ns);
	time_ns = settings.is_scheduled ? sender->due_ns : now_ns;
	if (sender->is_varied) {
		if (!write_varied(context, sender, time_ns))
			return XDP_ABORTED;
	} else {
		if (!write_template(context, sender->first_variant, sender->length))
			return XDP_ABORTED;
		END_OF(STEP_TEMPLATE);
		if (!write_images(context, sender, 0))
			return XDP_ABORTED;
		END_OF(STEP_IMAGE);
		words = sign(&settings.keys, settings.mark, sender->first_flow + sender->flow, (__u32)sender->sequence,
			     time_ns);
		if (!write_signature(context, sender->signature_at, &words))
			return XDP_ABORTED;
		END_OF(STEP_SIGNATURE);
		if (sender->checksum_at) {
			__u32 key = sender->first_sum + sender->flow;
			const __u64 *sum = bpf_map_lookup_elem(&sums_map, &key);

			if (!sum || !write_checksum(context, sender->checksum_at, checksum(*sum, &words)))
				return XDP_ABORTED;
		}
		END_OF(STEP_CHECKSUM);
	}
	if (progress.batch_begins_ns == NEVER)
		progress.batch_begins_ns = now_ns;
	count_sent(sender, index, now_ns);
	END_OF(STEP_COUNT);
	return bpf_redirect_map(&devices, sender->port, XDP_DROP);
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
	(void)from;
	if (settings.phase == PHASE_WAIT || progress.cpu != bpf_get_smp_processor_id() ||
	    to->nd_net.net->ns.inum != settings.namespace)
		return 0;
	for (__u32 port = 0; port < MAXIMUM_PORTS; port++) {
		struct output *output = &outputs[port];

		if (port >= settings.ports)
			break;
		if (output->interface == (__u32)to->ifindex) {
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
