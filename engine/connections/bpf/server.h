// The server's end: it answers `GET /bytes/N` with N bytes, in as many segments as the peer's window takes.
#pragma once

#include "copy.h"

#define RECORDS_A_BUCKET 8
#define MOST_BODY 65536
#define HEAD_BYTES 44
#define CLOSING_HEAD_BYTES 64
#define SENT_SHIFT 20
#define MOST_DIGITS 6
#define MOST_SEGMENTS 10 // under way (RFC 6928)
#define MOST_UNDER_WAY 32000 // bytes
#define MOST_TAKEN 4 // free records that other CPUs may take before
#define REPEATS_OF_LOSS 3 // acknowledgements that repeat one say that what follows was lost

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct server);
} servers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct peer);
} peers SEC(".maps");

// What bodies are filled with; the process writes it once.
__u8 body[16384] SEC(".bss.body");

static __always_inline __u64 key_of(const struct segment *segment)
{
	__u64 ports = (__u64)segment->source << 16 | segment->destination;

	if (constants.is_ipv6)
		return scramble(segment->from[0] ^ scramble(segment->from[1] ^ ports)) | 1;
	return segment->from[0] << 32 | ports;
}

struct found {
	__u32 index; // of the record, or of a free one
	__u32 is_there;
	__u32 free; // records
};

static __always_inline int look_in_bucket(__u64 key, __u32 bucket, struct found *found)
{
	__u32 first = bucket * RECORDS_A_BUCKET;

	found->free = 0;
	for (__u32 number = 0; number < RECORDS_A_BUCKET; number++) {
		__u32 index = first + number;
		struct server *record = bpf_map_lookup_elem(&servers, &index);

		if (!record)
			return 0;
		if (record->key == key) {
			found->index = index;
			found->is_there = 1;
			return 1;
		}
		if (!record->key) {
			found->index = index;
			found->free++;
		}
	}
	return 0;
}

// Finds the record of a connection in its two buckets, or a free one in the emptier of them; whether there is either.
SHARED int find_record(__u64 key, struct found *found)
{
	__u64 hash = scramble(key);
	struct found other = {};

	if (!found || !settings.buckets)
		return 0;
	found->is_there = 0;
	if (look_in_bucket(key, (__u32)hash & (settings.buckets - 1), found))
		return 1;
	if (look_in_bucket(key, (__u32)(hash >> 32) & (settings.buckets - 1), &other) || other.free > found->free)
		*found = other;
	return found->is_there || found->free;
}

struct asked {
	__u32 body;
	__u32 closes;
};

// Reads `GET /bytes/N HTTP/1.1` and whether the connection ends; 0: another request, or none that is whole.
SHARED int read_request(struct xdp_md *context, __u32 at, __u32 bytes, struct asked *asked)
{
	__u32 zero = 0, number = 0, digits = 0, length = bytes < SCRATCH_BYTES ? bytes : SCRATCH_BYTES;
	struct scratch *scratch = bpf_map_lookup_elem(&scratch_map, &zero);
	__u8 tail[21];

	if (!scratch || !asked || length < 26 || length > SCRATCH_BYTES || at > 200 || bytes > 9600)
		return 0;
	if (bpf_xdp_load_bytes(context, at, scratch->bytes, sized(length, SCRATCH_BYTES)))
		return 0;
	if (bpf_xdp_load_bytes(context, at + bytes - sizeof(tail), tail, sizeof(tail)))
		return 0;
	// "GET /byt", "es", "/"
	if (*(__u64 *)scratch->bytes != 0x7479622F20544547ULL || *(__u16 *)(scratch->bytes + 8) != 0x7365 ||
	    scratch->bytes[10] != '/')
		return 0;
	for (; digits < MOST_DIGITS; digits++) {
		__u8 digit = scratch->bytes[11 + digits] - '0';

		if (digit > 9)
			break;
		number = number * 10 + digit;
	}
	if (!digits || number > MOST_BODY || scratch->bytes[(11 + digits) & 31] != ' ')
		return 0;
	if (tail[17] != '\r' || tail[18] != '\n' || tail[19] != '\r' || tail[20] != '\n')
		return 0;
	asked->body = number;
	asked->closes = tail[0] == 'C' && tail[10] == ':' && tail[12] == 'c' && tail[13] == 'l' && tail[16] == 'e';
	if (scratch->bytes[(19 + digits) & 31] == '0') // HTTP/1.0
		asked->closes = 1;
	return 1;
}

