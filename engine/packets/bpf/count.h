// Counts what a frame showed: the tally of its stream, the line of its flow, histograms, series and arrivals
// (src/analyser.rs, src/analyser/irregular.rs).
#pragma once

#include "order.h"

// A frame of a stream that is expected here, at this shard.
struct frame {
	struct signature signature;
	const struct stream *stream;
	struct tally *tally;
	struct line *line;
	__u32 number; // Of the stream.
	__u32 index; // Of the line.
};

// How long a frame was under way; negative where the clocks disagree (times in a signature have 40 bits).
static __always_inline __s64 elapsed(__u64 then_ns, __u64 now_ns)
{
	__u64 difference = (now_ns - then_ns) & TIME_MASK;

	return difference > TIME_MASK / 2 ? -(__s64)(TIME_MASK + 1 - difference) : (__s64)difference;
}

static __always_inline void add_saturating(__u32 *count)
{
	if (*count != 0xFFFFFFFF)
		*count += 1;
}

// Writes what the interval that has ended received, and begins the present one.
static __noinline void close_interval(const struct place *place, struct tally *tally, __u32 number)
{
	const struct config *config = place->config;
	__u32 first = (place->number * config->streams + number) * config->intervals;
	__u64 present = config->interval_ns ? place->now_ns / config->interval_ns : 0;
	struct interval *interval;

	if (tally->interval >= config->intervals)
		return;
	interval = AT(series, first + (__u32)tally->interval);
	if (interval) {
		interval->received += tally->received - tally->received_before;
		interval->missing += tally->missing - tally->missing_before;
	}
	tally->received_before = tally->received;
	tally->missing_before = tally->missing;
	if (present + 1 >= config->intervals) {
		tally->interval = config->intervals - 1;
		tally->interval_end_ns = ~0ULL;
		return;
	}
	tally->interval = present;
	tally->interval_end_ns = (present + 1) * config->interval_ns;
}

static __always_inline void count_jump(const struct place *place, const struct frame *frame, __u64 jumped)
{
	__s64 age_ns = elapsed(frame->signature.time_ns, place->now_ns);
	__u64 sent_ns = age_ns > 0 && (__u64)age_ns > place->now_ns ? 0 : place->now_ns - age_ns;

	frame->tally->missing += jumped;
	if (sent_ns + 1 > frame->tally->last_jump_ns)
		frame->tally->last_jump_ns = sent_ns + 1;
}

static __always_inline void count_foreign(const struct place *place)
{
	if (place->phase == RUNNING)
		place->shard->foreign++;
}

// Hands a frame that was overtaken to the engine, which knows whether only broken ones overtook it.
static __always_inline void count_reordered(const struct place *place, const struct frame *frame, __u64 sequence)
{
	struct event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event) {
		place->shard->events_lost++;
		frame->tally->reordered++;
		add_saturating(&frame->line->reordered);
		return;
	}
	event->kind = REORDERED;
	event->shard = place->number;
	event->stream = frame->number;
	event->flow = frame->signature.flow;
	event->numbers[0] = sequence;
	event->numbers[1] = frame->line->received;
	event->numbers[2] = frame->line->next;
	event->numbers[3] = opened_at(place->config, frame->index, (__u32)sequence);
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

// A frame with an intact signature and other bytes that were changed. Its sequence counts as seen.
static __noinline void count_corrupted(const struct place *place, const struct frame *frame)
{
	struct observed observed = { .index = frame->index };
	struct line *line = frame->line;
	struct tally *tally = frame->tally;
	struct event event = { .kind = ADVANCED, .shard = place->number, .stream = frame->number };

	event.numbers[0] = line->next;
	switch (observe_rare(place->config, line, frame->signature.sequence, &observed)) {
	case DUPLICATE:
		tally->duplicated++;
		add_saturating(&line->duplicated);
		return;
	case IMPOSSIBLE:
		count_foreign(place);
		return;
	case AHEAD:
		count_jump(place, frame, observed.number);
		/* fall through */
	case NEXT:
		line->last_latency_ns = NO_LATENCY;
		event.flow = frame->signature.flow;
		event.numbers[1] = line->next;
		submit(place->shard, &event);
		break;
	default:
		tally->missing--;
	}
	tally->corrupted++;
	add_saturating(&line->corrupted);
}

static __noinline void count_late(const struct place *place, const struct frame *frame)
{
	struct observed observed = { .index = frame->index };
	enum arrival arrival = observe(place->config, frame->line, frame->signature.sequence, &observed);

	if (arrival != DUPLICATE && arrival != IMPOSSIBLE)
		frame->tally->late++;
}

static __always_inline void count_latency(const struct place *place, __u32 histogram, __u64 latency_ns)
{
	__u64 kept_ns = latency_ns < HIGHEST_NS ? latency_ns : HIGHEST_NS;
	__u32 octave = bits_of((__u32)(kept_ns >> 11));
	__u32 index = (octave << 10) + (__u32)(kept_ns >> (octave & 31));
	struct histogram_block *block;
	__u32 *count;

	block = AT(histograms, (place->number * place->config->histograms + histogram) * HISTOGRAM_BLOCKS +
				       index / BLOCK_COUNTS);
	if (!block)
		return;
	count = &block->count[index & (BLOCK_COUNTS - 1)];
	*count += 1;
	if (!*count) {
		struct event event = { .kind = OVERFLOW, .shard = place->number };

		event.numbers[0] = histogram;
		event.numbers[1] = index;
		submit(place->shard, &event);
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
static __noinline int count_irregular(const struct place *place, const struct frame *frame, enum arrival arrival,
				      __u64 number)
{
	struct tally *tally = frame->tally;

	switch (arrival) {
	case AHEAD:
		count_jump(place, frame, number);
		return 1;
	case LATE_IN_ORDER:
		tally->missing--;
		count_reordered(place, frame, number);
		return 0;
	case TOO_OLD:
		tally->missing--;
		tally->reordered++;
		add_saturating(&frame->line->reordered);
		return 0;
	case DUPLICATE:
		tally->duplicated++;
		add_saturating(&frame->line->duplicated);
		return -1;
	default:
		count_foreign(place);
		return -1;
	}
}

static __always_inline void count_whole(const struct place *place, const struct frame *frame, __u64 quiet_ns)
{
	struct observed observed = { .index = frame->index };
	const struct stream *stream = frame->stream;
	struct tally *tally = frame->tally;
	struct line *line = frame->line;
	enum arrival arrival = observe(place->config, line, frame->signature.sequence, &observed);
	int in_order = arrival == NEXT ? 1 : count_irregular(place, frame, arrival, observed.number);
	__s64 age_ns = elapsed(frame->signature.time_ns, place->now_ns);
	__u64 latency_ns = age_ns;
	__u32 short_ns;

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
	if (latency_ns >= quiet_ns)
		count_latency(place, stream->shared_group, latency_ns);
}
