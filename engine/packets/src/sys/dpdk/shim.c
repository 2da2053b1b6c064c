/* Starts EAL, opens and closes ports, reads their counters: all that happens once or between trials. */
#include "shim_port.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifdef NB_STATIC_VERBS
/* The providers that verbs.h declares only when they are linked statically. */
#define RDMA_STATIC_PROVIDERS mlx5, mlx4
#include <infiniband/verbs.h>
#endif
#include <linux/bpf.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_memory.h>
#include <rte_mempool.h>
#include <rte_version.h>

_Static_assert(sizeof(struct nb_frame) == 24, "the layout of Frame in frame.rs");
_Static_assert(offsetof(struct nb_frame, data) == 0, "the layout of Frame in frame.rs");
_Static_assert(offsetof(struct nb_frame, length) == 8, "the layout of Frame in frame.rs");
_Static_assert(offsetof(struct nb_frame, handle) == 16, "the layout of Frame in frame.rs");
_Static_assert(sizeof(struct nb_port_options) == 56, "the layout in ffi.rs");
_Static_assert(sizeof(struct nb_port_facts) == 100, "the layout in ffi.rs");
_Static_assert(sizeof(struct nb_port_statistics) == 56, "the layout in ffi.rs");
_Static_assert(RTE_ETH_XSTATS_NAME_SIZE == 64, "the names of extended statistics");

/* Why the last bind of an AF_XDP socket failed, 0 if it did not: the driver itself says EINVAL whatever happened. */
static int last_bind_error;

const char *nb_version(void)
{
	return rte_version();
}

const char *nb_error_text(int error)
{
	return rte_strerror(error < 0 ? -error : error);
}

/* libxdp's call comes here (--wrap=bind). The kernel releases an AF_XDP queue some time after its owner's exit, and
 * until then answers EBUSY; the driver cannot be asked twice, so the wait is here, at most two seconds. */
int __real_bind(int descriptor, const struct sockaddr *address, socklen_t length);
int __wrap_bind(int descriptor, const struct sockaddr *address, socklen_t length);

int __wrap_bind(int descriptor, const struct sockaddr *address, socklen_t length)
{
	const struct timespec pause = { .tv_nsec = 20 * 1000 * 1000 };
	int result = __real_bind(descriptor, address, length);

	for (int attempt = 0; attempt < 100; attempt++) {
		if (result == 0 || errno != EBUSY || address->sa_family != AF_XDP)
			break;
		nanosleep(&pause, NULL);
		result = __real_bind(descriptor, address, length);
	}
	if (address->sa_family == AF_XDP)
		last_bind_error = result == 0 ? 0 : errno;
	return result;
}

/* The driver of memif asks for the descriptor of EAL's memory when it starts a port without copies, and closes it when
 * that port is connected: then the next port would hand its peer a closed one, or another file that got its number. So
 * each has a copy. */
int __real_rte_memseg_get_fd(const struct rte_memseg *segment);
int __wrap_rte_memseg_get_fd(const struct rte_memseg *segment);

int __wrap_rte_memseg_get_fd(const struct rte_memseg *segment)
{
	int descriptor = __real_rte_memseg_get_fd(segment);

	return descriptor < 0 ? descriptor : dup(descriptor);
}

