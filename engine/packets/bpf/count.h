// Counts what a frame showed: the tally of its stream, the line of its flow, histograms, series and arrivals
// (src/analyser.rs, src/analyser/irregular.rs).
#pragma once

#include "capture.h"
#include "order.h"

// A frame of a stream that is expected here, at this shard.
struct frame {
	struct signature signature;
	__u32 number; // Of the stream.
	__u32 index; // Of the line.
};

// How long a frame was under way; negative where the clocks disagree (times in a signature have 40 bits).
static __always_inline __s64 elapsed(__u64 then_ns, __u64 now_ns)
{
	__u64 difference = (now_ns - then_ns) & TIME_MASK;

	return difference > TIME_MASK - EARLIEST_NS ? -(__s64)(TIME_MASK + 1 - difference) : (__s64)difference;
}

static __always_inline void add_saturating(__u32 *count)
{
	if (*count != 0xFFFFFFFF)
		*count += 1;
}

// Writes what the interval that has ended received, and begins the present one.
VERIFIED_ONCE int close_interval(const struct place *place, struct tally *tally, __u32 number)
{
	__u32 intervals = configuration.intervals;
	__u64 interval_ns = configuration.interval_ns, present;
	struct interval *interval;

	if (!place || !tally || tally->interval >= intervals)
		return 0;
	present = interval_ns ? place->now_ns / interval_ns : 0;
	interval = AT(series, (place->number * configuration.streams + number) * intervals + (__u32)tally->interval);
	if (interval) {
		interval->received += tally->received - tally->received_before;
		interval->missing += tally->missing - tally->missing_before;
	}
	tally->received_before = tally->received;
	tally->missing_before = tally->missing;
	if (present + 1 >= intervals) {
		tally->interval = intervals - 1;
		tally->interval_end_ns = ~0ULL;
		return 0;
	}
	tally->interval = present;
	tally->interval_end_ns = (present + 1) * interval_ns;
	return 0;
}

static __always_inline void count_jump(const struct place *place, const struct frame *frame, struct tally *tally,
					__u64 jumped)
{
	__s64 age_ns = elapsed(frame->signature.time_ns, place->now_ns);
	__u64 sent_ns = age_ns > 0 && (__u64)age_ns > place->now_ns ? 0 : place->now_ns - age_ns;

	tally->missing += jumped;
	if (sent_ns + 1 > tally->last_jump_ns)
		tally->last_jump_ns = sent_ns + 1;
}

static __always_inline void count_foreign(const struct place *place)
{
	struct shard *shard = AT(shards, place->number);

	if (shard && place->phase == RUNNING)
		shard->foreign++;
}

// A frame of this trial at a port that is not its stream's: no proof that the stream's own port got it.
static __always_inline void count_misdirected(const struct place *place)
{
	struct shard *shard = AT(shards, place->number);

	if (shard && place->phase == RUNNING)
		shard->misdirected++;
}

// Hands a frame that was overtaken to the engine, which knows whether only broken ones overtook it.
static __always_inline void count_reordered(const struct place *place, const struct frame *frame, struct tally *tally,
					     struct line *line, __u64 sequence)
{
	struct event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event) {
		count_lost_event(place);
		tally->reordered++;
		add_saturating(&line->reordered);
		return;
	}
	event->kind = REORDERED;
	event->shard = place->number;
	event->stream = frame->number;
	event->flow = frame->signature.flow;
	event->numbers[0] = sequence;
	event->numbers[1] = line->received;
	event->numbers[2] = line->next;
	event->numbers[3] = opened_at(frame->index, (__u32)sequence);
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

// A frame with an intact signature and other bytes that were changed. Its sequence counts as seen.
VERIFIED_ONCE int count_corrupted(const struct place *place, const struct frame *frame, struct tally *tally,
				  struct line *line)
{
	struct observed observed = {};
	struct event event = { .kind = ADVANCED };

	if (!place || !frame || !tally || !line)
		return 0;
	observed.index = frame->index;
	event.shard = place->number;
	event.stream = frame->number;
	event.numbers[0] = line->next;
	switch (observe_rare(line, frame->signature.sequence, &observed)) {
	case DUPLICATE:
		tally->corrupted_copies++;
		return 0;
	case IMPOSSIBLE:
		count_foreign(place);
		return 0;
	case AHEAD:
		count_jump(place, frame, tally, observed.number);
		/* fall through */
	case NEXT:
		line->last_latency_ns = NO_LATENCY;
		event.flow = frame->signature.flow;
		event.numbers[1] = line->next;
		submit(place, &event);
		break;
	default:
		tally->missing--;
	}
	tally->corrupted++;
	add_saturating(&line->corrupted);
	return 0;
}

static __always_inline void count_late(const struct frame *frame, struct tally *tally, struct line *line)
{
	struct observed observed = { .index = frame->index };
	int arrival = observe(line, frame->signature.sequence, &observed);

	if (arrival != DUPLICATE && arrival != IMPOSSIBLE)
		tally->late++;
}

