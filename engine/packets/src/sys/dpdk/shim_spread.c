/*
 * Several queues of one thread: virtual devices such as memif have no receive side scaling, so that the sender does what a
 * card would do: each flow goes to one queue, by a hash of its addresses and ports.
 */
#include "shim_port.h"

#include <string.h>

#include <rte_byteorder.h>
#include <rte_ethdev.h>
#include <rte_ether.h>

/* 2^64 divided by the golden ratio: multiplication by it mixes every bit into the upper ones (Knuth, 6.4). */
#define MIX 0x9E3779B97F4A7C15ULL

static inline uint64_t mix(uint64_t hash, const uint8_t *bytes, uint32_t count)
{
	for (; count >= sizeof(uint64_t); bytes += sizeof(uint64_t), count -= sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, bytes, sizeof(word));
		hash = (hash ^ word) * MIX;
		hash ^= hash >> 32;
	}
	if (count > 0) {
		uint64_t word = 0;

		memcpy(&word, bytes, count);
		hash = (hash ^ word) * MIX;
		hash ^= hash >> 32;
	}
	return hash;
}

/* IPv4 and IPv6 by addresses and, at their usual place, ports; anything else by its MAC addresses. */
static uint64_t flow_hash(const uint8_t *frame, uint32_t length)
{
	uint32_t at = 2 * RTE_ETHER_ADDR_LEN;
	uint16_t type;

	if (length < RTE_ETHER_HDR_LEN)
		return 0;
	memcpy(&type, frame + at, sizeof(type));
	while ((type == RTE_BE16(RTE_ETHER_TYPE_VLAN) || type == RTE_BE16(RTE_ETHER_TYPE_QINQ)) && at + 6 <= length) {
		at += 4;
		memcpy(&type, frame + at, sizeof(type));
	}
	at += sizeof(type);
	if (type == RTE_BE16(RTE_ETHER_TYPE_IPV4) && at + 24 <= length)
		return mix(0, frame + at + 12, 12);
	if (type == RTE_BE16(RTE_ETHER_TYPE_IPV6) && at + 44 <= length)
		return mix(0, frame + at + 8, 36);
	return mix(0, frame, 2 * RTE_ETHER_ADDR_LEN);
}

/* In order, up to the first frame whose queue is full: what was taken is a prefix of the burst. */
uint32_t nb_spread_send(const struct nb_queue *queue, struct rte_mbuf **buffers, uint32_t count)
{
	uint16_t chosen[NB_MAXIMUM_BURST];
	uint32_t done = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t hash = flow_hash(rte_pktmbuf_mtod(buffers[i], const uint8_t *), buffers[i]->data_len);

		chosen[i] = queue->transmit + (uint16_t)(((hash >> 32) * queue->transmit_count) >> 32);
	}
	while (done < count) {
		uint32_t end = done + 1, sent;

		while (end < count && chosen[end] == chosen[done])
			end++;
		sent = rte_eth_tx_burst(queue->number, chosen[done], buffers + done, end - done);
		done += sent;
		if (done < end)
			break;
	}
	return done;
}

/* All queues once, each time beginning with another one, so that none waits for the others. */
uint32_t nb_spread_receive(struct nb_queue *queue, struct rte_mbuf **buffers, uint32_t count)
{
	uint32_t filled = 0;

	for (uint32_t i = 0; i < queue->receive_count && filled < count; i++) {
		uint16_t number = queue->receive + (queue->next_receive + i) % queue->receive_count;

		filled += rte_eth_rx_burst(queue->number, number, buffers + filled, count - filled);
	}
	queue->next_receive = (queue->next_receive + 1) % queue->receive_count;
	return filled;
}
