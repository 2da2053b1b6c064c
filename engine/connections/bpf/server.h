// The server's end: it answers `GET /bytes/N` with N bytes, a segment for each acknowledgement.
#pragma once

#include "segment.h"

#define RECORDS_A_BUCKET 8
#define MOST_BODY 65536
#define HEAD_BYTES 44
#define CLOSING_HEAD_BYTES 64
#define SENT_SHIFT 20
#define MOST_DIGITS 6

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
};

// Finds the record of a connection in its two buckets, or a free one in the emptier of them.
__attribute__((noinline)) int find_record(__u64 key, struct found *found)
{
	__u64 hash = scramble(key);
	__u32 place[2], free[2] = {}, count[2] = {};

	if (!found || !settings.buckets)
		return 0;
	place[0] = ((__u32)hash & (settings.buckets - 1)) * RECORDS_A_BUCKET;
	place[1] = ((__u32)(hash >> 32) & (settings.buckets - 1)) * RECORDS_A_BUCKET;
#pragma unroll
	for (int which = 0; which < 2; which++) {
		for (__u32 number = 0; number < RECORDS_A_BUCKET; number++) {
			__u32 index = place[which] + number;
			struct server *record = bpf_map_lookup_elem(&servers, &index);

			if (!record)
				return 0;
			if (record->key == key) {
				found->index = index;
				found->is_there = 1;
				return 1;
			}
			if (!record->key) {
				free[which] = index;
				count[which]++;
			}
		}
	}
	found->is_there = 0;
	found->index = count[0] >= count[1] ? free[0] : free[1];
	return count[0] || count[1];
}

struct asked {
	__u32 body;
	__u32 closes;
};