// Writes the head of an answer into the scratch memory; its length.
static __always_inline __u32 write_head(struct scratch *scratch, __u32 size, __u32 closes)
{
	const char plain[HEAD_BYTES + 1] = "HTTP/1.1 200 OK\r\nContent-Length: 0000000\r\n\r\n";
	const char last[CLOSING_HEAD_BYTES + 1] =
		"HTTP/1.1 200 OK\r\nContent-Length: 0000000\r\nConnection:  close\r\n\r\n";

	if (closes)
		__builtin_memcpy(scratch->bytes, last, CLOSING_HEAD_BYTES);
	else
		__builtin_memcpy(scratch->bytes, plain, HEAD_BYTES);
#pragma unroll
	for (int digit = 39; digit > 33; digit--) {
		scratch->bytes[digit] = '0' + size % 10;
		size /= 10;
	}
	return closes ? CLOSING_HEAD_BYTES : HEAD_BYTES;
}

static __always_inline __u32 head_bytes(__u32 ends)
{
	return ends ? CLOSING_HEAD_BYTES : HEAD_BYTES;
}

// Sends the first segment of a part in place of the frame; whether it could be written.
SHARED int write_answer(struct xdp_md *context, const struct part *part, struct outgoing *out)
{
	__u32 zero = 0, head, bytes, at, rest;
	struct scratch *scratch = bpf_map_lookup_elem(&scratch_map, &zero);

	if (!scratch || !part || !out)
		return 0;
	head = head_bytes(part->ends);
	bytes = part->to - part->from;
	out->flags = ACK;
	if (bytes > part->most)
		bytes = part->most;
	else
		out->flags |= (bytes ? PSH : 0) | (part->is_last ? FIN : 0);
	rest = bytes;
	out->bytes = bytes;
	out->sequence += part->from;
	at = make_room(context, out);
	if (!at) {
		out->sequence -= part->from;
		return 0;
	}
	out->sum = 0;
	if (bytes && !part->from) {
		write_head(scratch, part->body, part->ends);
		if (part->ends) {
			if (bpf_xdp_store_bytes(context, at, scratch->bytes, CLOSING_HEAD_BYTES))
				return 0;
		} else if (bpf_xdp_store_bytes(context, at, scratch->bytes, HEAD_BYTES)) {
			return 0;
		}
#pragma unroll
		for (int number = 0; number < CLOSING_HEAD_BYTES / 4; number++)
			if (number < HEAD_BYTES / 4 || part->ends)
				out->sum += ((__u32 *)scratch->bytes)[number];
		at += head;
		rest = bytes - head;
	}
	out->sum += sum_of_filling(rest);
	if (rest && bpf_xdp_store_bytes(context, at, body, sized(rest, sizeof(body))))
		return 0;
	return write_headers(context, out);
}

// Writes a segment into a copy of a frame.
SEC("xdp/devmap")
int copy_server(struct xdp_md *context)
{
	struct outgoing out;
	struct part part;
	int verdict;

	if (!read_copy(context, &part, &out, &verdict))
		return verdict;
	return write_answer(context, &part, &out) ? XDP_PASS : XDP_DROP;
}

static __always_inline __u16 sent_now(void)
{
	return ticks(bpf_ktime_get_ns()) >> SENT_SHIFT;
}

static __always_inline void change(struct server *record, __u32 state, __u32 flags)
{
	record->control = CONTROL(state, flags, USE(record->control)) | BUSY;
}

