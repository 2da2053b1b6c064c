// The client's end: what follows from a segment of the server, and what the process asks to be sent.
#pragma once

#include "copy.h"

#define UNKNOWN 0xFFFFFFFF // bytes of the body, before the head was read
#define END_OF_HEAD 0x0A0D0A0D // "\r\n\r\n"
#define LEAST_HEAD 19 // "HTTP/1.1 200 \r\n\r\n" and what tells its length

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct client);
} clients SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, PLANNED);
	__type(key, __u32);
	__type(value, struct work);
} planned_map SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, KINDS_OF_TIMES *TIMES_BUCKETS); // of each copy
	__type(key, __u32);
	__type(value, __u64);
} times_map SEC(".maps");

static __always_inline void add_time(enum times kind, __u64 ns)
{
	__u32 shift, key, copy = bpf_get_smp_processor_id() & (constants.copies - 1);
	__u64 *count;

	if (ns >> TIMES_BITS)
		ns = (1ULL << TIMES_BITS) - 1;
	shift = ns >> 11 ? bits_of(ns >> 11) : 0;
	key = (copy * KINDS_OF_TIMES + kind) * TIMES_BUCKETS + shift * 1024 + (__u32)(ns >> shift);
	count = bpf_map_lookup_elem(&times_map, &key);
	if (count)
		__sync_fetch_and_add(count, 1);
}

static __always_inline __u64 since(__u64 then_ns, __u64 now_ns)
{
	return now_ns > then_ns ? now_ns - then_ns : 0;
}

static __always_inline void change_client(struct client *connection, __u32 state, __u32 flags)
{
	__u32 control = connection->control;

	connection->control = CONTROL(state, flags, USE(control)) | (control & (BUSY | BEGUN_LATE));
}

static __always_inline void end_client(struct client *connection)
{
	if (STATE(connection->control) != OPENING)
		ADD(ENDED, 1);
	change_client(connection, FREE, 0);
}

static __always_inline void fail(struct client *connection, enum failure failure)
{
	__u32 control = connection->control, is_late = failure <= CONNECT_TIMEOUT && control & BEGUN_LATE;
	__u32 place = FAILED + 2 * (is_late ? LATE : failure) + (FLAGS(control) & MEASURED);

	SEEN(place);
	if (place < COUNTERS)
		ADD(place, 1);
	end_client(connection);
}

// Whether the present exchange asks the server to end the connection.
static __always_inline __u32 is_last(const struct client *connection, __u32 control)
{
	return FLAGS(control) & CLOSES && connection->exchanges == 1 && !settings.resets;
}

static __always_inline __u32 request_bytes(const struct client *connection, __u32 control)
{
	return requests[connection->object % OBJECTS].bytes[is_last(connection, control) & 1];
}

// Writes a request in place of the frame; whether it could.
static __always_inline int write_request(struct xdp_md *context, __u32 object, __u32 last, struct outgoing *out)
{
	struct request *request = &requests[object % OBJECTS];
	__u32 bytes = request->bytes[last & 1], at;

	if (bytes < 1 || bytes > MOST_REQUEST)
		return 0;
	out->flags = ACK | PSH;
	out->bytes = bytes;
	out->sum = request->sums[last & 1];
	at = make_room(context, out);
	if (!at || bpf_xdp_store_bytes(context, at, request->text[last & 1], sized(bytes, MOST_REQUEST)))
		return 0;
	return write_headers(context, out);
}

// Writes a request into a copy of a frame.
SEC("xdp/devmap")
int copy_client(struct xdp_md *context)
{
	struct outgoing out;
	struct part part;
	int verdict;

	if (!read_copy(context, &part, &out, &verdict))
		return verdict;
	return write_request(context, part.body, part.ends, &out) ? XDP_PASS : XDP_DROP;
}

// Sends the request of the present exchange. A peer takes 536 bytes in a segment (RFC 1122 section 4.2.2.6), which is more.
static __always_inline int send_request(struct xdp_md *context, struct client *connection, struct outgoing *out)
{
	struct part part = { .body = connection->object, .ends = is_last(connection, connection->control) & 1 };

	if (write_request(context, part.body, part.ends, out))
		return transmit(1);
	return send_copies(context, &part, out, 1);
}

