// Both ends of connections that nobody records, to measure beside: see bare_connections.bpf.c. Prints how many were
// complete. Usage: bare_connections PROGRAM.o CLIENT_INTERFACE SERVER_INTERFACE SECONDS
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SEGMENT_BYTES = 60, RUNS = 20000, AT_ONCE = 32, SETTLE_NS = 100000000 };

static double now_s(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int program_of(struct bpf_object *object, const char *name)
{
	return bpf_program__fd(bpf_object__find_program_by_name(object, name));
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	struct bpf_object *object = bpf_object__open_file(argv[1], NULL);
	if (!object || bpf_object__load(object))
		return 1;
	unsigned int key = 0, client = if_nametoindex(argv[2]), server = if_nametoindex(argv[3]);
	if (bpf_map_update_elem(bpf_object__find_map_fd_by_name(object, "target"), &key, &client, BPF_ANY) ||
	    bpf_xdp_attach(client, program_of(object, "client"), XDP_FLAGS_DRV_MODE, NULL) ||
	    bpf_xdp_attach(server, program_of(object, "server"), XDP_FLAGS_DRV_MODE, NULL))
		return 1;
	unsigned char segment[SEGMENT_BYTES] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, [12] = 8, [14] = 0x45,
						[22] = 64, [23] = 6, [46] = 0x50};
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = segment, .data_size_in = sizeof(segment), .repeat = RUNS,
		    .flags = BPF_F_TEST_XDP_LIVE_FRAMES, .batch_size = AT_ONCE);
	for (double end = now_s() + atof(argv[4]); now_s() < end;)
		if (bpf_prog_test_run_opts(program_of(object, "begin"), &options))
			return 1;
	nanosleep(&(struct timespec){.tv_nsec = SETTLE_NS}, NULL);
	unsigned long long counts[2];
	if (bpf_map_lookup_elem(bpf_object__find_map_fd_by_name(object, "counted"), &key, counts))
		return 1;
	printf("%llu of %llu complete\n", counts[1], counts[0]);
	bpf_xdp_detach(client, XDP_FLAGS_DRV_MODE, NULL);
	bpf_xdp_detach(server, XDP_FLAGS_DRV_MODE, NULL);
	return 0;
}
