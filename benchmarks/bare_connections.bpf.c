// Connections without a record of any: a segment is answered by what it says alone. `begin` makes SYNs, `client` and
// `server` turn each segment round: SYN, SYN/ACK, request, answer with FIN, FIN, ACK. Counts are of a whole connection.
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

enum { FIN = 1, SYN = 2, PUSH = 8, ACK = 16, TEXT_BYTES = 6, HEADERS_BYTES = 40, PORTS = 50000 };

struct segment {
	__u8 to[6], from[6];
	__be16 kind;
	struct { // of the IP header on
		__u8 version, service;
		__be16 length, id, offset;
		__u8 hops, protocol;
		__u16 sum;
		__be32 source, target;
	} ip;
	struct {
		__be16 source, target;
		__be32 sequence, acknowledged;
		__u8 words, flags;
		__be16 window;
		__u16 sum;
		__be16 urgent;
	} tcp;
	__u8 text[TEXT_BYTES];
} __attribute__((packed));

struct counts {
	__u64 begun, complete;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counts);
} counted SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} target SEC(".maps");

static __always_inline struct counts *now_counted(void)
{
	__u32 first = 0;

	return bpf_map_lookup_elem(&counted, &first);
}

static __always_inline struct segment *segment_of(struct xdp_md *context)
{
	struct segment *found = (void *)(long)context->data;

	return (void *)(found + 1) > (void *)(long)context->data_end ? NULL : found;
}

static __always_inline __u16 folded(__u64 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~(__u16)((sum & 0xffff) + (sum >> 16));
}

static __always_inline __u64 added(const void *bytes, int words)
{
	const __u16 *at = bytes;
	__u64 sum = 0;

#pragma unroll
	for (int word = 0; word < words; word++)
		sum += at[word];
	return sum;
}

static __always_inline void write(struct segment *one, __u32 sequence, __u32 acknowledged, __u8 flags, int text_bytes)
{
	one->tcp.sequence = bpf_htonl(sequence);
	one->tcp.acknowledged = bpf_htonl(acknowledged);
	one->tcp.flags = flags;
	one->tcp.window = 0xffff;
	__builtin_memset(one->text, text_bytes ? 'x' : 0, TEXT_BYTES);
	one->ip.length = bpf_htons(HEADERS_BYTES + text_bytes);
	one->ip.sum = 0;
	one->ip.sum = folded(added(&one->ip, 10));
	one->tcp.sum = 0;
	one->tcp.sum = folded(added(&one->ip.source, 4) + added(&one->tcp, 13) + bpf_htons(6) + bpf_htons(20 + text_bytes));
}

static __always_inline int answer(struct segment *one, __u32 sequence, __u32 acknowledged, __u8 flags, int text_bytes)
{
	__u8 address[6];

	__builtin_memcpy(address, one->to, 6);
	__builtin_memcpy(one->to, one->from, 6);
	__builtin_memcpy(one->from, address, 6);
	__be32 host = one->ip.source;
	one->ip.source = one->ip.target;
	one->ip.target = host;
	__be16 port = one->tcp.source;
	one->tcp.source = one->tcp.target;
	one->tcp.target = port;
	write(one, sequence, acknowledged, flags, text_bytes);
	return XDP_TX;
}

SEC("xdp")
int begin(struct xdp_md *context)
{
	struct segment *one = segment_of(context);
	struct counts *counts = now_counted();

	if (!one || !counts)
		return XDP_DROP;
	__u64 number = counts->begun++;
	one->ip.source = bpf_htonl(0xc6120002 + number / PORTS % 1000);
	one->ip.target = bpf_htonl(0xc6130002);
	one->tcp.source = bpf_htons(2000 + number % PORTS);
	one->tcp.target = bpf_htons(80);
	write(one, number, 0, SYN, 0);
	return bpf_redirect_map(&target, 0, XDP_DROP);
}

SEC("xdp")
int client(struct xdp_md *context)
{
	struct segment *one = segment_of(context);
	struct counts *counts = now_counted();

	if (!one || !counts || one->ip.protocol != 6)
		return XDP_PASS;
	__u32 next = bpf_ntohl(one->tcp.acknowledged), theirs = bpf_ntohl(one->tcp.sequence);
	if (one->tcp.flags == (SYN | ACK))
		return answer(one, next, theirs + 1, ACK | PUSH, TEXT_BYTES);
	if (one->tcp.flags & FIN)
		return answer(one, next, theirs + TEXT_BYTES + 1, FIN | ACK, 0);
	counts->complete += one->tcp.flags == ACK;
	return XDP_DROP;
}

SEC("xdp")
int server(struct xdp_md *context)
{
	struct segment *one = segment_of(context);

	if (!one || one->ip.protocol != 6)
		return XDP_PASS;
	__u32 next = bpf_ntohl(one->tcp.acknowledged), theirs = bpf_ntohl(one->tcp.sequence);
	if (one->tcp.flags == SYN)
		return answer(one, bpf_get_prandom_u32(), theirs + 1, SYN | ACK, 0);
	if (one->tcp.flags & PUSH)
		return answer(one, next, theirs + TEXT_BYTES, ACK | PUSH | FIN, TEXT_BYTES);
	return one->tcp.flags & FIN ? answer(one, next, theirs + 1, ACK, 0) : XDP_DROP;
}

char _license[] SEC("license") = "GPL";