// Begins an exchange; its request waits where the peer's window is too small for it.
static __always_inline int ask(struct xdp_md *context, struct client *connection, __u32 flags, __u32 window,
			       __u64 now_ns, struct outgoing *out)
{
	flags &= ~(ACKNOWLEDGED | BEGUN | NARROW);
	connection->sent = ticks(now_ns);
	connection->left = UNKNOWN;
	change_client(connection, ASKED, flags);
	out->sequence = connection->next;
	out->flags = ACK;
	if (window < request_bytes(connection, connection->control)) {
		change_client(connection, ASKED, flags | NARROW);
		return write_bare(context, out);
	}
	connection->next += request_bytes(connection, connection->control);
	return send_request(context, connection, out);
}

struct sums {
	__u64 sum; // of all 16-bit words
	__u32 differs; // whether a byte from `from` on is not FILLING
	__u32 padding;
};

#define WORDS_OF_PIECE (SCRATCH_BYTES / 8)
#define MOST_PIECES 19 // of a segment

// Adds up to 512 bytes, and whether any of them is not FILLING. They are read into memory that is full of it.
SHARED int add_piece(struct xdp_md *context, __u32 at, __u32 bytes, struct sums *sums)
{
	__u32 zero = 0, behind = SCRATCH_BYTES - bytes;
	struct scratch *scratch = bpf_map_lookup_elem(&scratch_map, &zero);
	__u64 sum = 0, differs = 0, *words;

	if (!scratch || !sums)
		return 0;
	words = (__u64 *)scratch->bytes;
	for (int number = 0; number < WORDS_OF_PIECE; number++)
		words[number] = 0x7878787878787878ULL;
	if (bytes < 1 || bytes > SCRATCH_BYTES || at > 0x3FFF ||
	    bpf_xdp_load_bytes(context, at, scratch->bytes, sized(bytes, SCRATCH_BYTES)))
		return 0;
	for (int number = 0; number < WORDS_OF_PIECE; number++) {
		sum += (words[number] & 0xFFFFFFFF) + (words[number] >> 32);
		differs |= words[number] ^ 0x7878787878787878ULL;
	}
	// What stands behind an odd number of bytes begins with the second byte of a word.
	sums->sum += sum - (__u64)(behind / 2) * WORD_OF_FILLING - (behind % 2 ? FILLING << 8 : 0);
	sums->differs = differs != 0;
	return 1;
}

// Adds up the data of a segment, and compares what is behind its first `from` bytes with what bodies are filled with.
SHARED int sum_data(struct xdp_md *context, __u32 at, __u32 bytes, __u32 from, struct sums *sums)
{
	__u32 first = bytes < SCRATCH_BYTES ? bytes : SCRATCH_BYTES, differs;
	struct sums body = {};

	if (!sums || !add_piece(context, at, first, sums))
		return 0;
	if (from && from < first) {
		if (!add_piece(context, at + from, first - from, &body))
			return 0;
		sums->differs = body.differs;
	} else if (from) {
		sums->differs = 0;
	}
	differs = sums->differs;
	for (__u32 piece = 1; piece < MOST_PIECES; piece++) {
		__u32 before = piece * SCRATCH_BYTES, rest = bytes - before;

		if (before >= bytes)
			break;
		if (!add_piece(context, at + before, rest < SCRATCH_BYTES ? rest : SCRATCH_BYTES, sums))
			return 0;
		differs |= sums->differs;
	}
	sums->differs = differs;
	return 1;
}

// The length of the head of an answer with status 200 at the front of this data; 0: there is no whole head; -1: another
// status.
SHARED int read_head(struct xdp_md *context, __u32 at, __u32 bytes)
{
	__u32 zero = 0, length = bytes < SCRATCH_BYTES ? bytes : SCRATCH_BYTES;
	struct scratch *scratch = bpf_map_lookup_elem(&scratch_map, &zero);

	if (!scratch || length < LEAST_HEAD || length > SCRATCH_BYTES || at > 200)
		return 0;
	if (bpf_xdp_load_bytes(context, at, scratch->bytes, sized(length, SCRATCH_BYTES)))
		return 0;
	if (*(__u32 *)scratch->bytes != 0x50545448 || scratch->bytes[4] != '/' || scratch->bytes[5] != '1')
		return 0; // "HTTP/1"
	if (scratch->bytes[9] != '2' || scratch->bytes[10] != '0' || scratch->bytes[11] != '0')
		return -1;
	for (__u32 number = LEAST_HEAD - 4; number < SCRATCH_BYTES - 4; number++) {
		if (number + 4 > length)
			break;
		if (*(__u32 *)(scratch->bytes + number) == END_OF_HEAD)
			return number + 4;
	}
	return 0;
}

