"""Rows over one veth, by AF_XDP and in the kernel. The kernel counts frames at the far end, for every sender alike."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from core_watch import watching
from machine import Cpus, is_there
from pairs import Row
from senders import LiveFrames, Nicbench, Sender, Testpmd, Trafgen, XdpTrafficgen, measure, works
from veth_pair import veth_pair

FRAME_BYTES = 64
SETTLE_S = 0.2


def veth_rows(stack: ExitStack, cpus: Cpus, pages: tuple[str, ...], seconds: float) -> list[Row]:
    """Pages are small here for all: a umem gains nothing from huge ones. Every sender starts anew for each sample."""
    del pages
    watch = stack.enter_context(watching([cpus.worker, cpus.other]))
    wire = stack.enter_context(veth_pair())

    def sample(sender: Sender) -> Callable[[], float]:
        return lambda: measure(sender, wire, FRAME_BYTES, seconds, SETTLE_S, watch).frames_per_s

    ours = sample(Nicbench(worker_cpu=cpus.worker))
    testpmd = sample(Testpmd(worker_cpu=cpus.worker, main_cpu=cpus.other))
    trafgen = sample(Trafgen())
    in_kernel = sample(Nicbench(worker_cpu=cpus.worker, driver="xdp"))
    same_bytes, bare = (sample(LiveFrames(cpus.worker, program)) for program in ("same_bytes", "bare"))
    work = "generate, 256 flows, veth, `xdp`"
    rows = [
        Row(work, "txonly", 2.0, in_kernel, testpmd, watch),
        Row(work, "a loop that writes the same bytes", 0.9, in_kernel, same_bytes, watch),
        Row(work, "a loop that writes nothing", None, in_kernel, bare, watch),
        Row("generate, 256 flows, veth, `net_af_xdp`", "txonly", 1.0, ours, testpmd, watch),
    ]
    if is_there(XdpTrafficgen.name, "xdp-tools") and works(XdpTrafficgen(), wire):
        rows.append(Row(work, "xdp-trafficgen (no stamp)", 1.0, in_kernel, sample(XdpTrafficgen()), watch))
    if is_there("trafgen", "netsniff-ng"):
        rows += [
            Row(work, "trafgen", 2.0, in_kernel, trafgen, watch),
            Row("generate, 256 flows, veth, `net_af_xdp`", "trafgen", 2.0, ours, trafgen, watch),
        ]
    return rows
