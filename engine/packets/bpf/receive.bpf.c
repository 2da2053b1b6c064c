// Receives and judges every frame in the driver's hook. What is ours is counted and dropped, what is not passes to the
// kernel untouched. It is the analyser of src/analyser.rs, whose counts it must agree with frame by frame; what the
// kernel cannot judge goes to the engine through a ring.

#include "count.h"
#include "hand_over.h"

struct frame_event {
	struct event event;
	__u8 bytes[FRAME_BYTES];
};

struct short_frame_event {
	struct event event;
	__u8 bytes[SHORT_FRAME_BYTES];
};

// The stream whose flows hold this one; streams are in the order of their flows.
static __noinline __u32 search_stream(const struct config *config, __u32 flow)
{
	__u32 low = 0, high = config->streams;

	for (__u32 step = 0; step < 16 && low < high; step++) {
		__u32 middle = (low + high) / 2;
		const struct stream *stream = AT(streams, middle);

		if (!stream)
			return NOWHERE;
		if (flow < stream->first_flow)
			high = middle;
		else if (flow - stream->first_flow >= stream->flows)
			low = middle + 1;
		else
			return middle;
	}
	return NOWHERE;
}

// Addresses, and ports where they can be seen. What agrees goes to the engine, which looks at the rest.
static __noinline int is_addressed_as_ours(const struct place *place, const struct stream *stream)
{
	const struct shard *shard = place->shard;
	int has_options = byte_at(shard, ETHERNET_BYTES) != 0x45;

	if (!stream->is_here || place->length < stream->address_length)
		return 0;
	for (__u32 number = 0; number < MOST_WORDS; number++) {
		const struct word *word = &stream->address_word[number];
		__u32 at = word->at & (SCRATCH_BYTES - 8);

		if (number >= stream->address_words)
			break;
		if ((*(const __u64 *)&shard->scratch[at] ^ word->value) & word->mask)
			return 0;
	}
	for (__u32 number = 0; number < MOST_FIELDS; number++) {
		const struct field *field = &stream->address_field[number];
		struct wide distance, first = { field->first_high, field->first_low };

		if (number >= stream->address_fields)
			break;
		if (field->is_behind_options && has_options)
			continue;
		distance = subtract_wide(read_field(shard, field, 0), first);
		if (distance.high > field->span_high ||
		    (distance.high == field->span_high && distance.low > field->span_low))
			return 0;
	}
	return 1;
}

struct addressed {
	const struct place *place;
	__u32 number; // Of the stream; NOWHERE: none.
	__u32 padding;
};

static long look_at_stream(__u32 number, struct addressed *addressed)
{
	const struct stream *stream = AT(streams, number);

	if (!stream || !is_addressed_as_ours(addressed->place, stream))
		return 0;
	addressed->number = number;
	return 1;
}

// No signature of ours: foreign, or ours and broken.
static __noinline int judge_unknown(struct xdp_md *context, const struct place *place)
{
	struct addressed addressed = { .place = place, .number = NOWHERE };
	struct short_frame_event *event;
	struct tally *tally;

	if (place->phase != IDLE)
		bpf_loop(place->config->streams, look_at_stream, &addressed, 0);
	if (addressed.number == NOWHERE) {
		count_foreign(place);
		place->shard->passed++;
		return XDP_PASS;
	}
	if (place->phase == AFTER_DRAIN)
		return XDP_DROP;
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (event) {
		event->event.kind = UNKNOWN;
		event->event.shard = place->number;
		event->event.stream = addressed.number;
		event->event.flow = 0;
		event->event.numbers[0] = place->now_ns;
		event->event.numbers[1] = place->length;
		event->event.numbers[2] = 0;
		event->event.numbers[3] = 0;
		if (!copy_frame(context, event->bytes, place->length, SHORT_FRAME_BYTES)) {
			bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
			return XDP_DROP;
		}
		bpf_ringbuf_discard(event, BPF_RB_NO_WAKEUP);
	}
	place->shard->events_lost++;
	place->shard->unattributed++;
	tally = AT(tallies, place->number * place->config->streams + addressed.number);
	if (tally)
		tally->unattributed++;
	return XDP_DROP;
}

// Hands a frame to the engine as it is.
static __noinline void capture(struct xdp_md *context, const struct place *place)
{
	struct frame_event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event) {
		place->shard->events_lost++;
		return;
	}
	event->event.kind = CAPTURED;
	event->event.shard = place->number;
	event->event.stream = 0;
	event->event.flow = 0;
	event->event.numbers[0] = place->now_ns;
	event->event.numbers[1] = place->length;
	event->event.numbers[2] = 0;
	event->event.numbers[3] = 0;
	if (!copy_frame(context, event->bytes, place->length, FRAME_BYTES)) {
		bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
		place->shard->captured++;
	} else {
		bpf_ringbuf_discard(event, BPF_RB_NO_WAKEUP);
	}
}