static __always_inline int in_sustain(__u64 now_ns)
{
	return now_ns >= settings.sustain_from_ns && now_ns < settings.sustain_to_ns;
}

// An answer is whole: the next exchange, or the end.
static __always_inline int complete(struct xdp_md *context, struct client *connection, __u32 flags, __u32 is_end,
				    __u32 window, __u64 now_ns, struct outgoing *out)
{
	__u32 measured = flags & MEASURED;

	connection->exchanges--;
	if (connection->exchanges) {
		if (!is_end)
			return ask(context, connection, flags & ~TIMED, window, now_ns, out);
		fail(connection, SHORT);
		out->flags = RST | ACK;
		return write_bare(context, out);
	}
	if (flags & KEPT)
		ADD(KEPT_ANSWERED, 1);
	else
		ADD(COMPLETED + measured, 1);
	if (flags & HELD)
		ADD(HELD_ANSWERED, 1);
	else if (measured)
		add_time(LAST_BYTE, since(connection->due_ns, now_ns));
	if (measured && !(flags & (KEPT | HELD)) && now_ns < settings.sustain_to_ns)
		ADD(IN_TIME, 1);
	if (flags & CLOSES && settings.resets) {
		end_client(connection);
		out->flags = RST | ACK;
		return write_bare(context, out);
	}
	out->flags = ACK;
	if (is_end) {
		out->flags |= FIN;
		connection->next++;
		change_client(connection, LAST_ACK, flags & ~ACKNOWLEDGED);
	} else if (flags & CLOSES) {
		change_client(connection, CLOSING, flags);
	} else {
		change_client(connection, IDLE, flags | (window < MOST_REQUEST ? NARROW : 0));
	}
	connection->sent = ticks(now_ns);
	return write_bare(context, out);
}

// Data, or the end of the stream, in its order while an answer is expected.
static __always_inline int take_answer(struct xdp_md *context, struct client *connection, struct segment *segment,
				       struct sums *sums, int head, __u64 now_ns, struct outgoing *out)
{
	__u32 flags = FLAGS(connection->control), is_end = segment->flags & FIN, body;
	enum failure failure = FAILURES;

	if (segment->bytes) {
		if (connection->left == UNKNOWN) {
			if (head <= 0)
				failure = head < 0 ? STATUS : NOT_HTTP;
			connection->left = requests[connection->object % OBJECTS].body;
		}
		body = segment->bytes - head;
		if (failure == FAILURES && body > connection->left)
			failure = LENGTH;
		if (failure == FAILURES && sums->differs)
			failure = CONTENT;
		if (!(flags & BEGUN)) {
			flags |= BEGUN;
			if (flags & TIMED && flags & MEASURED)
				add_time(FIRST_BYTE, since(connection->due_ns, now_ns));
		}
		if (failure == FAILURES) {
			connection->left -= body;
			ADD(ALL_BYTES, body);
			if (in_sustain(now_ns))
				ADD(BODY_BYTES, body);
		}
	}
	connection->expected += segment->bytes + (is_end ? 1 : 0);
	out->acknowledged = connection->expected;
	if (failure == FAILURES && connection->left == 0)
		return complete(context, connection, flags, is_end, segment->window, now_ns, out);
	if (failure == FAILURES && is_end)
		failure = SHORT;
	if (failure != FAILURES) {
		fail(connection, failure);
		out->flags = RST | ACK;
		return write_bare(context, out);
	}
	change_client(connection, ASKED, flags);
	out->flags = ACK;
	return write_bare(context, out);
}

static __always_inline int step_client(struct xdp_md *context, struct client *connection, __u32 control,
				       struct segment *segment, __u64 now_ns)
{
	__u32 state = STATE(control), flags = FLAGS(control);
	int head = 0, is_first = state == ASKED && connection->left == UNKNOWN;
	struct sums sums = {};
	struct outgoing out = {
		.sequence = connection->next,
		.acknowledged = connection->expected,
		.source = segment->destination,
		.destination = segment->source,
		.flags = ACK,
	};