static __always_inline __u32 whole_of(const struct server *record)
{
	__u32 control = record->control;

	return STATE(control) == ASKED ? head_bytes(FLAGS(control) & LAST) + record->body : 0;
}

// Whether our FIN follows the bytes of the answer.
static __always_inline __u32 has_end(const struct server *record)
{
	__u32 state = STATE(record->control);

	return state == LAST_ACK || (state == ASKED && FLAGS(record->control) & (LAST | ENDED_BY_PEER));
}

// Decides what goes next: what the peer's window and ours leave room for, at most `most` bytes (RFC 9293 section 3.8.6.2.1:
// no short segment but the last, unless nothing is under way). How many segments these are.
static __always_inline __u32 plan(struct server *record, __u32 window, __u32 most, struct part *part)
{
	__u32 segment = USE(record->control), whole = whole_of(record), end = has_end(record);
	__u32 under_way = record->under_way, from = record->acknowledged + under_way, bytes;

	if (!segment)
		return 0;
	if (window > MOST_SEGMENTS * segment)
		window = MOST_SEGMENTS * segment;
	if (window > MOST_UNDER_WAY)
		window = MOST_UNDER_WAY;
	window = window > under_way ? window - under_way : 0;
	if (window > most)
		window = most;
	part->ends = FLAGS(record->control) & LAST;
	part->body = record->body;
	part->most = segment;
	if (from < whole && from < head_bytes(part->ends))
		from = 0; // the head is sent as a whole
	bytes = from < whole ? whole - from : 0;
	if (bytes > window) {
		if (window >= segment)
			bytes = window - window % segment;
		else
			bytes = under_way || window < LEAST_MSS ? 0 : window;
		if (!bytes)
			return 0;
	} else if (!bytes && (!end || from != whole)) {
		return 0;
	}
	part->from = from;
	part->to = from + bytes;
	part->is_last = end && part->to == whole;
	record->under_way = part->to + part->is_last - record->acknowledged;
	record->sent = sent_now();
	if (!record->tries)
		record->tries = 1;
	return bytes ? (bytes + segment - 1) / segment : 1;
}

static __always_inline void end_server(struct server *record)
{
	ADD(ENDED, 1);
	change(record, FREE, 0);
}

// Lets go of a record; another connection may take it where this one has ended.
static __always_inline void let_go_of(struct server *record)
{
	if (STATE(record->control)) {
		let_go(&record->control);
		return;
	}
	record->control = 0;
	record->tries = 0;
	__sync_lock_test_and_set(&record->key, 0);
}

// Takes the record of this connection, unless it has just ended; whether it could.
static __always_inline int claim_record(struct server *record, __u64 key)
{
	if (!STATE(claim(&record->control)))
		return 0;
	if (record->key == key)
		return 1;
	let_go(&record->control);
	return 0;
}

// Sends what goes next; else an acknowledgement, if one is due.
static __always_inline int go_on(struct xdp_md *context, struct server *record, __u32 window, __u32 most,
				 __u32 acknowledges, struct outgoing *out)
{
	struct part part = {};
	__u32 count = plan(record, window, most, &part);

	out->acknowledged = record->expected;
	out->sequence = record->first;
	if (count == 1 && write_answer(context, &part, out))
		return transmit(1);
	if (count)
		return send_copies(context, &part, out, count);
	if (!record->under_way && whole_of(record)) { // the window is shut
		change(record, ASKED, FLAGS(record->control) | SHUT);
		record->sent = sent_now();
		record->tries = 1;
	}
	if (!acknowledges)
		return XDP_DROP;
	out->sequence += record->acknowledged + record->under_way;
	out->flags = ACK;
	return write_bare(context, out);
}

