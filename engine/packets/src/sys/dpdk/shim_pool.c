/* Makes the pools of buffers of a port. */
#include "shim_port.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <linux/bpf.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>

/* The bytes for a frame in each buffer. */
static uint32_t buffer_room(const struct nb_port_options *options)
{
	const uint32_t before = sizeof(struct rte_mbuf) + RTE_PKTMBUF_HEADROOM;
	uint32_t wanted = options->frame_bytes + (options->umem ? XDP_PACKET_HEADROOM : 0);
	uint32_t room = RTE_MAX(RTE_ALIGN_CEIL(wanted, (uint32_t)RTE_CACHE_LINE_SIZE), (uint32_t)RTE_MBUF_DEFAULT_DATAROOM);

	/* A chunk of a umem is a buffer with all its headers, and the kernel refuses chunks over a page. */
	while (options->umem && rte_mempool_calc_obj_size(before + room, 0, NULL) > sysconf(_SC_PAGESIZE))
		room -= RTE_CACHE_LINE_SIZE;
	return room;
}

/*
 * DPDK's driver of AF_XDP registers buffers x size of a buffer, counted from the pool's start, as the umem. An ordinary
 * pool keeps each buffer within a page and leaves gaps, so that its later buffers lie outside: the kernel throws away
 * what is sent from them (tx_invalid_descs). Buffers that need no contiguous IOVA are packed without gaps. That is also
 * faster where pages are small: with a buffer at the start of each page, all headers fall into one set of the cache.
 */
static struct rte_mempool *create_packed_pool(const char *name, uint32_t buffers, uint16_t room, int socket)
{
	struct rte_pktmbuf_pool_private private = { .mbuf_data_room_size = room };
	struct rte_mempool *pool = rte_mempool_create_empty(name, buffers, sizeof(struct rte_mbuf) + room, 256,
							    sizeof(private), socket, RTE_MEMPOOL_F_NO_IOVA_CONTIG);

	if (pool == NULL)
		return NULL;
	if (rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), NULL) != 0) {
		rte_mempool_free(pool);
		return NULL;
	}
	rte_pktmbuf_pool_init(pool, &private);
	if (rte_mempool_populate_default(pool) < 0) {
		rte_mempool_free(pool);
		return NULL;
	}
	rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
	return pool;
}

static void note_end(struct rte_mempool *pool, void *end, void *buffer, unsigned int index)
{
	RTE_SET_USED(index);
	*(uintptr_t *)end = RTE_MAX(*(uintptr_t *)end, (uintptr_t)buffer + pool->elt_size + pool->trailer_size);
}

/* Whether every buffer lies in what the driver will register. */
int nb_pool_is_one_umem(struct rte_mempool *pool)
{
	uintptr_t end = 0, start;

	if (pool->nb_mem_chunks != 1)
		return 0;
	rte_mempool_obj_iter(pool, note_end, &end);
	start = (uintptr_t)STAILQ_FIRST(&pool->mem_list)->addr;
	return end - start <= (uintptr_t)pool->populated_size * (pool->header_size + pool->elt_size + pool->trailer_size);
}

/* What every buffer that is allocated begins with: as rte_mbuf_refcnt, data_off and the rest say in a new one. */
void nb_pool_note_start(struct nb_port *port, const struct nb_port_options *options)
{
	struct rte_mbuf fresh = { 0 };

	fresh.data_off = RTE_PKTMBUF_HEADROOM;
	fresh.nb_segs = 1;
	fresh.port = RTE_MBUF_PORT_INVALID;
	rte_mbuf_refcnt_set(&fresh, 1);
	memcpy(&port->rearm, &fresh.rearm_data, sizeof(port->rearm));
	port->room = buffer_room(options);
	port->hands_over = options->hands_over;
}

struct rte_mempool *nb_pool_create(uint16_t number, uint32_t queue, const struct nb_port_options *options, int socket)
{
	char name[RTE_MEMPOOL_NAMESIZE];

	snprintf(name, sizeof(name), "nicbench_%u_%u", number, queue);
	if (options->umem || options->packed)
		return create_packed_pool(name, options->buffers, RTE_PKTMBUF_HEADROOM + buffer_room(options), socket);
	return rte_pktmbuf_pool_create(name, options->buffers, 256, 0, RTE_PKTMBUF_HEADROOM + buffer_room(options), socket);
}
