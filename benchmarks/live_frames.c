// A plain sender by XDP live frames, to measure beside: it stamps nothing, numbers nothing and checks nothing. NAME is
// bare, which writes nothing into a frame, or same_bytes, which writes each of its 60 bytes.
// Usage: live_frames PROGRAM.o NAME INTERFACE CPU BATCH SECONDS
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { FRAME_BYTES = 60, RUNS = 5000000 };

static double now_s(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	if (argc != 7)
		return 2;
	struct bpf_object *object = bpf_object__open_file(argv[1], NULL);
	if (!object || bpf_object__load(object))
		return 1;
	unsigned int key = 0, interface = if_nametoindex(argv[3]);
	int map = bpf_object__find_map_fd_by_name(object, "target");
	int program = bpf_program__fd(bpf_object__find_program_by_name(object, argv[2]));
	if (!interface || bpf_map_update_elem(map, &key, &interface, BPF_ANY))
		return 1;
	cpu_set_t cpus;
	CPU_ZERO(&cpus);
	CPU_SET(atoi(argv[4]), &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	unsigned char frame[FRAME_BYTES] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 0x88, 0xb5};
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = sizeof(frame), .repeat = RUNS,
		    .flags = BPF_F_TEST_XDP_LIVE_FRAMES, .batch_size = atoi(argv[5]));
	for (double end = now_s() + atof(argv[6]); now_s() < end;)
		if (bpf_prog_test_run_opts(program, &options))
			return 1;
	return 0;
}
