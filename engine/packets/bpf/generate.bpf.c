// SPDX-License-Identifier: GPL-2.0
// Makes the frames of a trial: BPF_PROG_RUN runs this program over and over in one thread, and each run makes the frame
// that is due, or drops its buffer if none is. What differs from frame to frame was computed by the process before.

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "frame.h"
#include "pace.h"

SEC("xdp")
int generate(struct xdp_md *context)
{
	__u32 place = progress.place, index;
	int is_found;
	struct signature_words words;
	struct sender *sender;
	__u64 now_ns, time_ns;

	progress.place = place + 1 < settings.batch ? place + 1 : 0;
	if (!place) {
		progress.batch++;
		progress.cpu = bpf_get_smp_processor_id();
	}
	if (settings.phase != PHASE_SEND || progress.is_finished)
		return XDP_DROP;
	END_OF(STEP_BATCH);
	// Frames that are due already share a reading of the clock: they leave together.
	if (!(place % RUNS_BY_ONE_READING) && needs_time(place) && !read_time())
		return XDP_DROP;
	END_OF(STEP_TIME);
	now_ns = progress.now_ns;
	is_found = progress.is_begun && find_due(now_ns);
	if (!is_found && place % RUNS_BY_ONE_READING) {
		// One that is not due yet must not wait for the next reading.
		if (!read_time())
			return XDP_DROP;
		now_ns = progress.now_ns;
		is_found = find_due(now_ns);
	}
	if (place + 1 == settings.batch)
		time_batch();
	if (!is_found || now_ns >= settings.last_ns) {
		finish(now_ns);
		return XDP_DROP;
	}
	END_OF(STEP_DUE);
	index = (progress.next_sender - 1) % MAXIMUM_SENDERS;
	sender = &senders[index];
	if (sender->is_paced && now_ns - sender->due_ns > sender->catch_up_ns)
		give_up_late(sender, now_ns);
	time_ns = settings.is_scheduled ? sender->due_ns : now_ns;
	if (sender->is_varied) {
		if (!write_varied(context, sender, time_ns))
			return XDP_ABORTED;
	} else {
		if (!write_template(context, sender->first_variant, sender->length))
			return XDP_ABORTED;
		END_OF(STEP_TEMPLATE);
		if (!write_images(context, sender, 0))
			return XDP_ABORTED;
		END_OF(STEP_IMAGE);
		words = sign(&settings.keys, settings.mark, sender->first_flow + sender->flow, (__u32)sender->sequence,
			     time_ns);
		if (!write_signature(context, sender->signature_at, &words))
			return XDP_ABORTED;
		END_OF(STEP_SIGNATURE);
		if (sender->checksum_at) {
			__u32 key = sender->first_sum + sender->flow;
			const __u64 *sum = bpf_map_lookup_elem(&sums_map, &key);

			if (!sum || !write_checksum(context, sender->checksum_at, checksum(*sum, &words)))
				return XDP_ABORTED;
		}
		END_OF(STEP_CHECKSUM);
	}
	if (progress.batch_begins_ns == NEVER)
		progress.batch_begins_ns = now_ns;
	count_sent(sender, index, now_ns);
	END_OF(STEP_COUNT);
	return bpf_redirect_map(&devices, sender->port, XDP_DROP);
}

struct ns_common {
	unsigned int inum;
} __attribute__((preserve_access_index));

struct net {
	struct ns_common ns;
} __attribute__((preserve_access_index));

typedef struct {
	struct net *net;
} __attribute__((preserve_access_index)) possible_net_t;

struct net_device {
	int ifindex;
	possible_net_t nd_net;
} __attribute__((preserve_access_index));

// What became of the frames at the end of a batch. Other programs redirect frames too: those count that leave from the
// program's CPU, to an interface of this process's namespace. (A thread's number would depend on who asks for it.)
SEC("tp_btf/xdp_devmap_xmit")
int BPF_PROG(count_flushed, const struct net_device *from, const struct net_device *to, int sent, int drops, int err)
{
	(void)from;
	if (settings.phase == PHASE_WAIT || progress.cpu != bpf_get_smp_processor_id() ||
	    to->nd_net.net->ns.inum != settings.namespace)
		return 0;
	for (__u32 port = 0; port < MAXIMUM_PORTS; port++) {
		struct output *output = &outputs[port];

		if (port >= settings.ports)
			break;
		if (output->interface == (__u32)to->ifindex) {
			output->taken += sent;
			if (err)
				output->failed += drops;
			else
				output->refused += drops;
			break;
		}
	}
	return 0;
}

char _license[] SEC("license") = "GPL";