static __always_inline void count_latency(const struct place *place, __u32 histogram, __u64 latency_ns)
{
	__u64 kept_ns = latency_ns < HIGHEST_NS ? latency_ns : HIGHEST_NS;
	__u32 octave = bits_of((__u32)(kept_ns >> 11));
	__u32 index = (octave << 10) + (__u32)(kept_ns >> (octave & 31));
	struct histogram_block *block;
	__u32 *count;

	block = AT(histograms, (place->number * configuration.histograms + histogram) * HISTOGRAM_BLOCKS +
				       index / BLOCK_COUNTS);
	if (!block)
		return;
	count = &block->count[index & (BLOCK_COUNTS - 1)];
	*count += 1;
	if (!*count) {
		struct event event = { .kind = OVERFLOW, .shard = place->number };

		event.numbers[0] = histogram;
		event.numbers[1] = index;
		submit(place, &event);
	}
}

static __always_inline void count_arrival(struct tally *tally, __u64 now_ns)
{
	if (!tally->received) {
		tally->first_ns = now_ns;
	} else if (now_ns > tally->last_ns &&
		   now_ns - tally->last_ns > tally->silence_to_ns - tally->silence_from_ns) {
		tally->silence_from_ns = tally->last_ns;
		tally->silence_to_ns = now_ns;
	}
	tally->last_ns = now_ns;
}

// Whether the frame's variation is known, and what it is.
static __always_inline void count_variation(struct tally *tally, struct line *line, __u32 short_ns)
{
	__u32 last_ns = line->last_latency_ns, difference;

	line->last_latency_ns = short_ns;
	if (last_ns == NO_LATENCY) {
		tally->unpaired++;
		return;
	}
	difference = last_ns > short_ns ? last_ns - short_ns : short_ns - last_ns;
	line->variation_sum_ns += difference;
	if (difference > tally->variation_maximum_ns)
		tally->variation_maximum_ns = difference;
}

// Not the next one of its flow. Returns whether it is ahead of all before it; -1 where it is not received.
VERIFIED_ONCE int count_irregular(const struct place *place, const struct frame *frame, struct tally *tally,
				  struct line *line, const struct observed *observed)
{
	if (!place || !frame || !tally || !line || !observed)
		return -1;
	switch (observed->arrival) {
	case AHEAD:
		count_jump(place, frame, tally, observed->number);
		if (configuration.capture_around)
			capture_around(place, &frame->signature, observed->number);
		return 1;
	case LATE_IN_ORDER:
		tally->missing--;
		count_reordered(place, frame, tally, line, observed->number);
		return 0;
	case TOO_OLD:
		tally->missing--;
		tally->reordered++;
		add_saturating(&line->reordered);
		return 0;
	case DUPLICATE:
		tally->duplicated++;
		add_saturating(&line->duplicated);
		return -1;
	case ALTERED_COPY:
		tally->corrupted_copies++;
		return -1;
	default:
		count_foreign(place);
		return -1;
	}
}

static __always_inline void count_whole(struct xdp_md *context, const struct place *place, const struct frame *frame,
					const struct stream *stream, struct tally *tally, struct line *line)
{
	struct observed observed = { .index = frame->index };
	int arrival = observe(line, frame->signature.sequence, &observed), in_order = 1;
	__s64 age_ns = elapsed(frame->signature.time_ns, place->now_ns);
	__u64 latency_ns = age_ns;
	__u32 short_ns;

	// No copy of what was sent: somebody took our signature for it.
	if (arrival == DUPLICATE && !tally->is_rewritten && !has_own_addresses(context, place, stream))
		arrival = ALTERED_COPY;
	observed.arrival = arrival;
	if (arrival != NEXT)
		in_order = count_irregular(place, frame, tally, line, &observed);
	if (in_order < 0)
		return;
	if (age_ns < 0) {
		tally->negative++;
		if ((__u64)-age_ns > tally->negative_maximum_ns)
			tally->negative_maximum_ns = -age_ns;
		latency_ns = 0;
	}
	short_ns = latency_ns < 0xFFFFFFFE ? (__u32)latency_ns : 0xFFFFFFFE;
	line->received++;
	line->latency_sum_ns += latency_ns;
	if (short_ns < line->latency_minimum_ns)
		line->latency_minimum_ns = short_ns;
	if (short_ns > line->latency_maximum_ns)
		line->latency_maximum_ns = short_ns;
	if (in_order)
		count_variation(tally, line, short_ns);
	count_arrival(tally, place->now_ns);
	if (!tally->received)
		tally->is_rewritten = !has_own_addresses(context, place, stream);
	tally->received++;
	if (latency_ns > 0xFFFFFFFE) {
		if (!tally->beyond_least_ns || latency_ns < tally->beyond_least_ns)
			tally->beyond_least_ns = latency_ns;
		if (latency_ns > tally->beyond_most_ns)
			tally->beyond_most_ns = latency_ns;
	}
	count_latency(place,
		      stream->first_group + ((frame->signature.flow - stream->first_flow) >> (stream->group_shift & 31)),
		      latency_ns);
	if (latency_ns >= place->quiet_ns)
		count_latency(place, stream->shared_group, latency_ns);
}
