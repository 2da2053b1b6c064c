/* What the files of the shim share. */
#ifndef NICBENCH_SHIM_PORT_H
#define NICBENCH_SHIM_PORT_H

#include "shim.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_spinlock.h>

#define NB_MAXIMUM_QUEUES 64

struct nb_port {
	uint16_t number;
	int was_promiscuous;
	/* Queues of one thread share a pool, both ways: AF_XDP sends from the memory it receives into. */
	struct rte_mempool *pools[NB_MAXIMUM_QUEUES];
	uint32_t pool_count;
	uint32_t transmit_each;
	uint32_t receive_each;
	/* The first fields of a buffer that is allocated: where data begins, one owner, one segment. */
	uint64_t rearm;
	/* Bytes for a frame in a buffer. */
	uint32_t room;
	uint32_t hands_over;
	/* Written by EAL's interrupt thread. */
	uint64_t link_changes;
	/* Of received frames, where they were asked for: which bit of a buffer's flags says that it bears one, and where. */
	uint64_t stamp_flag;
	uint32_t stamp_offset;
	/* An enum nb_clock. */
	uint32_t clock;
	rte_spinlock_t timesync;
	/* 1 while the card's one place for the stamp of a sent frame is in use. */
	uint32_t sampling;
};

struct nb_queue {
	struct rte_mempool *pool;
	struct nb_port *port;
	/* As in the port: read in every burst. */
	uint64_t rearm;
	uint32_t room;
	uint32_t hands_over;
	uint16_t number;
	/* The first of its queues, and how many there are. */
	uint16_t transmit;
	uint16_t receive;
	uint16_t transmit_count;
	uint16_t receive_count;
	/* Of the receive queues, the one that is asked first next time. */
	uint16_t next_receive;
	uint64_t unlinearised;
} __rte_cache_aligned;

/* As rte_eth_tx_burst and rte_eth_rx_burst, for a thread with several queues. */
uint32_t nb_spread_send(const struct nb_queue *queue, struct rte_mbuf **buffers, uint32_t count);
uint32_t nb_spread_receive(struct nb_queue *queue, struct rte_mbuf **buffers, uint32_t count);
struct rte_mempool *nb_pool_create(uint16_t number, uint32_t queue, const struct nb_port_options *options, int socket);
int nb_pool_is_one_umem(struct rte_mempool *pool);
uint32_t nb_stamps_clock(const struct rte_eth_dev_info *info);
void nb_stamps_configure(struct nb_port *port, const struct rte_eth_dev_info *info, struct rte_eth_conf *configuration);
/* After the port's start; 0, or a negative errno. */
int nb_stamps_start(struct nb_port *port);
void nb_stamps_stop(struct nb_port *port);
void nb_pool_note_start(struct nb_port *port, const struct nb_port_options *options);

#endif