// Sends what was not acknowledged once more, or asks for the window.
static __always_inline int repeat(struct xdp_md *context, struct server *record, struct outgoing *out)
{
	__u32 state = STATE(record->control);
	struct part part = {};

	ADD(RESENT, 1);
	record->sent = sent_now();
	out->acknowledged = record->expected;
	out->sequence = record->first;
	if (state == OPENING || FLAGS(record->control) & SHUT) {
		out->flags = state == OPENING ? SYN | ACK : ACK;
		out->sequence += record->acknowledged - 1;
		return write_bare(context, out);
	}
	record->under_way = 0;
	if (!plan(record, WINDOW, USE(record->control), &part))
		return XDP_DROP;
	return transmit(write_answer(context, &part, out));
}

// Keeps where frames to a neighbour go.
static __always_inline __u8 note_neighbour(const __u8 *mac)
{
	__u8 slot = mac[5] ^ mac[4];
	__u32 *known = (__u32 *)(neighbours + slot * 8), front;
	__u16 back;

	__builtin_memcpy(&front, mac, sizeof(front));
	__builtin_memcpy(&back, mac + sizeof(front), sizeof(back));
	if (known[0] != front || known[1] != back) {
		known[0] = front;
		known[1] = back;
	}
	return slot;
}

// Begins a connection in a record that is this CPU's.
static __always_inline int begin(struct xdp_md *context, struct server *record, struct segment *segment, __u32 index,
				 struct outgoing *out)
{
	__u32 mss = read_mss(context, segment->data);

	ADD(TAKEN, 1);
	if (constants.is_ipv6) {
		struct peer *peer = bpf_map_lookup_elem(&peers, &index);

		if (peer) {
			__builtin_memcpy(peer->address, segment->from, sizeof(peer->address));
			peer->remote = segment->source;
			peer->local = segment->destination;
		}
	}
	if (mss > settings.segment_bytes)
		mss = settings.segment_bytes;
	record->first = (__u32)scramble(record->key ^ bpf_ktime_get_ns() ^ settings.seed) + 1;
	record->expected = segment->sequence + 1;
	record->body = 0;
	record->repeats = 0;
	record->acknowledged = 0;
	record->under_way = 0;
	record->sent = sent_now();
	record->neighbour = note_neighbour(segment->mac);
	record->tries = 1;
	record->control = CONTROL(OPENING, 0, mss) | BUSY;
	out->flags = SYN | ACK;
	out->sequence = record->first - 1;
	out->acknowledged = record->expected;
	return write_bare(context, out);
}

// A SYN for a connection that is there.
static __always_inline int accept_again(struct xdp_md *context, struct server *record, struct segment *segment,
					__u32 index, struct outgoing *out)
{
	if (STATE(record->control) == OPENING && record->expected == segment->sequence + 1)
		return repeat(context, record, out);
	ADD(REPEATED, 1);
	if ((__s32)(segment->sequence - record->expected) >= 0) { // the peer has forgotten that connection
		ADD(ENDED, 1);
		return begin(context, record, segment, index, out);
	}
	out->sequence = record->first + record->acknowledged + record->under_way; // RFC 5961 section 4
	out->acknowledged = record->expected;
	out->flags = ACK;
	return write_bare(context, out);
}

static __always_inline int reset(struct xdp_md *context, struct outgoing *out)
{
	ADD(NOT_EXPECTED, 1);
	out->flags = RST | ACK;
	return write_bare(context, out);
}

// A segment of no connection that is known: a FIN whose acknowledgement was lost is acknowledged, as in TIME-WAIT.
static __always_inline int answer_stranger(struct xdp_md *context, struct segment *segment, struct outgoing *out)
{
	out->sequence = segment->acknowledged;
	out->acknowledged = segment->sequence + segment->bytes + (segment->flags & FIN ? 1 : 0);
	if (segment->flags & RST)
		return XDP_DROP;
	if (!(segment->flags & FIN))
		return reset(context, out);
	ADD(REPEATED, 1);
	out->flags = ACK;
	return write_bare(context, out);
}

