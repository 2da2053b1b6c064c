/* Whole-burst calls over plain structs: all that the Rust side sees of DPDK. `ffi.rs` mirrors this file. */
#ifndef NICBENCH_SHIM_H
#define NICBENCH_SHIM_H

#include <stdint.h>

#define NB_MAXIMUM_BURST 64

/* The same bytes as `Frame` in frame.rs. */
struct nb_frame {
	uint8_t *data;
	uint32_t length;
	/* 1: the buffer holds the constant bytes that the tag of its allocation names. */
	uint32_t prefilled;
	void *handle;
};

struct nb_port_options {
	uint32_t transmit_descriptors;
	uint32_t receive_descriptors;
	uint32_t buffers;
	/* Bytes of a frame that one buffer must hold, without FCS. */
	uint32_t frame_bytes;
	/* AF_XDP: the pool is a umem, so it must be one piece, and a buffer with its header at most a page. */
	uint32_t umem;
	/* The interface was promiscuous before, and stays so. */
	uint32_t is_promiscuous;
	/* No device reads the buffers by bus addresses: they need not lie within a page each. */
	uint32_t packed;
	uint32_t transmit_queues;
	uint32_t receive_queues;
	/* Queues of one thread: it has these many in a row, and spreads what it sends over them by flow. */
	uint32_t transmit_queues_each;
	uint32_t receive_queues_each;
	/* Every buffer that is sent was allocated from the pool of its queue: a card may give them back all at once. */
	uint32_t own_buffers_only;
	/* Received frames are to bear time stamps, where the driver can. */
	uint32_t stamps;
	/* A frame is received in the buffer that it was sent in (net_ring): it is as it was written. */
	uint32_t hands_over;
};

/* What reads the clock of a port's time stamps: none, rte_eth_read_clock, rte_eth_timesync_read_time (nanoseconds), or
 * CLOCK_REALTIME (nanoseconds). */
enum nb_clock { NB_CLOCK_NONE, NB_CLOCK_DEVICE, NB_CLOCK_TIMESYNC, NB_CLOCK_SYSTEM };

#define NB_NO_STAMP UINT64_MAX

struct nb_port_facts {
	char driver[64];
	uint8_t mac[6];
	uint8_t link_up;
	uint8_t reports_link_changes;
	/* UINT32_MAX: the driver does not know. */
	uint32_t link_mbits_per_s;
	uint32_t mtu_bytes;
	/* The longest frame that one received buffer holds, without FCS. */
	uint32_t buffer_bytes;
	uint32_t transmit_descriptors;
	uint32_t receive_descriptors;
	int32_t numa_node;
	/* Of the time stamps that received frames bear: an enum nb_clock. */
	uint32_t clock;
};

struct nb_port_statistics {
	uint64_t transmitted;
	uint64_t received;
	uint64_t missed;
	uint64_t receive_errors;
	uint64_t transmit_errors;
	uint64_t no_buffer;
	uint64_t link_changes;
};

struct nb_port;
/* One thread's part of a port: a queue each way, or one way only, and a pool. */
struct nb_queue;

#define NB_NO_QUEUE UINT32_MAX

const char *nb_version(void);
/* Starts EAL; 0, or a negative errno. */
int nb_eal_start(int count, char **arguments);
/* The number of the port whose device has this name, or a negative errno. */
int nb_port_find(const char *device);
/* Configures and starts a port; 0, or a negative errno with `*step` naming what failed. */
int nb_port_open(int number, const struct nb_port_options *options, struct nb_port **port, struct nb_port_facts *facts,
		 const char **step);
void nb_port_close(struct nb_port *port);
/* The part of the thread of this number among those that transmit, and that receive; NB_NO_QUEUE where it does not. NULL
 * without memory. */
struct nb_queue *nb_queue_open(struct nb_port *port, uint32_t transmit, uint32_t receive);
void nb_queue_close(struct nb_queue *queue);
/* Frames that came in several buffers and did not fit into one. */
uint64_t nb_queue_unlinearised(const struct nb_queue *queue);
/* Runs a function on another of EAL's threads; 0, or a negative errno. */
int nb_launch(uint32_t lcore, int (*task)(void *), void *argument);
/* Waits for its end. */
void nb_wait(uint32_t lcore);
/* `tag` names constant bytes that the caller will have written into each buffer before it is given back; 0: none. */
uint32_t nb_allocate(struct nb_queue *queue, struct nb_frame *frames, uint32_t count, uint32_t length, uint64_t tag);
uint32_t nb_send(struct nb_queue *queue, const struct nb_frame *frames, uint32_t count);
uint32_t nb_receive(struct nb_queue *queue, struct nb_frame *frames, uint32_t count);
void nb_free(const struct nb_frame *frames, uint32_t count);
void nb_flush(struct nb_queue *queue);
/* The time stamps of received frames that were not given back yet; NB_NO_STAMP for one without. */
void nb_stamps(const struct nb_queue *queue, const struct nb_frame *frames, uint64_t *stamps, uint32_t count);
/* The count of the clock of these stamps, now; 0, or a negative errno. */
int nb_clock(struct nb_queue *queue, uint64_t *count);
/* As nb_send; `*sampled` says whether the card notes when the first frame leaves. One at a time in a port: until
 * nb_sample_done. */
uint32_t nb_send_sampled(struct nb_queue *queue, const struct nb_frame *frames, uint32_t count, uint32_t *sampled);
/* When it left; 0, or a negative errno while that is not known. */
int nb_transmit_stamp(struct nb_queue *queue, uint64_t *stamp);
void nb_sample_done(struct nb_queue *queue);
int nb_statistics(struct nb_port *port, struct nb_port_statistics *statistics);
/* 1 up, 0 down, or a negative errno. */
int nb_link_up(struct nb_port *port);
/* Extended statistics: their number, then one name (64 bytes) and value each. */
int nb_extended_count(struct nb_port *port);
int nb_extended(struct nb_port *port, char (*names)[64], uint64_t *values, uint32_t count);
const char *nb_error_text(int error);

#endif
