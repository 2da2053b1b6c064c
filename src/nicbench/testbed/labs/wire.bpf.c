// A packet that arrives at a veth no longer counts against its sender, as once a card has sent it. The kernel counts a
// packet against its socket (TCP small queues) until somebody frees it. Across veths and bridges of one machine that is
// the receiver (seen on Linux 6.1): no queue on the way would ever hold more than two segments of a sender.
// So each packet goes on as a clone, which belongs to no socket.
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

// Marks the clone, which arrives here as well. A mark does not pass from one namespace to another.
#define CLONE 0x6e62776b

SEC("tc")
int wire(struct __sk_buff *packet)
{
	if (packet->mark == CLONE) {
		packet->mark = 0;
		return TC_ACT_UNSPEC;
	}
	packet->mark = CLONE;
	if (bpf_clone_redirect(packet, packet->ifindex, BPF_F_INGRESS))
		return TC_ACT_SHOT;
	return TC_ACT_STOLEN;
}

char _license[] SEC("license") = "GPL";
