"""Rows over one veth, by AF_XDP and in the kernel. The kernel counts frames at the far end, for every sender alike."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from core_watch import watching
from machine import Cpus, is_there
from pairs import Row
from senders import Nicbench, Sender, Testpmd, Trafgen, bare_sender, measure
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
    bare_loop = bare_sender(wire, cpus.worker)
    bare = sample(bare_loop)
    rows = [
        Row("generate, 256 flows, veth, `xdp`", "txonly", 2.0, in_kernel, testpmd, watch),
        Row("generate, 256 flows, veth, `xdp`", bare_loop.name, 0.9, in_kernel, bare, watch),
        Row("generate, 256 flows, veth, `net_af_xdp`", "txonly", 1.0, ours, testpmd, watch),
    ]
    if is_there("trafgen", "netsniff-ng"):
        rows += [
            Row("generate, 256 flows, veth, `xdp`", "trafgen", 2.0, in_kernel, trafgen, watch),
            Row("generate, 256 flows, veth, `net_af_xdp`", "trafgen", 2.0, ours, trafgen, watch),
        ]
    return rows