	out.to[0] = segment->from[0];
	out.to[1] = segment->from[1];
	__builtin_memcpy(out.mac, segment->mac, ETH_ALEN);
	if (segment->bytes) {
		if (is_first)
			head = read_head(context, segment->data, segment->bytes);
		if (!sum_data(context, segment->data, segment->bytes, head > 0 ? head : 0, &sums))
			return XDP_DROP;
	}
	if (!is_intact(context, segment, sums.sum)) {
		ADD(DAMAGED, 1);
		return XDP_DROP;
	}
	if (state == FREE) {
		ADD(NOT_EXPECTED, 1);
		if (segment->flags & RST || !(segment->flags & ACK))
			return XDP_DROP;
		out.sequence = segment->acknowledged;
		out.flags = RST;
		out.acknowledged = 0;
		return write_bare(context, &out);
	}
	if (segment->flags & RST) {
		if (state == OPENING && segment->acknowledged == connection->next)
			fail(connection, REFUSED);
		else if (state == ASKED && segment->sequence == connection->expected)
			fail(connection, RESET_BY_PEER);
		else if (state > ASKED && segment->sequence == connection->expected)
			end_client(connection);
		else
			ADD(NOT_EXPECTED, 1);
		return XDP_DROP;
	}
	if (state == OPENING) {
		if ((segment->flags & (SYN | ACK)) != (SYN | ACK) || segment->acknowledged != connection->next) {
			ADD(NOT_EXPECTED, 1);
			if (!(segment->flags & ACK))
				return XDP_DROP;
			out.sequence = segment->acknowledged;
			out.flags = RST;
			out.acknowledged = 0;
			return write_bare(context, &out);
		}
		connection->expected = segment->sequence + 1;
		out.acknowledged = connection->expected;
		ADD(OPENED, 1);
		add_time(CONNECT, (__u64)(ticks(now_ns) - connection->sent) << TICK_BITS);
		return ask(context, connection, flags, segment->window, now_ns, &out);
	}
	if (segment->flags & ACK && segment->acknowledged == connection->next && !(flags & ACKNOWLEDGED) &&
	    !(state == ASKED && flags & NARROW)) {
		if (state == LAST_ACK) {
			end_client(connection);
			return XDP_DROP;
		}
		change_client(connection, state, flags | ACKNOWLEDGED);
	}
	if (!segment->bytes && !(segment->flags & (FIN | SYN))) {
		if (segment->sequence + 1 == connection->expected)
			return write_bare(context, &out); // the peer asks whether we are there
		if (!(flags & NARROW) || segment->sequence != connection->expected)
			return XDP_DROP;
		if (state == ASKED && segment->window >= request_bytes(connection, control))
			return ask(context, connection, flags, segment->window, now_ns, &out);
		if (state == IDLE && segment->window >= MOST_REQUEST)
			change_client(connection, state, flags & ~NARROW);
		return XDP_DROP;
	}
	if (segment->sequence != connection->expected || segment->flags & SYN) {
		ADD(REPEATED, 1);
		return write_bare(context, &out);
	}
	if (state == ASKED)
		return take_answer(context, connection, segment, &sums, head, now_ns, &out);
	if (segment->bytes || state == LAST_ACK) { // more than was asked for, or after the end
		end_client(connection);
		ADD(NOT_EXPECTED, 1);
		out.flags = RST | ACK;
		return write_bare(context, &out);
	}
	connection->expected++;
	out.acknowledged = connection->expected;
	out.flags = FIN | ACK;
	connection->next++;
	connection->sent = ticks(now_ns);
	change_client(connection, LAST_ACK, flags & ~ACKNOWLEDGED);
	return write_bare(context, &out);
}

