// Receives and judges every frame in the driver's hook. What is ours is counted and dropped, what is not passes to the
// kernel untouched. It is the analyser of src/analyser.rs, whose counts it must agree with frame by frame; what the
// kernel cannot judge goes to the engine through a ring.

#include "card_time.h"
#include "count.h"
#include "hand_over.h"

struct short_frame_event {
	struct event event;
	__u8 bytes[SHORT_FRAME_BYTES];
};

// The stream whose flows hold this one; streams are in the order of their flows.
VERIFIED_ONCE __u32 search_stream(__u32 flow)
{
	__u32 low = 0, high = configuration.streams;

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

struct addressed {
	__u32 shard;
	__u32 length;
	__u32 number; // Of the stream; NOWHERE: none.
	__u32 padding;
};

static long look_at_stream(__u32 number, struct addressed *addressed)
{
	const struct shard *shard = AT(shards, addressed->shard);
	const struct stream *stream = AT(streams, number);

	if (!shard || !stream || !is_addressed_as_ours(shard, stream, addressed->length))
		return 0;
	addressed->number = number;
	return 1;
}

// No signature of ours: foreign, or ours and broken.
VERIFIED_ONCE int judge_unknown(struct xdp_md *context, const struct place *place)
{
	struct addressed addressed = { .number = NOWHERE };
	struct short_frame_event *event;
	struct shard *shard;
	struct tally *tally;

	if (!place)
		return XDP_PASS;
	shard = AT(shards, place->number);
	if (!shard)
		return XDP_PASS;
	addressed.shard = place->number;
	addressed.length = place->length;
	if (place->phase != IDLE)
		bpf_loop(configuration.streams, look_at_stream, &addressed, 0);
	if (addressed.number == NOWHERE) {
		count_foreign(place);
		shard->passed++;
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
	shard->events_lost++;
	shard->unattributed++;
	tally = AT(tallies, place->number * configuration.streams + addressed.number);
	if (tally)
		tally->unattributed++;
	return XDP_DROP;
}

static __always_inline int judge_ours(struct xdp_md *context, const struct place *place, struct shard *shard,
				      const struct signature *signature)
{
	struct frame frame = { .signature = *signature };
	__u32 number = (__u32)shard->last_stream, flow;
	const struct stream *stream = AT(streams, number);
	struct tally *tally;
	struct line *line;

	if (place->phase == IDLE)
		return XDP_DROP;
	if (!stream || signature->flow - stream->first_flow >= stream->flows) {
		number = search_stream(signature->flow);
		stream = number == NOWHERE ? 0 : AT(streams, number);
		if (!stream) {
			count_foreign(place);
			return XDP_DROP;
		}
		shard->last_stream = number;
	}
	if (!stream->is_here) {
		count_misdirected(place);
		return XDP_DROP;
	}
	flow = signature->flow - stream->first_flow;
	frame.number = number;
	frame.index = place->number * configuration.flows + stream->first_line + flow;
	line = AT(lines, frame.index);
	tally = AT(tallies, place->number * configuration.streams + number);
	if (!line || !tally)
		return XDP_DROP;
	if (place->phase == RUNNING && place->now_ns >= tally->interval_end_ns)
		close_interval(place, tally, number);
	if (!is_intact(context, place, stream, number, flow)) {
		if (place->phase == RUNNING)
			count_corrupted(place, &frame, tally, line);
	} else if (place->phase == AFTER_DRAIN) {
		count_late(&frame, tally, line);
	} else {
		count_whole(context, place, &frame, stream, tally, line);
	}
	return XDP_DROP;
}

// Latencies from 2 to 66 us, in no order.
static __always_inline void repeat(const struct place *place, struct signature *signature)
{
	signature->flow = repetition.flow;
	signature->sequence = repetition.sequence;
	signature->time_ns = (place->now_ns - 2000 - (repetition.sequence * 0x9E3779B1U >> 16)) & TIME_MASK;
	repetition.flow += repetition.step;
	if (repetition.flow >= repetition.flows)
		repetition.flow -= repetition.flows;
	if (!repetition.flow)
		repetition.sequence++;
}

static __always_inline int judge(struct xdp_md *context, const enum role role)
{
	// What was handed over is counted in the last place.
	__u32 number = role == JUDGE_HANDED_OVER ? configuration.shards - 1 : context->rx_queue_index;
	struct place place = { .number = number, .quiet_ns = ~0ULL };
	struct signature signature = {};
	struct shard *shard;
	__u64 words[2], now_ns, epoch_ns = configuration.epoch_ns;
	int owner = NOBODY;
	void *at, *end;

	if (!configuration.is_ready || place.number >= configuration.shards)
		return XDP_PASS;
	shard = AT(shards, place.number);
	if (!shard)
		return XDP_PASS;
	place.length = (__u32)(context->data_end - context->data);
	now_ns = settings.is_told_time ? configuration.test_now_ns
	       : role == JUDGE_HANDED_OVER ? came_ns(context)
					   : bpf_ktime_get_ns();
	// What comes before the trial begins is not counted.
	place.phase = now_ns < epoch_ns ? IDLE : configuration.phase;
	if (configuration.last_slow_ns)
		place.quiet_ns = now_ns > configuration.last_slow_ns ? now_ns - configuration.last_slow_ns : 0;
	if (settings.is_stamped)
		now_ns = place_stamp(shard, read_stamp(context), now_ns);
	// A clock that is a little wrong may place the first frames before the trial.
	place.now_ns = now_ns > epoch_ns ? now_ns - epoch_ns : 0;
	if (place.phase == RUNNING) {
		if (place.now_ns > shard->last_ns)
			shard->last_ns = place.now_ns;
		// Those around a jump are kept where it is found out, the first ones where they come.
		if ((role != JUDGE_HANDED_OVER && shard->captured < configuration.capture_frames) ||
		    (role != HAND_OVER && configuration.capture_around))
			capture(context, &place);
	}
	at = (void *)(long)context->data + (configuration.offset[0] & 0x1FF);
	end = (void *)(long)context->data_end;
	if (at + sizeof(words) <= end) {
		__builtin_memcpy(words, at, sizeof(words));
		owner = read_signature(words[0], words[1], &signature);
	}
	if (owner == NOBODY)
		owner = look_elsewhere(context, &place, &signature);
	if (settings.is_repeated && owner == OURS)
		repeat(&place, &signature);
	if (role == HAND_OVER && owner == OURS && place.phase != IDLE && hand_over(context, now_ns) == XDP_REDIRECT)
		return XDP_REDIRECT;
	if (place.phase == RUNNING)
		shard->arrived++;
	if (owner == OURS)
		return judge_ours(context, &place, shard, &signature);
	if (owner == EARLIER) {
		if (place.phase == RUNNING)
			shard->stale++;
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
