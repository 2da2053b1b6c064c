#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
SEC("xdp")
int generate(__attribute__((unused)) struct xdp_md *context) { return XDP_DROP; }
char _license[] SEC("license") = "GPL";