// All of an answer, or our FIN, has arrived; whether the connection has ended with that.
static __always_inline int finish(struct server *record, __u32 end)
{
	__u32 flags = FLAGS(record->control);

	if (has_end(record) && flags & ENDED_BY_PEER) {
		end_server(record);
		return 1;
	}
	record->tries = has_end(record); // the peer's FIN is to come
	change(record, has_end(record) ? CLOSING : IDLE, 0);
	record->first += end;
	record->acknowledged = 0;
	return 0;
}

// Reads the acknowledgement of a segment, in a connection that stands; how many bytes are new in it.
static __always_inline __u32 take_acknowledgement(struct server *record, const struct segment *segment)
{
	__u32 end = whole_of(record) + has_end(record), arrived = segment->acknowledged - record->first;
	__u32 before = record->acknowledged, sent = before + record->under_way;

	if (arrived > end)
		return 0; // an old one
	if (arrived <= before) {
		if (arrived == before && record->under_way && !segment->bytes && !(segment->flags & FIN) &&
		    record->repeats < REPEATS_OF_LOSS + 1)
			record->repeats++;
		return 0;
	}
	record->acknowledged = arrived;
	record->under_way = sent > arrived ? sent - arrived : 0;
	record->repeats = 0;
	record->tries = record->under_way ? 1 : 0;
	record->sent = sent_now();
	return arrived - before;
}

static __always_inline int step_server(struct xdp_md *context, struct server *record, struct segment *segment,
				       struct outgoing *out)
{
	__u32 state = STATE(record->control), flags, arrived = 0, most = USE(record->control);
	struct asked asked = {};

	if (segment->flags & RST) {
		if (segment->sequence == record->expected)
			end_server(record);
		return XDP_DROP;
	}
	if (!(segment->flags & ACK))
		return XDP_DROP;
	if (state == OPENING) {
		if (segment->acknowledged != record->first)
			return XDP_DROP;
		ADD(ACCEPTED, 1);
		record->tries = 0;
		change(record, IDLE, 0);
	} else {
		arrived = take_acknowledgement(record, segment);
		if (arrived && record->acknowledged == whole_of(record) + has_end(record) &&
		    finish(record, record->acknowledged))
			return XDP_DROP;
	}
	flags = FLAGS(record->control) & ~SHUT;
	state = STATE(record->control);
	change(record, state, flags);
	if (segment->sequence != record->expected &&
	    (segment->bytes || segment->flags & FIN || segment->sequence + 1 == record->expected)) {
		ADD(REPEATED, 1);
		return go_on(context, record, segment->window, 0, 1, out);
	}
	if (segment->bytes) {
		if (state != IDLE || !read_request(context, segment->data, segment->bytes, &asked)) {
			out->sequence = record->first + record->acknowledged + record->under_way;
			out->acknowledged = record->expected;
			end_server(record);
			return reset(context, out);
		}
		ADD(REQUESTS, 1);
		record->expected += segment->bytes;
		record->body = asked.body;
		state = ASKED;
		flags = asked.closes ? LAST : 0;
		change(record, state, flags);
	}
	if (segment->flags & FIN) {
		record->expected++;
		if (state == CLOSING) {
			out->sequence = record->first;
			out->acknowledged = record->expected;
			out->flags = ACK;
			end_server(record);
			return write_bare(context, out);
		}
		change(record, state == IDLE ? LAST_ACK : state, flags | ENDED_BY_PEER);
	}
	if (segment->bytes || segment->flags & FIN)
		return go_on(context, record, segment->window, MOST_COPIES * most, 1, out);
	if (record->repeats == REPEATS_OF_LOSS) { // RFC 5681 section 3.2
		record->repeats++;
		return repeat(context, record, out);
	}
	if (!arrived && record->under_way)
		return XDP_DROP;
	arrived = arrived > 3 * most ? 4 * most : arrived + most; // slow start
	return go_on(context, record, segment->window, arrived, 0, out);
}