int nb_eal_start(int count, char **arguments)
{
	int result, protocol;

	/* stdout carries the protocol, but EAL prints a page of usage there when it dislikes an argument: until it is
	 * up, stdout is stderr. */
	fflush(stdout);
	protocol = dup(STDOUT_FILENO);
	if (protocol < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return -errno;
	rte_openlog_stream(stderr);
#ifdef NB_STATIC_VERBS
	/* A static libibverbs must be told of its providers: it finds none by file name. */
	ibv_static_providers(NULL, &verbs_provider_mlx5, &verbs_provider_mlx4, NULL);
#endif
	result = rte_eal_init(count, arguments) < 0 ? -rte_errno : 0;
	/* EAL's folder stays empty, and would outlive the process. */
	rmdir(rte_eal_get_runtime_dir());
	fflush(stdout);
	dup2(protocol, STDOUT_FILENO);
	close(protocol);
	return result;
}

int nb_port_find(const char *device)
{
	uint16_t number;
	int result = rte_eth_dev_get_port_by_name(device, &number);

	return result < 0 ? result : number;
}

static int on_link_change(uint16_t number, enum rte_eth_event_type event, void *argument, void *details)
{
	struct nb_port *port = argument;

	(void)number, (void)event, (void)details;
	__atomic_fetch_add(&port->link_changes, 1, __ATOMIC_RELAXED);
	return 0;
}

static void read_facts(struct nb_port *port, const struct rte_eth_dev_info *info, struct nb_port_facts *facts)
{
	struct rte_ether_addr mac = { 0 };
	struct rte_eth_link link = { .link_speed = RTE_ETH_SPEED_NUM_UNKNOWN };
	uint16_t mtu = RTE_ETHER_MTU;

	snprintf(facts->driver, sizeof(facts->driver), "%s", info->driver_name);
	if (rte_eth_macaddr_get(port->number, &mac) == 0)
		memcpy(facts->mac, mac.addr_bytes, sizeof(facts->mac));
	if (rte_eth_link_get(port->number, &link) != 0 || link.link_speed == RTE_ETH_SPEED_NUM_NONE)
		link.link_speed = RTE_ETH_SPEED_NUM_UNKNOWN;
	facts->link_mbits_per_s = link.link_speed;
	facts->link_up = link.link_status;
	rte_eth_dev_get_mtu(port->number, &mtu);
	facts->mtu_bytes = mtu;
	facts->numa_node = rte_eth_dev_socket_id(port->number);
	facts->clock = port->clock;
}

static int set_up_queues(struct nb_port *port, const struct nb_port_options *options, uint16_t receive,
			 uint16_t transmit, int socket, const char **step)
{
	int result;

	port->transmit_each = options->transmit_queues_each;
	port->receive_each = options->receive_queues_each;
	port->pool_count = RTE_MAX(options->transmit_queues / port->transmit_each, options->receive_queues / port->receive_each);
	if (port->pool_count > NB_MAXIMUM_QUEUES)
		return -E2BIG;
	for (uint32_t pool = 0; pool < port->pool_count; pool++) {
		*step = "allocating its buffers (memory_mib may be too small)";
		port->pools[pool] = nb_pool_create(port->number, pool, options, socket);
		if (port->pools[pool] == NULL)
			return -rte_errno;
		*step = "allocating its buffers in one piece (memory_mib may be too small)";
		if (options->umem && !nb_pool_is_one_umem(port->pools[pool]))
			return -ENOMEM;
	}
	for (uint32_t queue = 0; queue < options->transmit_queues; queue++) {
		*step = "setting up its transmit queue";
		result = rte_eth_tx_queue_setup(port->number, queue, transmit, socket, NULL);
		if (result < 0)
			return result;
	}
	for (uint32_t queue = 0; queue < options->receive_queues; queue++) {
		*step = "setting up its receive queue";
		last_bind_error = 0;
		result = rte_eth_rx_queue_setup(port->number, queue, receive, socket, NULL,
						port->pools[queue / port->receive_each]);
		if (result < 0 && last_bind_error != 0) {
			*step = "binding its AF_XDP socket";
			return -last_bind_error;
		}
		if (result < 0)
			return result;
	}
	return 0;
}

static int start_port(struct nb_port *port, const struct nb_port_options *options, struct nb_port_facts *facts,
		      const char **step)
{
	struct rte_eth_conf configuration = { 0 };
	struct rte_eth_dev_info info;
	uint16_t transmit = options->transmit_descriptors, receive = options->receive_descriptors;
	int socket = rte_eth_dev_socket_id(port->number), result;

	*step = "asking for its properties";
	result = rte_eth_dev_info_get(port->number, &info);
	if (result < 0)
		return result;
	facts->reports_link_changes = info.dev_flags && (*info.dev_flags & RTE_ETH_DEV_INTR_LSC);
	configuration.intr_conf.lsc = facts->reports_link_changes;
	*step = "configuring it";
	if (options->receive_queues > 1 && info.flow_type_rss_offloads != 0) {
		/* Each flow on one queue. */
		configuration.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		configuration.rx_adv_conf.rss_conf.rss_hf =
			info.flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP);
	}
	if (options->own_buffers_only)
		configuration.txmode.offloads = info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
	if (options->stamps)
		nb_stamps_configure(port, &info, &configuration);
	result = rte_eth_dev_configure(port->number, options->receive_queues, options->transmit_queues, &configuration);
	if (result < 0)
		return result;
	*step = "fitting its descriptors";
	result = rte_eth_dev_adjust_nb_rx_tx_desc(port->number, &receive, &transmit);
	if (result < 0)
		return result;
	nb_pool_note_start(port, options);
	result = set_up_queues(port, options, receive, transmit, socket, step);
	if (result < 0)
		return result;
	if (facts->reports_link_changes)
		rte_eth_dev_callback_register(port->number, RTE_ETH_EVENT_INTR_LSC, on_link_change, port);
	*step = "starting it";
	result = rte_eth_dev_start(port->number);
	if (result < 0)
		return result;
	if (options->stamps) {
		*step = "preparing its time stamps";
		result = nb_stamps_start(port);
		if (result < 0)
			return result;
	}
	/* Frames for other addresses count as foreign, so they must be seen; not every driver can. */
	rte_eth_promiscuous_enable(port->number);
	port->was_promiscuous = options->is_promiscuous;
	facts->transmit_descriptors = transmit;
	facts->receive_descriptors = receive;
	/* The kernel keeps XDP_PACKET_HEADROOM of each umem chunk for itself. */
	facts->buffer_bytes = port->room - (options->umem ? XDP_PACKET_HEADROOM : 0);
	read_facts(port, &info, facts);
	return 0;
}