// A connection of which ICMP says that its SYN reached nobody (RFC 792, RFC 4443) has failed; the kernel reads it, too.
static __always_inline int read_icmp(struct xdp_md *context)
{
	void *start = (void *)(long)context->data, *end = (void *)(long)context->data_end;
	__u32 at = HEADERS + 8, key; // the packet that it is about
	struct client *connection;
	__be16 *ports;
	__u8 *type = start + HEADERS;
	__u32 port, local, control;

	if (start + at + HEADERS - LINK + 8 > end)
		return XDP_PASS;
	if (constants.is_ipv6) {
		struct ipv6hdr *outer = start + LINK;

		if (outer->nexthdr != IPPROTO_ICMPV6 || *type != 1)
			return XDP_PASS;
	} else {
		struct iphdr *outer = start + LINK;

		if (outer->protocol != IPPROTO_ICMP || outer->ihl != 5 || *type != 3)
			return XDP_PASS;
	}
	ports = start + at + HEADERS - LINK;
	local = bpf_ntohs(ports[0]) - settings.first_local;
	port = bpf_ntohs(ports[1]) - settings.first_port;
	if (local >= settings.locals || port >= settings.ports)
		return XDP_PASS;
	key = local * settings.ports + port;
	connection = bpf_map_lookup_elem(&clients, &key);
	control = connection ? claim(&connection->control) : 0;
	if (!connection || !STATE(control))
		return XDP_PASS;
	if (STATE(control) == OPENING)
		fail(connection, UNREACHABLE);
	let_go(&connection->control);
	return XDP_PASS;
}

SEC("xdp")
int client(struct xdp_md *context)
{
	struct client *connection;
	struct segment segment;
	__u32 port, local, key, control;
	int action;

	switch (read_segment(context, &segment)) {
	case NOT_OURS:
		return read_icmp(context);
	case BROKEN:
		ADD(DAMAGED, 1);
		return XDP_DROP;
	default:
		break;
	}
	port = (__u16)(segment.source - settings.first_port);
	local = (__u16)(segment.destination - settings.first_local);
	if (port >= settings.ports || local >= settings.locals)
		return XDP_PASS;
	key = local * settings.ports + port;
	connection = bpf_map_lookup_elem(&clients, &key);
	if (!connection)
		return XDP_PASS;
	control = claim(&connection->control);
	if (control == BUSY) {
		ADD(REPEATED, 1);
		return XDP_DROP;
	}
	action = step_client(context, connection, control, &segment, bpf_ktime_get_ns());
	if (STATE(control))
		let_go(&connection->control);
	return action;
}

static __always_inline int open(struct xdp_md *context, struct client *connection, struct work *work, __u32 was_away,
				__u64 now_ns, struct outgoing *out)
{
	// RFC 6528 without a secret: a later connection of the same ports begins higher, also that of another process, so
	// that a peer in TIME-WAIT accepts it.
	__u32 first = (__u32)(now_ns >> 12) + (__u32)scramble((__u64)out->source << 16 | out->destination);

	connection->due_ns = work->due_ns;
	connection->sent = ticks(now_ns);
	connection->next = first + 1;
	connection->expected = 0;
	connection->left = UNKNOWN;
	connection->object = work->object;
	connection->exchanges = work->exchanges;
	if (!(work->flags & WAITED))
		add_time(LATENESS, since(work->due_ns, now_ns));
	// The pace of those that are held does not matter.
	__sync_lock_test_and_set(&connection->control, CONTROL(OPENING, work->flags & ~WAITED, work->use) |
				 (was_away && !(work->flags & (KEPT | WAITED)) ? BEGUN_LATE : 0));
	out->sequence = first;
	out->acknowledged = 0;
	out->flags = SYN;
	return write_bare(context, out);
}

static __always_inline int send_again(struct xdp_md *context, struct client *connection, __u32 control,
				      struct outgoing *out)
{
	switch (STATE(control)) {
	case OPENING:
		out->flags = SYN;
		out->sequence = connection->next - 1;
		out->acknowledged = 0;
		break;
	case ASKED:
		if (FLAGS(control) & ACKNOWLEDGED)
			return XDP_DROP;
		ADD(RESENT, 1);
		if (FLAGS(control) & NARROW) { // the answer says how wide the window is
			out->flags = ACK;
			out->sequence = connection->next - 1;
			return write_bare(context, out);
		}
		out->sequence = connection->next - request_bytes(connection, control);
		return send_request(context, connection, out);
	case LAST_ACK:
		out->flags = FIN | ACK;
		out->sequence = connection->next - 1;
		break;
	default:
		return XDP_DROP;
	}
	ADD(RESENT, 1);
	return write_bare(context, out);
}

static __always_inline int give_up(struct xdp_md *context, struct client *connection, __u32 control,
				   struct outgoing *out)
{
	switch (STATE(control)) {
	case OPENING:
		fail(connection, CONNECT_TIMEOUT);
		return XDP_DROP;
	case ASKED:
		fail(connection, RESPONSE_TIMEOUT);
		break;
	default:
		end_client(connection);
	}
	out->flags = RST | ACK;
	return write_bare(context, out);
}

