// Segments of TCP (RFC 9293) in IPv4 or IPv6: how one is read, and how one is written in its place.
#pragma once

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/in.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#include "numbers.h"
#include "records.h"

#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define PSH 0x08
#define ACK 0x10
#define WINDOW 65535
#define TCP_BYTES 20
#define MSS_OPTION 4 // bytes of the option of SYNs; what we do not offer, the peer may not use
#define MOST_OPTIONS 40
#define LEAST_MSS 64 // the head of an answer is in one segment
#define USUAL_MSS (constants.is_ipv6 ? 1220 : 536) // of a peer that says nothing (RFC 9293 section 3.7.1)
#define FILLING 'x'
#define WORD_OF_FILLING 0x7878
#define SCRATCH_BYTES 512

struct tcp {
	__be16 source, destination;
	__be32 sequence, acknowledged;
	__u8 offset, flags;
	__be16 window;
	__u16 checksum;
	__be16 urgent;
};

// IEEE 802.1Q section 9.6, behind its type.
struct tag {
	__be16 control, type;
};

struct settings settings SEC(".bss.settings");
struct written written[SENDERS] SEC(".bss.written");
struct progress progress[SENDERS] SEC(".bss.progress");
struct counts counters[CPUS] SEC(".bss.counters");
struct request requests[OBJECTS] SEC(".bss.requests");
__u8 neighbours[256 * 8] SEC(".bss.neighbours");

// Set before the programs are loaded.
struct constants {
	__u32 is_ipv6;
	__u32 tag; // the VLAN's number and TAGGED; 0: none
	__u32 copies; // of the times, a power of two: CPUs take them in turn
	__u32 is_ordered; // whether every CPU sees what another one writes in its order (x86)
};
const volatile struct constants constants SEC(".rodata.constants") = { 0 };
#define TAGGED 0x10000

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, URGENT);
	__type(key, __u32);
	__type(value, struct work);
} urgent_map SEC(".maps");

