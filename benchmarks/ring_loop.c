/* The plainest DPDK over net_ring: one core sends, another receives and frees. What our generator and analyser are
 * compared with; nothing is numbered, stamped or checked.
 *
 *     ring_loop EAL-ARGUMENTS --vdev=net_ring0 -- WRITTEN READ
 *
 * EAL's main thread receives, its other one sends. WRITTEN bytes are written into each frame, READ bytes read of each
 * that arrives (0 or 60). Each line on stdin is a time in seconds; the answer is the rate of frames that arrived. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

enum { PORT = 0, FRAME_BYTES = 60, BURST = 32, BUFFERS = 3072, CACHE = 256, DESCRIPTORS = 2048 };

static struct rte_mempool *pool;
static int writes, reads;
static volatile uint64_t end_tick;

static int send_until_end(void *unused)
{
	static unsigned char frame[FRAME_BYTES] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5 };
	struct rte_mbuf *buffers[BURST];

	RTE_SET_USED(unused);
	while (rte_rdtsc() < end_tick) {
		if (rte_pktmbuf_alloc_bulk(pool, buffers, BURST) != 0)
			continue;
		for (unsigned int i = 0; i < BURST; i++) {
			buffers[i]->data_len = FRAME_BYTES;
			buffers[i]->pkt_len = FRAME_BYTES;
			if (writes)
				rte_memcpy(rte_pktmbuf_mtod(buffers[i], void *), frame, FRAME_BYTES);
		}
		for (unsigned int sent = 0; sent < BURST;) {
			sent += rte_eth_tx_burst(PORT, 0, buffers + sent, BURST - sent);
			if (sent < BURST && rte_rdtsc() >= end_tick) {
				rte_pktmbuf_free_bulk(buffers + sent, BURST - sent);
				break;
			}
		}
	}
	return 0;
}

static uint64_t sum_of(const struct rte_mbuf *buffer)
{
	uint64_t sum = 0, words[8] = { 0 };

	memcpy(words, rte_pktmbuf_mtod(buffer, const void *), FRAME_BYTES);
	for (unsigned int i = 0; i < RTE_DIM(words); i++)
		sum += words[i];
	return sum;
}

/* Receives what has come; the number of frames. */
static unsigned int receive(void)
{
	struct rte_mbuf *buffers[BURST];
	unsigned int count = rte_eth_rx_burst(PORT, 0, buffers, BURST);

	for (unsigned int i = 0; reads && i < count; i++)
		rte_prefetch0(buffers[i]);
	for (unsigned int i = 0; reads && i < count; i++)
		rte_prefetch0(rte_pktmbuf_mtod(buffers[i], void *));
	for (unsigned int i = 0; reads && i < count; i++) {
		uint64_t sum = sum_of(buffers[i]);

		__asm__ volatile("" : : "r"(sum));
	}
	rte_pktmbuf_free_bulk(buffers, count);
	return count;
}

static double rate(double seconds)
{
	unsigned int sender = rte_get_next_lcore(-1, 1, 0);
	uint64_t begin = rte_rdtsc(), frames = 0;

	end_tick = begin + (uint64_t)(seconds * rte_get_tsc_hz());
	rte_eal_remote_launch(send_until_end, NULL, sender);
	while (rte_rdtsc() < end_tick)
		frames += receive();
	rte_eal_wait_lcore(sender);
	while (receive() > 0)
		;
	return frames / seconds;
}

static int start(void)
{
	struct rte_eth_conf configuration = { 0 };

	pool = rte_pktmbuf_pool_create("buffers", BUFFERS, CACHE, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	return pool == NULL || rte_eth_dev_configure(PORT, 1, 1, &configuration) ||
	       rte_eth_rx_queue_setup(PORT, 0, DESCRIPTORS, SOCKET_ID_ANY, NULL, pool) ||
	       rte_eth_tx_queue_setup(PORT, 0, DESCRIPTORS, SOCKET_ID_ANY, NULL) || rte_eth_dev_start(PORT);
}

int main(int count, char **words)
{
	int taken = rte_eal_init(count, words);
	char line[64];

	if (taken < 0 || count - taken != 3 || rte_lcore_count() != 2)
		return fprintf(stderr, "usage: see ring_loop.c\n"), 2;
	writes = atoi(words[taken + 1]) > 0;
	reads = atoi(words[taken + 2]) > 0;
	if (start() != 0)
		return fprintf(stderr, "ring_loop: net_ring was not opened\n"), 1;
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin) != NULL) {
		printf("%.0f\n", rate(atof(line)));
		fflush(stdout);
	}
	return 0;
}