static __always_inline int judge_ours(struct xdp_md *context, const struct place *place,
				      const struct signature *signature, __u64 quiet_ns)
{
	const struct config *config = place->config;
	struct frame frame = { .signature = *signature };
	__u32 number = (__u32)place->shard->last_stream;
	const struct stream *stream = AT(streams, number);

	if (place->phase == IDLE)
		return XDP_DROP;
	if (!stream || signature->flow - stream->first_flow >= stream->flows) {
		number = search_stream(config, signature->flow);
		stream = number == NOWHERE ? 0 : AT(streams, number);
		if (!stream) {
			count_foreign(place);
			return XDP_DROP;
		}
		place->shard->last_stream = number;
	}
	if (!stream->is_here) {
		// A stray frame is no proof that the stream's own port got it.
		count_foreign(place);
		return XDP_DROP;
	}
	frame.stream = stream;
	frame.number = number;
	frame.index = place->number * config->flows + stream->first_line + signature->flow - stream->first_flow;
	frame.line = AT(lines, frame.index);
	frame.tally = AT(tallies, place->number * config->streams + number);
	if (!frame.line || !frame.tally)
		return XDP_DROP;
	if (place->phase == RUNNING && place->now_ns >= frame.tally->interval_end_ns)
		close_interval(place, frame.tally, number);
	if (!is_intact(context, place, stream, number, signature->flow - stream->first_flow)) {
		if (place->phase == RUNNING)
			count_corrupted(place, &frame);
	} else if (place->phase == AFTER_DRAIN) {
		count_late(place, &frame);
	} else {
		count_whole(place, &frame, quiet_ns);
	}
	return XDP_DROP;
}

static __always_inline int judge(struct xdp_md *context, const enum role role)
{
	const struct config *config = AT(configuration, 0);
	// What was handed over is counted in the last place.
	__u32 number = role != JUDGE_HANDED_OVER ? context->rx_queue_index : config ? config->shards - 1 : 0;
	struct place place = { .config = config, .number = number };
	struct signature signature = {};
	__u64 words[2], now_ns, quiet_ns = ~0ULL;
	enum owner owner = NOBODY;
	void *at, *end;

	if (!config || !config->is_ready || number >= config->shards)
		return XDP_PASS;
	place.shard = AT(shards, number);
	if (!place.shard)
		return XDP_PASS;
	place.length = (__u32)(context->data_end - context->data);
	now_ns = is_test ? config->test_now_ns : role == JUDGE_HANDED_OVER ? came_ns(context) : bpf_ktime_get_ns();
	place.now_ns = now_ns - config->epoch_ns;
	// What comes before the trial begins is not counted.
	place.phase = now_ns < config->epoch_ns ? IDLE : config->phase;
	if (config->last_slow_ns)
		quiet_ns = now_ns > config->last_slow_ns ? now_ns - config->last_slow_ns : 0;
	if (place.phase == RUNNING) {
		if (place.now_ns > place.shard->last_ns)
			place.shard->last_ns = place.now_ns;
		if (role != JUDGE_HANDED_OVER && place.shard->captured < config->capture_frames)
			capture(context, &place);
	}
	at = (void *)(long)context->data + (config->offset[0] & 0x1FF);
	end = (void *)(long)context->data_end;
	if (at + sizeof(words) <= end) {
		__builtin_memcpy(words, at, sizeof(words));
		owner = read_signature(config, words[0], words[1], &signature);
	}
	if (owner == NOBODY)
		owner = look_elsewhere(context, &place, &signature);
	if (role == HAND_OVER && owner == OURS && place.phase != IDLE && hand_over(context, now_ns) == XDP_REDIRECT)
		return XDP_REDIRECT;
	if (owner == OURS)
		return judge_ours(context, &place, &signature, quiet_ns);
	if (owner == EARLIER) {
		place.shard->earlier++;
		return XDP_DROP;
	}
	return judge_unknown(context, &place);
}

SEC("xdp")
int receive(struct xdp_md *context)
{
	return judge(context, JUDGE);
}

// Where a worker only receives: a program of its own, since one that is bound to a card may not know of processors.
SEC("xdp")
int receive_for_other(struct xdp_md *context)
{
	return judge(context, HAND_OVER);
}

// On that worker's processor.
SEC("xdp/cpumap")
int receive_handed_over(struct xdp_md *context)
{
	return judge(context, JUDGE_HANDED_OVER);
}

char _license[] SEC("license") = "GPL";
