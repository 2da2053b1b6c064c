/* Wraps DPDK's inline functions in whole-burst calls: the per-packet loop never crosses from Rust to C. */
#include "shim_port.h"

#include <rte_ethdev.h>

/* The tag lies where a receiver would put its hash: in the cache line that allocation and transmission touch anyway.
 * Nothing on the way of a frame that is sent looks there, and `nb_receive` clears it where something else was received
 * into the buffer. */
static inline uint64_t *tag_of(struct rte_mbuf *buffer)
{
	return (uint64_t *)(void *)&buffer->hash;
}

_Static_assert(sizeof(((struct rte_mbuf *)0)->hash) == sizeof(uint64_t), "the tag takes the place of the hash");

/* The receiver's core may have the line: those of a burst are asked for together. */
static inline void prefetch_for_writing(void *line)
{
#ifdef RTE_ARCH_X86_64
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
	__builtin_prefetch(line, 1);
#endif
}

/* A buffer in a pool has one segment, one owner and nothing after it (rte_mbuf_raw_free); the rest is set here, and the
 * lengths when it is sent. */
static inline void begin_buffer(const struct nb_queue *queue, struct rte_mbuf *buffer, uint64_t tag)
{
	*(uint64_t *)(void *)&buffer->rearm_data = queue->rearm;
	buffer->ol_flags = 0;
	*tag_of(buffer) = tag;
}

static inline int has_begun(const struct nb_queue *queue, struct rte_mbuf *buffer, uint64_t tag)
{
	return *(uint64_t *)(void *)&buffer->rearm_data == queue->rearm && buffer->ol_flags == 0 && *tag_of(buffer) == tag;
}

uint32_t nb_allocate(struct nb_queue *queue, struct nb_frame *frames, uint32_t count, uint32_t length, uint64_t tag)
{
	struct rte_mbuf *buffers[NB_MAXIMUM_BURST];

	count = RTE_MIN(count, (uint32_t)NB_MAXIMUM_BURST);
	if (unlikely(length > queue->room))
		return 0;
	/* Bulk allocation is all or nothing; near the pool's end a smaller burst may still succeed. */
	while (unlikely(rte_mempool_get_bulk(queue->pool, (void **)buffers, count) != 0)) {
		count /= 2;
		if (count == 0)
			return 0;
	}
	for (uint32_t i = 0; i < count; i++) {
		struct rte_mbuf *buffer = buffers[i];

		frames[i].data = (uint8_t *)buffer->buf_addr + RTE_PKTMBUF_HEADROOM;
		frames[i].length = length;
		frames[i].prefilled = tag != 0 && *tag_of(buffer) == tag;
		frames[i].handle = buffer;
		if (!queue->hands_over)
			begin_buffer(queue, buffer, tag);
	}
	for (uint32_t i = 0; queue->hands_over && i < count; i++) {
		prefetch_for_writing(frames[i].data);
		if (!has_begun(queue, buffers[i], tag))
			begin_buffer(queue, buffers[i], tag);
	}
	return count;
}

/* Where a buffer goes round between two cores, each has its header in its own cache as long as neither writes there:
 * what is written is only what differs. */
static inline void set_length(struct rte_mbuf *buffer, uint32_t length, int is_shared)
{
	if (is_shared && buffer->pkt_len == length && buffer->data_len == length)
		return;
	buffer->pkt_len = length;
	buffer->data_len = length;
}

uint32_t nb_send(struct nb_queue *queue, const struct nb_frame *frames, uint32_t count)
{
	struct rte_mbuf *buffers[NB_MAXIMUM_BURST];

	count = RTE_MIN(count, (uint32_t)NB_MAXIMUM_BURST);
	for (uint32_t i = 0; i < count; i++) {
		buffers[i] = frames[i].handle;
		set_length(buffers[i], frames[i].length, queue->hands_over);
	}
	if (unlikely(queue->transmit_count > 1))
		return nb_spread_send(queue, buffers, count);
	return rte_eth_tx_burst(queue->number, queue->transmit, buffers, count);
}

uint32_t nb_receive(struct nb_queue *queue, struct nb_frame *frames, uint32_t count)
{
	struct rte_mbuf *buffers[NB_MAXIMUM_BURST];
	uint32_t kept = 0;

	count = RTE_MIN(count, (uint32_t)NB_MAXIMUM_BURST);
	if (unlikely(queue->receive_count > 1))
		count = nb_spread_receive(queue, buffers, count);
	else
		count = rte_eth_rx_burst(queue->number, queue->receive, buffers, count);
	for (uint32_t i = 0; i < count; i++)
		rte_prefetch0(buffers[i]);
	for (uint32_t i = 0; i < count; i++) {
		struct rte_mbuf *buffer = buffers[i];

		if (unlikely(buffer->nb_segs > 1) && rte_pktmbuf_linearize(buffer) != 0) {
			queue->unlinearised++;
			rte_pktmbuf_free(buffer);
			continue;
		}
		if (!queue->hands_over && *tag_of(buffer) != 0)
			*tag_of(buffer) = 0;
		frames[kept++] = (struct nb_frame){ rte_pktmbuf_mtod(buffer, uint8_t *), buffer->pkt_len, 0, buffer };
		rte_prefetch0(rte_pktmbuf_mtod(buffer, void *));
	}
	return kept;
}

void nb_free(const struct nb_frame *frames, uint32_t count)
{
	struct rte_mbuf *buffers[NB_MAXIMUM_BURST];

	for (uint32_t done = 0; done < count;) {
		uint32_t burst = RTE_MIN(count - done, (uint32_t)NB_MAXIMUM_BURST);

		uint32_t plain = 0;

		/* Buffers of one pool that nobody else holds, with one segment each, need nothing to be reset. */
		for (uint32_t i = 0; i < burst; i++) {
			struct rte_mbuf *buffer = frames[done + i].handle;

			buffers[i] = buffer;
			plain += buffer->pool == buffers[0]->pool && buffer->nb_segs == 1 && RTE_MBUF_DIRECT(buffer) &&
				 rte_mbuf_refcnt_read(buffer) == 1;
		}
		if (likely(plain == burst))
			rte_mempool_put_bulk(buffers[0]->pool, (void **)buffers, burst);
		else
			rte_pktmbuf_free_bulk(buffers, burst);
		done += burst;
	}
}

void nb_flush(struct nb_queue *queue)
{
	struct rte_mbuf *none[1];

	/* An empty burst makes AF_XDP wake the kernel and take back completed buffers; other drivers do nothing. */
	for (uint32_t i = 0; i < queue->transmit_count; i++)
		rte_eth_tx_burst(queue->number, queue->transmit + i, none, 0);
}
