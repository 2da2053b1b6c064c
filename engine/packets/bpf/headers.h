// Finds the headers of a frame as src/wire/headers.rs does. They are read from a copy of the frame's front, with zeros
// behind its end; this is the way of frames that are not as they were sent.
#pragma once

#include "receive_maps.h"

#define NOWHERE 0xFFFFU
#define ETHERNET_BYTES 14
#define IPV4_BYTES 20
#define IPV6_BYTES 40
#define UDP_BYTES 8
#define TCP_BYTES 20
#define VXLAN_BYTES 8
#define TYPE_IPV4 0x0800
#define TYPE_IPV6 0x86DD
#define PROTOCOL_TCP 6
#define PROTOCOL_UDP 17
#define MOST_TAGS 4

static __always_inline void copy_front(struct xdp_md *context, struct shard *shard, __u32 length)
{
	__builtin_memset(shard->scratch, 0, SCRATCH_BYTES);
	copy_frame(context, shard->scratch, length, SCRATCH_BYTES);
}

static __always_inline __u32 byte_at(const struct shard *shard, __u32 at)
{
	// The verifier must see the bounds, which the compiler would share among several places.
	asm volatile("" : "+r"(at));
	return at < SCRATCH_BYTES ? shard->scratch[at] : 0;
}

static __always_inline __u32 number_at(const struct shard *shard, __u32 at)
{
	return byte_at(shard, at) << 8 | byte_at(shard, at + 1);
}

static __always_inline int is_tag(__u32 type)
{
	return type == 0x8100 || type == 0x88A8 || type == 0x9100;
}

// The headers of the Ethernet frame that begins at `start`, packed in one word: the payload, and above it whether there
// is a header of UDP or TCP before it.
VERIFIED_ONCE __u32 find_headers(const struct shard *shard, __u32 length, __u32 start)
{
	__u32 type, at = start + ETHERNET_BYTES, protocol, end, transport;

	if (!shard || start >= SCRATCH_BYTES || at > length)
		return NOWHERE;
	type = number_at(shard, at - 2);
	for (__u32 tags = 0; tags < MOST_TAGS && is_tag(type); tags++) {
		if (at + 4 > length)
			return NOWHERE;
		type = number_at(shard, at + 2);
		at += 4;
	}
	if (type == TYPE_IPV4 && at + IPV4_BYTES <= length) {
		__u32 header = (byte_at(shard, at) & 0xF) * 4, total = number_at(shard, at + 2);

		if (byte_at(shard, at) >> 4 != 4 || header < IPV4_BYTES)
			return at;
		protocol = number_at(shard, at + 6) & 0x1FFF ? 0 : byte_at(shard, at + 9);
		end = at + (total > header ? total : header);
		at += header;
	} else if (type == TYPE_IPV6 && at + IPV6_BYTES <= length) {
		if (byte_at(shard, at) >> 4 != 6)
			return at;
		protocol = byte_at(shard, at + 6);
		end = at + IPV6_BYTES + number_at(shard, at + 4);
		at += IPV6_BYTES;
	} else {
		return at;
	}
	if (end > length)
		end = length;
	if (protocol == PROTOCOL_UDP) {
		transport = UDP_BYTES;
	} else if (protocol == PROTOCOL_TCP && at + TCP_BYTES <= length) {
		transport = (byte_at(shard, at + 12) >> 4) * 4;
		if (transport < TCP_BYTES)
			transport = TCP_BYTES;
	} else {
		return at;
	}
	return at + transport <= end ? (at + transport) | 1 << 16 : at;
}

// Where the payload of the outermost UDP or TCP begins.
static __always_inline __u32 payload_offset(const struct shard *shard, __u32 length)
{
	__u32 found = find_headers(shard, length, 0);

	return found >> 16 ? found & 0xFFFF : NOWHERE;
}

// Where the payload of the UDP or TCP that VXLAN carries begins.
static __always_inline __u32 carried_offset(const struct shard *shard, __u32 length)
{
	__u32 outer = find_headers(shard, length, 0), inner;

	if (outer == NOWHERE)
		return NOWHERE;
	inner = find_headers(shard, length, (outer & 0xFFFF) + VXLAN_BYTES);
	return inner >> 16 ? inner & 0xFFFF : NOWHERE;
}

// Of a frame of UDP without tags, whatever its lengths say (template/udp.rs).
static __always_inline __u32 plain_offset(const struct shard *shard, __u32 length)
{
	__u32 type = number_at(shard, 12), at = ETHERNET_BYTES;

	if (type == TYPE_IPV4 && at + IPV4_BYTES <= length && byte_at(shard, at) >> 4 == 4 &&
	    byte_at(shard, at + 9) == PROTOCOL_UDP)
		return at + (byte_at(shard, at) & 0xF) * 4 + UDP_BYTES;
	if (type == TYPE_IPV6 && at + IPV6_BYTES <= length && byte_at(shard, at + 6) == PROTOCOL_UDP)
		return at + IPV6_BYTES + UDP_BYTES;
	return NOWHERE;
}
