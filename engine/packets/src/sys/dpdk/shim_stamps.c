/* Time stamps: of received frames from their buffers, of the clock behind them, and of single frames that were sent. */
/* rte_eth_read_clock is marked experimental in 22.11, and has stayed as it is since. */
#define ALLOW_EXPERIMENTAL_API
#include "shim_port.h"

#include <errno.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_mbuf_dyn.h>

/*
 * Which call reads the clock that a driver's stamps are of. A driver that is not here is not believed: one may stamp by
 * its card's clock and give another by rte_eth_read_clock (net_ice did later), or none at all (net_iavf).
 */
static const struct {
	const char *driver;
	uint32_t clock;
} known_clocks[] = {
	{ "mlx5_pci", NB_CLOCK_DEVICE },
	{ "net_ice", NB_CLOCK_TIMESYNC },
	{ "net_hns3", NB_CLOCK_TIMESYNC },
	{ "net_pcap", NB_CLOCK_SYSTEM },
};

uint32_t nb_stamps_clock(const struct rte_eth_dev_info *info)
{
	for (size_t i = 0; i < RTE_DIM(known_clocks); i++) {
		/* net_pcap stamps without being asked, and does not say that it can. */
		if (strcmp(info->driver_name, known_clocks[i].driver) == 0 &&
		    (known_clocks[i].clock == NB_CLOCK_SYSTEM || (info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_TIMESTAMP)))
			return known_clocks[i].clock;
	}
	return NB_CLOCK_NONE;
}

void nb_stamps_configure(struct nb_port *port, const struct rte_eth_dev_info *info, struct rte_eth_conf *configuration)
{
	port->clock = nb_stamps_clock(info);
	configuration->rxmode.offloads |= info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_TIMESTAMP;
	/* A driver's simple and vector paths of transmission overlook the request for a stamp: this rules them out. */
	if (port->clock == NB_CLOCK_TIMESYNC)
		configuration->txmode.offloads |= info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
}

int nb_stamps_start(struct nb_port *port)
{
	int offset;

	if (rte_mbuf_dyn_rx_timestamp_register(&offset, &port->stamp_flag) != 0)
		return -rte_errno;
	port->stamp_offset = offset;
	return port->clock == NB_CLOCK_TIMESYNC ? rte_eth_timesync_enable(port->number) : 0;
}

void nb_stamps_stop(struct nb_port *port)
{
	if (port->clock == NB_CLOCK_TIMESYNC)
		rte_eth_timesync_disable(port->number);
}

void nb_stamps(const struct nb_queue *queue, const struct nb_frame *frames, uint64_t *stamps, uint32_t count)
{
	const struct nb_port *port = queue->port;

	for (uint32_t i = 0; i < count; i++) {
		const struct rte_mbuf *buffer = frames[i].handle;
		uint64_t stamp = NB_NO_STAMP;

		if (buffer->ol_flags & port->stamp_flag)
			stamp = *RTE_MBUF_DYNFIELD(buffer, port->stamp_offset, const rte_mbuf_timestamp_t *);
		/* Whole microseconds, cut off: in the middle of its microsecond a stamp errs by half of it at most. */
		if (port->clock == NB_CLOCK_SYSTEM && stamp != NB_NO_STAMP)
			stamp = stamp * 1000 + 500;
		stamps[i] = stamp;
	}
}

static uint64_t nanoseconds(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec;
}

int nb_clock(struct nb_queue *queue, uint64_t *count)
{
	struct nb_port *port = queue->port;
	struct timespec time = { 0 };
	int result;

	switch (port->clock) {
	case NB_CLOCK_DEVICE:
		return rte_eth_read_clock(port->number, count);
	case NB_CLOCK_TIMESYNC:
		/* Drivers keep what they read last, for one caller at a time. */
		rte_spinlock_lock(&port->timesync);
		result = rte_eth_timesync_read_time(port->number, &time);
		rte_spinlock_unlock(&port->timesync);
		*count = nanoseconds(&time);
		return result;
	case NB_CLOCK_SYSTEM:
		result = clock_gettime(CLOCK_REALTIME, &time);
		*count = nanoseconds(&time);
		return result == 0 ? 0 : -errno;
	default:
		return -ENOTSUP;
	}
}

uint32_t nb_send_sampled(struct nb_queue *queue, const struct nb_frame *frames, uint32_t count, uint32_t *sampled)
{
	struct nb_port *port = queue->port;
	struct rte_mbuf *first = count > 0 ? frames[0].handle : NULL;
	uint32_t accepted, free = 0;

	*sampled = 0;
	/* The card has one place for such a stamp. */
	if (port->clock != NB_CLOCK_TIMESYNC || first == NULL ||
	    !__atomic_compare_exchange_n(&port->sampling, &free, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return nb_send(queue, frames, count);
	first->ol_flags |= RTE_MBUF_F_TX_IEEE1588_TMST;
	accepted = nb_send(queue, frames, count);
	if (accepted > 0) {
		*sampled = 1;
		return accepted;
	}
	/* It stays the caller's, and goes as an ordinary frame. */
	first->ol_flags &= ~RTE_MBUF_F_TX_IEEE1588_TMST;
	__atomic_store_n(&port->sampling, 0, __ATOMIC_RELEASE);
	return 0;
}

int nb_transmit_stamp(struct nb_queue *queue, uint64_t *stamp)
{
	struct nb_port *port = queue->port;
	struct timespec time = { 0 };
	int result;

	rte_spinlock_lock(&port->timesync);
	result = rte_eth_timesync_read_tx_timestamp(port->number, &time);
	rte_spinlock_unlock(&port->timesync);
	*stamp = nanoseconds(&time);
	return result;
}

void nb_sample_done(struct nb_queue *queue)
{
	__atomic_store_n(&queue->port->sampling, 0, __ATOMIC_RELEASE);
}
