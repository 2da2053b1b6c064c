// SPDX-License-Identifier: GPL-2.0
// TCP connections in the driver's hook: each segment that arrives is answered in its place, and what begins by the clock
// is sent as a live frame. `client` and `server` are the ends; the process that loads one of them leaves the other out.

#include "client.h"
#include "server.h"

char _license[] SEC("license") = "GPL";