// Where a segment of this connection goes, if it is none that answers another.
static __always_inline void address(struct client *connection, __u32 slot, struct outgoing *out)
{
	out->to[0] = settings.peer[0];
	out->to[1] = settings.peer[1];
	__builtin_memcpy(out->mac, settings.peer_mac, ETH_ALEN);
	out->source = settings.first_local + slot / settings.ports;
	out->destination = settings.first_port + slot % settings.ports;
	out->sequence = connection->next;
	out->acknowledged = connection->expected;
}

// Does what is asked of a connection that stands or is being opened, unless it has just gone on.
static __always_inline int go_on_with(struct xdp_md *context, struct client *connection, struct work *work,
				      __u32 control, __u64 now_ns, struct outgoing *out)
{
	__u32 is_idle = STATE(control) == IDLE;

	if (work->use != USE(control))
		return XDP_DROP;
	switch (work->kind) {
	case ASK:
		if (!is_idle)
			return XDP_DROP;
		connection->due_ns = work->due_ns;
		connection->object = work->object;
		connection->exchanges = work->exchanges;
		if (!(work->flags & WAITED))
			add_time(LATENESS, since(work->due_ns, now_ns));
		work->kind = 0;
		return ask(context, connection, work->flags & ~WAITED, FLAGS(control) & NARROW ? 0 : WINDOW, now_ns, out);
	case RESEND:
		return work->sent == connection->sent ? send_again(context, connection, control, out) : XDP_DROP;
	case GIVE_UP:
		return work->sent == connection->sent ? give_up(context, connection, control, out) : XDP_DROP;
	default:
		if (!is_idle)
			return XDP_DROP;
		end_client(connection);
		out->flags = RST | ACK;
		return write_bare(context, out);
	}
}

static __always_inline int do_work(struct xdp_md *context, struct work *work, __u32 was_away, __u64 now_ns)
{
	struct outgoing out = {};
	__u32 control, slot = work->slot;
	struct client *connection = bpf_map_lookup_elem(&clients, &slot);
	int action;

	if (!connection || !settings.ports)
		return XDP_DROP;
	if (work->kind == OPEN) {
		if (STATE(connection->control) != FREE)
			return XDP_DROP;
		address(connection, slot, &out);
		work->kind = 0;
		return open(context, connection, work, was_away, now_ns, &out);
	}
	control = claim(&connection->control);
	if (!STATE(control))
		return XDP_DROP;
	address(connection, slot, &out);
	action = go_on_with(context, connection, work, control, now_ns, &out);
	let_go(&connection->control);
	return action;
}

// Runs over and over in the threads of the process, and sends what is due. The length of the frame says which one it is.
SEC("xdp")
int send_client(struct xdp_md *context)
{
	__u64 now_ns = bpf_ktime_get_ns(), late_ns = 0;
	__u32 sender = (void *)(long)context->data_end - (void *)(long)context->data - BLANK_BYTES;
	__u32 key, urgent, planned, is_urgent;
	struct progress *done;
	struct work *work;
	int action = XDP_DROP;

	SEEN(sender);
	if (sender >= SENDERS)
		return XDP_DROP;
	done = &progress[sender];
	urgent = done->urgent;
	planned = done->planned;
	is_urgent = urgent != written[sender].urgent;
	if (is_urgent) {
		key = sender * URGENT + urgent % URGENT;
		work = bpf_map_lookup_elem(&urgent_map, &key);
	} else {
		if (planned == written[sender].planned)
			return XDP_DROP;
		key = sender * PLANNED + planned % PLANNED;
		work = bpf_map_lookup_elem(&planned_map, &key);
		if (!work || now_ns < work->due_ns)
			return XDP_DROP;
		late_ns = now_ns - work->due_ns;
		if (late_ns > AWAY_NS)
			done->upset_until_ns = now_ns + UPSET_NS;
	}
	if (!work)
		return XDP_DROP;
	// What the machine could not begin in time is left: else what is due after it would be late, too.
	if (late_ns < LATEST_NS)
		action = do_work(context, work, now_ns < done->upset_until_ns, now_ns);
	if (is_urgent)
		done->urgent = urgent + 1;
	else
		done->planned = planned + 1;
	return action;
}