// Reads `GET /bytes/N HTTP/1.1` and whether the connection ends; 0: another request, or none that is whole.
__attribute__((noinline)) int read_request(struct xdp_md *context, __u32 at, __u32 bytes, struct asked *asked)
{
	__u32 zero = 0, number = 0, digits = 0, length = bytes < SCRATCH_BYTES ? bytes : SCRATCH_BYTES;
	struct scratch *scratch = bpf_map_lookup_elem(&scratch_map, &zero);
	__u8 tail[21];

	if (!scratch || !asked || length < 26 || length > SCRATCH_BYTES || at > 200 || bytes > 9600)
		return 0;
	if (bpf_xdp_load_bytes(context, at, scratch->bytes, length))
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

static __always_inline __u32 head_of(const struct server *record)
{
	return FLAGS(record->control) & CLOSES ? CLOSING_HEAD_BYTES : HEAD_BYTES;
}

// Sends so many bytes of the answer, of which `left` come after them.
static __always_inline int write_part(struct xdp_md *context, struct server *record, __u32 bytes, __u32 left,
				      struct outgoing *out)
{
	__u32 head = head_of(record), whole = head + record->body, zero = 0, at, rest = bytes;
	struct scratch *scratch = bpf_map_lookup_elem(&scratch_map, &zero);

	if (!scratch)
		return XDP_ABORTED;
	out->flags = ACK | (left ? 0 : PSH);
	if (!left && FLAGS(record->control) & CLOSES)
		out->flags |= FIN;
	out->bytes = bytes;
	at = make_room(context, out);
	if (!at)
		return XDP_ABORTED;
	out->sum = 0;
	if (bytes + left == whole) {
		write_head(scratch, record->body, head == CLOSING_HEAD_BYTES);
		if (head == CLOSING_HEAD_BYTES) {
			if (bpf_xdp_store_bytes(context, at, scratch->bytes, CLOSING_HEAD_BYTES))
				return XDP_ABORTED;
		} else if (bpf_xdp_store_bytes(context, at, scratch->bytes, HEAD_BYTES)) {
			return XDP_ABORTED;
		}
#pragma unroll
		for (int number = 0; number < CLOSING_HEAD_BYTES / 4; number++)
			if (number < HEAD_BYTES / 4 || head == CLOSING_HEAD_BYTES)
				out->sum += ((__u32 *)scratch->bytes)[number];
		at += head;
		rest = bytes - head;
	}
	out->sum += sum_of_filling(rest);
	if (rest >= 1 && rest <= sizeof(body) && bpf_xdp_store_bytes(context, at, body, rest))
		return XDP_ABORTED;
	return write_headers(context, out);
}

static __always_inline __u16 sent_now(void)
{
	return ticks(bpf_ktime_get_ns()) >> SENT_SHIFT;
}

static __always_inline int send_next(struct xdp_md *context, struct server *record, struct outgoing *out)
{
	__u32 bytes = record->left < settings.segment_bytes ? record->left : settings.segment_bytes;
	__u32 left = record->left - bytes, closes = FLAGS(record->control) & CLOSES && !left;
	int action;

	out->sequence = record->next;
	out->acknowledged = record->expected;
	action = write_part(context, record, bytes, left, out);
	record->next += bytes + (closes ? 1 : 0);
	record->left = left;
	record->under_way = 1;
	record->sent = sent_now();
	record->control = CONTROL(closes ? CLOSING : ASKED, FLAGS(record->control), 0);
	return action == XDP_ABORTED ? postpone(out->slot) : action;
}

// Sends what was not acknowledged once more.
static __always_inline int send_last(struct xdp_md *context, struct server *record, struct outgoing *out)
{
	__u32 whole = head_of(record) + record->body, state = STATE(record->control), most = settings.segment_bytes, bytes;
	int action;

	record->sent = sent_now();
	out->acknowledged = record->expected;
	if (state == OPENING || state == LAST_ACK) {
		out->flags = state == OPENING ? SYN | ACK : FIN | ACK;
		out->sequence = record->next - 1;
		return write_bare(context, out);
	}
	if (!most)
		return XDP_ABORTED;
	bytes = record->left ? most : (whole - 1) % most + 1;
	out->sequence = record->next - bytes - (state == CLOSING ? 1 : 0);
	action = write_part(context, record, bytes, record->left, out);
	return action == XDP_ABORTED ? postpone(out->slot) : action;
}

static __always_inline int repeat_last(struct xdp_md *context, struct server *record, struct outgoing *out)
{
	ADD(RESENT, 1);
	return send_last(context, record, out);
}

static __always_inline void free_record(struct server *record)
{
	record->control = 0;
	record->key = 0;
	ADD(ENDED, 1);
}

static __always_inline int accept(struct xdp_md *context, struct segment *segment, struct found *found, int is_known,
				  struct outgoing *out)
{
	struct server *record = bpf_map_lookup_elem(&servers, &found->index);
	__u64 key = key_of(segment);
	__u32 slot;

	if (!record || !is_known) {
		ADD(FULL, 1);
		return XDP_DROP;
	}
	if (found->is_there && STATE(record->control) == OPENING && record->expected == segment->sequence + 1)
		return repeat_last(context, record, out);
	if (!found->is_there && __sync_val_compare_and_swap(&record->key, 0, key)) {
		ADD(FULL, 1);
		return XDP_DROP; // another CPU took it; the SYN comes again
	}
	slot = segment->mac[5] ^ segment->mac[4];
	__builtin_memcpy(neighbours + (slot & 0xFF) * 8, segment->mac, ETH_ALEN);
	if (constants.is_ipv6) {
		struct peer *peer = bpf_map_lookup_elem(&peers, &found->index);

		if (peer) {
			__builtin_memcpy(peer->address, segment->from, sizeof(peer->address));
			peer->remote = segment->source;
			peer->local = segment->destination;
		}
	}
	record->next = (__u32)scramble(key ^ bpf_ktime_get_ns() ^ settings.seed) + 1;
	record->expected = segment->sequence + 1;
	record->left = 0;
	record->body = 0;
	record->sent = sent_now();
	record->neighbour = slot;
	record->under_way = 1;
	record->control = CONTROL(OPENING, 0, 0);
	out->flags = SYN | ACK;
	out->sequence = record->next - 1;
	out->acknowledged = record->expected;
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

static __always_inline int step_server(struct xdp_md *context, struct server *record, struct segment *segment,
				       struct outgoing *out)
{
	__u32 state = STATE(record->control);
	struct asked asked = {};

	out->sequence = record->next;
	out->acknowledged = record->expected;
	if (segment->flags & RST) {
		if (segment->sequence == record->expected)
			free_record(record);
		return XDP_DROP;
	}
	if (segment->flags & ACK && segment->acknowledged == record->next && record->under_way) {
		record->under_way = 0;
		if (state == OPENING) {
			ADD(ACCEPTED, 1);
			state = IDLE;
		} else if (state == LAST_ACK) {
			free_record(record);
			return XDP_DROP;
		} else if (state == ASKED && !record->left) {
			state = IDLE;
		}
		record->control = CONTROL(state, FLAGS(record->control), 0);
	}
	if (segment->sequence != record->expected) {
		if (!segment->bytes && !(segment->flags & FIN))
			return XDP_DROP;
		ADD(REPEATED, 1);
		if (record->under_way && segment->sequence + segment->bytes == record->expected)
			return repeat_last(context, record, out);
		out->flags = ACK;
		return write_bare(context, out);
	}
	if (segment->bytes) {
		if (state != IDLE || !read_request(context, segment->data, segment->bytes, &asked)) {
			free_record(record);
			return reset(context, out);
		}
		ADD(REQUESTS, 1);
		record->expected += segment->bytes;
		record->body = asked.body;
		record->control = CONTROL(ASKED, asked.closes ? CLOSES : 0, 0);
		record->left = head_of(record) + asked.body;
		return send_next(context, record, out);
	}
	if (segment->flags & FIN) {
		out->acknowledged = ++record->expected;
		out->flags = ACK;
		if (state == CLOSING) {
			free_record(record);
			return write_bare(context, out);
		}
		out->flags |= FIN;
		record->next++;
		record->under_way = 1;
		record->sent = sent_now();
		record->control = CONTROL(LAST_ACK, 0, 0);
		return write_bare(context, out);
	}
	if (state == ASKED && record->left && !record->under_way)
		return send_next(context, record, out);
	return XDP_DROP;
}

SEC("xdp")
int server(struct xdp_md *context)
{
	struct outgoing out = {};
	struct segment segment;
	struct sums sums = {};
	struct found found = {};
	struct server *record;
	int is_known;

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
	is_known = find_record(key_of(&segment), &found);
	out.slot = found.index;
	if ((segment.flags & (SYN | ACK | RST)) == SYN)
		return accept(context, &segment, &found, is_known, &out);
	if (!found.is_there)
		return answer_stranger(context, &segment, &out);
	record = bpf_map_lookup_elem(&servers, &found.index);
	if (!record)
		return XDP_DROP;
	return step_server(context, record, &segment, &out);
}

// Sends what was not acknowledged once more, or for the first time, or gives up.
static __always_inline int send_waiting(struct xdp_md *context, __u32 slot, __u32 kind)
{
	struct outgoing out = { .slot = slot };
	struct server *record = bpf_map_lookup_elem(&servers, &slot);

	if (!record || !record->key || !record->under_way)
		return XDP_DROP;
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
		out.sequence = record->next;
		out.acknowledged = record->expected;
		out.flags = RST | ACK;
		free_record(record);
		return write_bare(context, &out);
	}
	if (kind == RESEND) {
		record->under_way++;
		ADD(RESENT, 1);
	}
	return send_last(context, record, &out);
}

// Sends what did not fit, and what the process found to be unacknowledged for too long.
SEC("xdp")
int send_server(struct xdp_md *context)
{
	__u32 urgent = progress.urgent, key = urgent % URGENT, slot;
	struct work *work = bpf_map_lookup_elem(&urgent_map, &key);
	struct server *record;
	int action;

	if (take_postponed(&slot))
		return send_waiting(context, slot, 0);
	if (!work || urgent == settings.urgent)
		return XDP_DROP;
	slot = work->slot;
	record = bpf_map_lookup_elem(&servers, &slot);
	action = record && record->under_way == work->use ? send_waiting(context, slot, work->kind) : XDP_DROP;
	progress.urgent = urgent + 1;
	return action;
}