int nb_port_open(int number, const struct nb_port_options *options, struct nb_port **opened,
		 struct nb_port_facts *facts, const char **step)
{
	struct nb_port *port = rte_zmalloc("nicbench_port", sizeof(*port), RTE_CACHE_LINE_SIZE);
	int result;

	*step = "allocating it";
	if (port == NULL)
		return -ENOMEM;
	port->number = number;
	result = start_port(port, options, facts, step);
	if (result < 0) {
		/* Nothing is undone: a driver left half-way is not safe to close, and the process ends after this error. */
		rte_free(port);
		return result;
	}
	*opened = port;
	return 0;
}

void nb_port_close(struct nb_port *port)
{
	rte_eth_dev_callback_unregister(port->number, RTE_ETH_EVENT_INTR_LSC, on_link_change, port);
	nb_stamps_stop(port);
	rte_eth_dev_stop(port->number);
	/* Drivers over a kernel interface leave it as it is at the end. */
	if (!port->was_promiscuous)
		rte_eth_promiscuous_disable(port->number);
	rte_eth_dev_close(port->number);
	for (uint32_t pool = 0; pool < port->pool_count; pool++)
		rte_mempool_free(port->pools[pool]);
	rte_free(port);
}

struct nb_queue *nb_queue_open(struct nb_port *port, uint32_t transmit, uint32_t receive)
{
	struct nb_queue *queue = rte_zmalloc("nicbench_queue", sizeof(*queue), RTE_CACHE_LINE_SIZE);
	uint32_t number = transmit != NB_NO_QUEUE ? transmit : receive;

	if (queue == NULL)
		return NULL;
	queue->pool = port->pools[number == NB_NO_QUEUE ? 0 : number];
	queue->port = port;
	queue->rearm = port->rearm;
	queue->room = port->room;
	queue->hands_over = port->hands_over;
	queue->number = port->number;
	queue->transmit = transmit * port->transmit_each;
	queue->receive = receive * port->receive_each;
	queue->transmit_count = port->transmit_each;
	queue->receive_count = port->receive_each;
	return queue;
}

void nb_queue_close(struct nb_queue *queue)
{
	rte_free(queue);
}

uint64_t nb_queue_unlinearised(const struct nb_queue *queue)
{
	return __atomic_load_n(&queue->unlinearised, __ATOMIC_RELAXED);
}

int nb_launch(uint32_t lcore, int (*task)(void *), void *argument)
{
	return rte_eal_remote_launch(task, argument, lcore);
}

void nb_wait(uint32_t lcore)
{
	rte_eal_wait_lcore(lcore);
}

int nb_statistics(struct nb_port *port, struct nb_port_statistics *statistics)
{
	struct rte_eth_stats stats = { 0 };
	int result = rte_eth_stats_get(port->number, &stats);

	*statistics = (struct nb_port_statistics){
		.transmitted = stats.opackets,
		.received = stats.ipackets,
		.missed = stats.imissed,
		.receive_errors = stats.ierrors,
		.transmit_errors = stats.oerrors,
		.no_buffer = stats.rx_nombuf,
		.link_changes = __atomic_load_n(&port->link_changes, __ATOMIC_RELAXED),
	};
	return result;
}

int nb_link_up(struct nb_port *port)
{
	struct rte_eth_link link = { 0 };
	int result = rte_eth_link_get_nowait(port->number, &link);

	return result < 0 ? result : link.link_status;
}

int nb_extended_count(struct nb_port *port)
{
	return rte_eth_xstats_get_names(port->number, NULL, 0);
}

int nb_extended(struct nb_port *port, char (*names)[64], uint64_t *values, uint32_t count)
{
	struct rte_eth_xstat_name *descriptions = rte_calloc("nicbench", count, sizeof(*descriptions), 0);
	struct rte_eth_xstat *readings = rte_calloc("nicbench", count, sizeof(*readings), 0);
	int result = -ENOMEM;

	if (descriptions != NULL && readings != NULL) {
		result = rte_eth_xstats_get_names(port->number, descriptions, count);
		if (result > 0)
			result = rte_eth_xstats_get(port->number, readings, count);
		for (int i = 0; i < result && i < (int)count; i++) {
			memcpy(names[i], descriptions[readings[i].id].name, sizeof(names[i]));
			values[i] = readings[i].value;
		}
	}
	rte_free(descriptions);
	rte_free(readings);
	return result;
}
