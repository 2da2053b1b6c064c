/* What the files of the shim share. */
#ifndef NICBENCH_SHIM_PORT_H
#define NICBENCH_SHIM_PORT_H

#include "shim.h"

#include <rte_mbuf.h>
#include <rte_mempool.h>

struct nb_port {
	uint16_t number;
	int was_promiscuous;
	struct rte_mempool *pool;
	/* The first fields of a buffer that is allocated: where data begins, one owner, one segment. */
	uint64_t rearm;
	/* Bytes for a frame in a buffer. */
	uint32_t room;
	uint64_t unlinearised;
	/* Written by EAL's interrupt thread. */
	uint64_t link_changes;
};

#endif