struct scratch {
	__u8 bytes[SCRATCH_BYTES + 8];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratch_map SEC(".maps");

// Each entry is this interface, and has the program `copy_client` or `copy_server`.
#define DEVICES(name, entries) \
	struct { \
		__uint(type, BPF_MAP_TYPE_DEVMAP); \
		__uint(max_entries, entries); \
		__type(key, __u32); \
		__type(value, struct bpf_devmap_val); \
	} name SEC(".maps")

DEVICES(devices, 1);
DEVICES(one_copy, 2);
DEVICES(two_copies, 3);
DEVICES(four_copies, 5);

#define LINK (constants.tag ? (__u32)(ETH_HLEN + sizeof(struct tag)) : (__u32)ETH_HLEN)
#define HEADERS ((constants.is_ipv6 ? (__u32)sizeof(struct ipv6hdr) : (__u32)sizeof(struct iphdr)) + LINK)
// The verifier is to see the bounds that are checked next, of this copy of the number.
#define SEEN(number) asm volatile("" : "+r"(number))
// Nothing else that counts comes between on its CPU.
// A function that the verifier looks at once, not at each place that calls it.
#define SHARED __attribute__((noinline))
#define ADD(counter, number) (counters[bpf_get_smp_processor_id() % CPUS].of[counter] += (number))

// A number of bytes that is from 1 to `most`, a power of two, as the verifiers of Linux before 6.8 see that it is.
static __always_inline __u32 sized(__u32 bytes, __u32 most)
{
	SEEN(bytes);
	return ((bytes - 1) & (most - 1)) + 1;
}

static __always_inline __u32 ticks(__u64 ns)
{
	return ns >> TICK_BITS;
}

#define TURNS 256

SHARED __u32 wait_for(__u32 *control)
{
	if (!control)
		return BUSY;
	for (int turn = 0; turn < TURNS; turn++) {
		__u32 present = *(volatile __u32 *)control;

		if (!STATE(present))
			return present;
		if (!(present & BUSY) && __sync_val_compare_and_swap(control, present, present | BUSY) == present)
			return present;
	}
	return BUSY;
}

// Takes a record for this CPU, unless it is FREE; waits a little where another has it: what it was, or BUSY.
static __always_inline __u32 claim(__u32 *control)
{
	__u32 present = *(volatile __u32 *)control;

	if (STATE(present) && !(present & BUSY) &&
	    __sync_val_compare_and_swap(control, present, present | BUSY) == present)
		return present;
	return wait_for(control);
}

// All that was written before is seen by whoever takes the record next.
static __always_inline void let_go(__u32 *control)
{
	__u32 present = *control & ~BUSY;

	if (constants.is_ordered)
		*(volatile __u32 *)control = present;
	else
		__sync_lock_test_and_set(control, present);
}

static __always_inline __u16 fold(__u64 sum)
{
	sum = (sum & 0xFFFFFFFF) + (sum >> 32);
	sum = (sum & 0xFFFF) + (sum >> 16);
	sum = (sum & 0xFFFF) + (sum >> 16);
	return (sum & 0xFFFF) + (sum >> 16);
}

// The sum of bytes that are all FILLING, from an even place on.
static __always_inline __u64 sum_of_filling(__u32 bytes)
{
	return (__u64)(bytes / 2) * WORD_OF_FILLING + (bytes % 2 ? bpf_htons(FILLING << 8) : 0);
}

struct segment {
	__u64 from[2]; // the sender's address
	__u64 pseudo; // the sum of the pseudo header
	__u32 sequence, acknowledged;
	__u32 data; // where it begins in the frame
	__u32 bytes; // of data
	__u16 source, destination;
	__u16 window;
	__u8 flags;
	__u8 mac[6]; // the sender's
};

enum reading { NOT_OURS, OURS, BROKEN };

// Whether a frame has the port's tag and carries this type.
static __always_inline int carries(struct ethhdr *ethernet, __be16 type)
{
	struct tag *tag = (void *)(ethernet + 1);

	if (!constants.tag)
		return ethernet->h_proto == type;
	return ethernet->h_proto == bpf_htons(ETH_P_8021Q) && tag->type == type &&
	       !((tag->control ^ bpf_htons(constants.tag)) & bpf_htons(0x0FFF));
}

// Reads the headers of a segment to our address. Sums are checked later, with the data.
static __always_inline enum reading read_segment(struct xdp_md *context, struct segment *segment)
{
	void *start = (void *)(long)context->data, *end = (void *)(long)context->data_end;
	struct ethhdr *ethernet = start;
	struct tcp *tcp;
	__u32 length, offset;

	if (start + HEADERS + TCP_BYTES > end)
		return NOT_OURS;
	if (constants.is_ipv6) {
		struct ipv6hdr *ip = start + LINK;
		__u64 *to = (__u64 *)&ip->daddr, *from = (__u64 *)&ip->saddr;

		if (!carries(ethernet, bpf_htons(ETH_P_IPV6)) || ip->nexthdr != IPPROTO_TCP)
			return NOT_OURS;
		if (to[0] != settings.own[0] || to[1] != settings.own[1])
			return NOT_OURS;
		segment->from[0] = from[0];
		segment->from[1] = from[1];
		length = bpf_ntohs(ip->payload_len);
	} else {
		struct iphdr *ip = start + LINK;

		if (!carries(ethernet, bpf_htons(ETH_P_IP)) || ip->protocol != IPPROTO_TCP)
			return NOT_OURS;
		if (ip->daddr != (__u32)settings.own[0] || ip->ihl != 5 || ip->frag_off & bpf_htons(0x3FFF))
			return NOT_OURS;
		segment->from[0] = ip->saddr;
		segment->from[1] = 0;
		length = bpf_ntohs(ip->tot_len) - sizeof(*ip);
	}
	tcp = start + HEADERS;
	offset = (tcp->offset >> 4) * 4;
	if (offset < TCP_BYTES || length < offset || length > 0xFFFF || start + HEADERS + length > end)
		return BROKEN;
	__builtin_memcpy(segment->mac, ethernet->h_source, ETH_ALEN);
	segment->sequence = bpf_ntohl(tcp->sequence);
	segment->acknowledged = bpf_ntohl(tcp->acknowledged);
	segment->source = bpf_ntohs(tcp->source);
	segment->destination = bpf_ntohs(tcp->destination);
	segment->window = bpf_ntohs(tcp->window);
	segment->flags = tcp->flags & 0x3F;
	segment->data = HEADERS + offset;
	segment->bytes = length - offset;
	segment->pseudo = (__u64)bpf_htons(IPPROTO_TCP) + bpf_htons(length);
#pragma unroll
	for (int number = 0; number < 2; number++) {
		segment->pseudo += (settings.own[number] & 0xFFFFFFFF) + (settings.own[number] >> 32);
		segment->pseudo += (segment->from[number] & 0xFFFFFFFF) + (segment->from[number] >> 32);
	}
	return OURS;
}

// The sum of the header with its options, of which the checksum is one word.
static __always_inline __u64 sum_header(struct xdp_md *context, const struct segment *segment, __u16 *checksum)
{
	void *start = (void *)(long)context->data, *end = (void *)(long)context->data_end;
	__u32 *word = start + HEADERS;
	__u64 sum = 0;

	if (start + HEADERS + TCP_BYTES > end)
		return 0;
	*checksum = ((struct tcp *)word)->checksum;
#pragma unroll
	for (int number = 0; number < TCP_BYTES / 4; number++)
		sum += word[number];
	for (int number = TCP_BYTES / 4; number < 15; number++) {
		if (HEADERS + number * 4 >= segment->data)
			break;
		if ((void *)(word + number + 1) > end)
			break;
		sum += word[number];
	}
	return sum;
}

// Whether the checksum is right for data of this sum; or the kernel of a peer on this machine left it to a card that
// there is not, and wrote the pseudo header's.
static __always_inline int is_intact(struct xdp_md *context, const struct segment *segment, __u64 data)
{
	__u16 checksum = 0;
	__u64 sum = sum_header(context, segment, &checksum);

	return fold(sum + segment->pseudo + data) == 0xFFFF || fold(segment->pseudo) == checksum;
}

struct options {
	__u8 bytes[64]; // MOST_OPTIONS and more
};

// Where the option behind that at this place begins; none is after the last.
SHARED int next_option(const struct options *options, __u32 at)
{
	if (!options || at >= MOST_OPTIONS || !options->bytes[at])
		return MOST_OPTIONS;
	if (options->bytes[at] == 1)
		return at + 1;
	return options->bytes[at + 1] < 2 ? MOST_OPTIONS : at + options->bytes[at + 1];
}

// The most bytes of a segment that the sender of this SYN takes (RFC 9293 section 3.7.1). Window scale, SACK-permitted and
// time stamps are not answered, so that neither end uses them (RFC 7323 section 1.3, RFC 2018 section 2).
SHARED int read_mss(struct xdp_md *context, __u32 data)
{
	__u32 length = data - HEADERS - TCP_BYTES, at = 0, mss = USUAL_MSS;
	struct options options = {};

	if (length < 1 || length > MOST_OPTIONS ||
	    bpf_xdp_load_bytes(context, HEADERS + TCP_BYTES, options.bytes, sized(length, sizeof(options.bytes))))
		return mss;
	for (int number = 0; number < MOST_OPTIONS && at < MOST_OPTIONS; number++) {
		if (options.bytes[at] == 2 && options.bytes[at + 1] == MSS_OPTION) {
			mss = options.bytes[at + 2] << 8 | options.bytes[at + 3];
			break;
		}
		at = next_option(&options, at);
	}
	return mss < LEAST_MSS ? LEAST_MSS : mss;
}

struct outgoing {
	__u64 to[2]; // the receiver's address
	__u64 sum; // of the data
	__u32 sequence, acknowledged;
	__u32 bytes; // of data, which is in the frame already
	__u16 source, destination;
	__u8 flags;
	__u8 mac[6]; // the receiver's
};

// Makes the frame as long as a segment with so much data, which begins at the place that is returned; 0: it cannot be.
static __always_inline __u32 make_room(struct xdp_md *context, const struct outgoing *out)
{
	__u32 options = out->flags & SYN ? MSS_OPTION : 0;
	__u32 length = HEADERS + TCP_BYTES + options + out->bytes;

	if (bpf_xdp_adjust_tail(context, (int)length - (int)bpf_xdp_get_buff_len(context)))
		return 0;
	return length - out->bytes;
}

// Writes every header of a segment whose data is in place; whether it could.
static __always_inline int write_headers(struct xdp_md *context, const struct outgoing *out)
{
	void *start = (void *)(long)context->data, *end = (void *)(long)context->data_end;
	__u32 options = out->flags & SYN ? MSS_OPTION : 0, length = TCP_BYTES + options + out->bytes;
	__u64 sum = out->sum + bpf_htons(IPPROTO_TCP) + bpf_htons(length);
	__be16 type = constants.is_ipv6 ? bpf_htons(ETH_P_IPV6) : bpf_htons(ETH_P_IP);
	struct ethhdr *ethernet = start;
	struct tcp *tcp;
	__u32 *word;

	if (start + HEADERS + TCP_BYTES > end)
		return 0;
	__builtin_memcpy(ethernet->h_dest, out->mac, ETH_ALEN);
	__builtin_memcpy(ethernet->h_source, settings.own_mac, ETH_ALEN);
	ethernet->h_proto = type;
	if (constants.tag) {
		struct tag *tag = (void *)(ethernet + 1);

		ethernet->h_proto = bpf_htons(ETH_P_8021Q);
		tag->control = bpf_htons(constants.tag);
		tag->type = type;
	}
	if (constants.is_ipv6) {
		struct ipv6hdr *ip = start + LINK;
		__u64 *from = (__u64 *)&ip->saddr, *to = (__u64 *)&ip->daddr;

		*(__u32 *)ip = bpf_htonl(0x60000000);
		ip->payload_len = bpf_htons(length);
		ip->nexthdr = IPPROTO_TCP;
		ip->hop_limit = 64;
		from[0] = settings.own[0];
		from[1] = settings.own[1];
		to[0] = out->to[0];
		to[1] = out->to[1];
	} else {
		struct iphdr *ip = start + LINK;
		__u32 *words = (__u32 *)ip;
		__u64 whole = 0;

		words[0] = bpf_htonl(0x45000000 | (sizeof(*ip) + length));
		words[1] = bpf_htonl(0x4000); // not to be fragmented
		words[2] = bpf_htonl(64 << 24 | IPPROTO_TCP << 16);
		words[3] = settings.own[0];
		words[4] = out->to[0];
#pragma unroll
		for (int number = 0; number < 5; number++)
			whole += words[number];
		ip->check = ~fold(whole);
	}
#pragma unroll
	for (int number = 0; number < 2; number++) {
		sum += (settings.own[number] & 0xFFFFFFFF) + (settings.own[number] >> 32);
		sum += (out->to[number] & 0xFFFFFFFF) + (out->to[number] >> 32);
	}
	tcp = start + HEADERS;
	tcp->source = bpf_htons(out->source);
	tcp->destination = bpf_htons(out->destination);
	tcp->sequence = bpf_htonl(out->sequence);
	tcp->acknowledged = bpf_htonl(out->acknowledged);
	tcp->offset = (TCP_BYTES + options) / 4 << 4;
	tcp->flags = out->flags;
	tcp->window = bpf_htons(WINDOW);
	tcp->checksum = 0;
	tcp->urgent = 0;
	word = (__u32 *)tcp;
#pragma unroll
	for (int number = 0; number < TCP_BYTES / 4; number++)
		sum += word[number];
	if (options) {
		__u32 option = bpf_htonl(2 << 24 | MSS_OPTION << 16 | (settings.segment_bytes & 0xFFFF));

		if ((void *)(word + TCP_BYTES / 4 + 1) > end)
			return 0;
		word[TCP_BYTES / 4] = option;
		sum += option;
	}
	tcp->checksum = ~fold(sum);
	ADD(SENT, 1);
	return 1;
}

// Not XDP_TX: a veth whose other end has no program itself does not look at what comes by it.
static __always_inline int transmit(int is_written)
{
	return is_written ? bpf_redirect_map(&devices, 0, XDP_DROP) : XDP_ABORTED;
}

// Sends a segment without data in place of the frame.
static __always_inline int write_bare(struct xdp_md *context, struct outgoing *out)
{
	out->bytes = 0;
	out->sum = 0;
	return transmit(make_room(context, out) && write_headers(context, out));
}