SEC("xdp")
int server(struct xdp_md *context)
{
	struct outgoing out = {};
	struct segment segment;
	struct sums sums = {};
	struct found found = {};
	struct server *record;
	__u64 key;
	int action, is_new = 0;

	switch (read_segment(context, &segment)) {
	case NOT_OURS:
		return XDP_PASS;
	case BROKEN:
		ADD(DAMAGED, 1);
		return XDP_DROP;
	default:
		break;
	}
	if ((__u16)(segment.destination - settings.first_port) >= settings.ports)
		return XDP_PASS;
	if (segment.bytes && !sum_data(context, segment.data, segment.bytes, segment.bytes, &sums))
		return XDP_DROP;
	if (!is_intact(context, &segment, sums.sum)) {
		ADD(DAMAGED, 1);
		return XDP_DROP;
	}
	out.to[0] = segment.from[0];
	out.to[1] = segment.from[1];
	out.source = segment.destination;
	out.destination = segment.source;
	__builtin_memcpy(out.mac, segment.mac, ETH_ALEN);
	key = key_of(&segment);
	record = find_record(key, &found) ? bpf_map_lookup_elem(&servers, &found.index) : NULL;
	if ((segment.flags & (SYN | ACK | RST)) == SYN) {
		for (int turn = 0; turn < MOST_TAKEN && record && !found.is_there && !is_new; turn++) {
			is_new = !__sync_val_compare_and_swap(&record->key, 0, key);
			if (!is_new) // another CPU took it
				record = find_record(key, &found) ? bpf_map_lookup_elem(&servers, &found.index) : NULL;
		}
		if (!record || (!is_new && !found.is_there)) {
			ADD(FULL, 1);
			return XDP_DROP;
		}
	} else if (!found.is_there) {
		return answer_stranger(context, &segment, &out);
	}
	if (!record || (!is_new && !claim_record(record, key)))
		return XDP_DROP;
	if (is_new)
		action = begin(context, record, &segment, found.index, &out);
	else if ((segment.flags & (SYN | ACK | RST)) == SYN)
		action = accept_again(context, record, &segment, found.index, &out);
	else
		action = step_server(context, record, &segment, &out);
	let_go_of(record);
	return action;
}

// Sends what the process found to be unacknowledged for too long, or gives up.
static __always_inline int send_waiting(struct xdp_md *context, struct server *record, __u32 slot, __u32 kind)
{
	struct outgoing out = {};

	if (constants.is_ipv6) {
		struct peer *peer = bpf_map_lookup_elem(&peers, &slot);

		if (!peer)
			return XDP_DROP;
		__builtin_memcpy(out.to, peer->address, sizeof(out.to));
		out.source = peer->local;
		out.destination = peer->remote;
	} else {
		out.to[0] = record->key >> 32;
		out.source = record->key;
		out.destination = record->key >> 16;
	}
	__builtin_memcpy(out.mac, neighbours + record->neighbour * 8, ETH_ALEN);
	if (kind == GIVE_UP) {
		out.sequence = record->first + record->acknowledged + record->under_way;
		out.acknowledged = record->expected;
		out.flags = RST | ACK;
		end_server(record);
		return write_bare(context, &out);
	}
	record->tries++;
	return repeat(context, record, &out);
}

SEC("xdp")
int send_server(struct xdp_md *context)
{
	__u32 urgent = progress[0].urgent, key = urgent % URGENT, slot;
	struct work *work = bpf_map_lookup_elem(&urgent_map, &key);
	struct server *record;
	int action = XDP_DROP;

	if (!work || urgent == written[0].urgent)
		return XDP_DROP;
	slot = work->slot;
	record = bpf_map_lookup_elem(&servers, &slot);
	if (record && STATE(claim(&record->control))) {
		if (record->tries == work->use)
			action = send_waiting(context, record, slot, work->kind);
		let_go_of(record);
	}
	progress[0].urgent = urgent + 1;
	return action;
}
