// When frames are due, as src/pacer.rs has it, and what is counted of them.
#pragma once

#include "generate_maps.h"

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

// Gives up frames that are too late to be made good, but the last that is due. Bounded: the rest follows at the next
// run.
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

// Finds the next sender that has a frame due, in turn: the one before `next_sender`. That stands in memory all along,
// so that the verifier does not follow each of its values.
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
	__u64 gap_ns, place;

	if (!sender)
		return 0;
	gap_ns = now_ns - sender->last_sent_ns;
	place = (__u64)index * GAP_BUCKETS + gap_bucket(gap_ns) % GAP_BUCKETS;
	// The last step must bound it: Linux 6.1 forgets the bounds of what is put together of two numbers of 32 bits.
	asm volatile("" : "+r"(place));
	gaps[place % (MAXIMUM_SENDERS * GAP_BUCKETS)]++;
	sender->gap_sum_ns += gap_ns;
	if (gap_ns < sender->gap_minimum_ns)
		sender->gap_minimum_ns = gap_ns;
	if (gap_ns > sender->gap_maximum_ns)
		sender->gap_maximum_ns = gap_ns;
	return 0;
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
	// Who was away when the trial began was away from then on.
	__u64 last_run_ns = progress.last_run_ns ?: settings.epoch_ns;

	if (now < settings.epoch_ns)
		return 0;
	progress.is_begun = 1;
	progress.now_ns = now - settings.epoch_ns;
	gap_ns = now - last_run_ns;
	if (gap_ns > progress.longest_gap_ns)
		progress.longest_gap_ns = gap_ns;
	if (gap_ns > settings.gap_floor_ns) {
		progress.total_gap_ns += gap_ns;
		progress.gaps++;
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
