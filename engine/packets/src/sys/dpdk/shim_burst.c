/* Wraps DPDK's inline functions in whole-burst calls: the per-packet loop never crosses from Rust to C. */
#include "shim_port.h"

#include <rte_ethdev.h>

uint32_t nb_allocate(struct nb_port *port, struct nb_frame *frames, uint32_t count, uint32_t length)
{
	struct rte_mbuf *buffers[NB_MAXIMUM_BURST];

	count = RTE_MIN(count, (uint32_t)NB_MAXIMUM_BURST);
	/* Bulk allocation is all or nothing; near the pool's end a smaller burst may still succeed. */
	while (count > 0 && rte_pktmbuf_alloc_bulk(port->pool, buffers, count) != 0)
		count /= 2;
	if (count == 0 || length > rte_pktmbuf_tailroom(buffers[0])) {
		rte_pktmbuf_free_bulk(buffers, count);
		return 0;
	}
	for (uint32_t i = 0; i < count; i++) {
		buffers[i]->data_len = length;
		buffers[i]->pkt_len = length;
		frames[i] = (struct nb_frame){ rte_pktmbuf_mtod(buffers[i], uint8_t *), length, 0, buffers[i] };
	}
	return count;
}

uint32_t nb_send(struct nb_port *port, const struct nb_frame *frames, uint32_t count)
{
	struct rte_mbuf *buffers[NB_MAXIMUM_BURST];

	count = RTE_MIN(count, (uint32_t)NB_MAXIMUM_BURST);
	for (uint32_t i = 0; i < count; i++)
		buffers[i] = frames[i].handle;
	return rte_eth_tx_burst(port->number, 0, buffers, count);
}

uint32_t nb_receive(struct nb_port *port, struct nb_frame *frames, uint32_t count)
{
	struct rte_mbuf *buffers[NB_MAXIMUM_BURST];
	uint32_t kept = 0;

	count = rte_eth_rx_burst(port->number, 0, buffers, RTE_MIN(count, (uint32_t)NB_MAXIMUM_BURST));
	for (uint32_t i = 0; i < count; i++) {
		struct rte_mbuf *buffer = buffers[i];

		if (unlikely(buffer->nb_segs > 1) && rte_pktmbuf_linearize(buffer) != 0) {
			port->unlinearised++;
			rte_pktmbuf_free(buffer);
			continue;
		}
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

		for (uint32_t i = 0; i < burst; i++)
			buffers[i] = frames[done + i].handle;
		rte_pktmbuf_free_bulk(buffers, burst);
		done += burst;
	}
}

void nb_flush(struct nb_port *port)
{
	struct rte_mbuf *none[1];

	/* An empty burst makes AF_XDP wake the kernel and take back completed buffers; other drivers do nothing. */
	rte_eth_tx_burst(port->number, 0, none, 0);
}
