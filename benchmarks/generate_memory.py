"""Rows over ports in memory: the generator alone into ``net_null``, and generator and analyser on two cores."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import ring_loop
from core_watch import CoreWatch, watching
from engine_process import Engine, engine, frames_per_s, port, stream
from forward_memif import measure, reflector, testpmd_macswap
from machine import Cpus
from pairs import Row, held
from ring_loop import RingLoop
from testpmd_process import Testpmd, running_testpmd

# By what a frame of the loop in C costs: bytes written into each, and read of each that arrives.
RING_PEERS = {"60 bytes written": (60, 0), "nothing written": (0, 0), "60 bytes written and read": (60, 60)}
NULL = "net_null0,no-rx=1"
FLOWS = 8192


def memif(number: int, role: str, socket: Path) -> str:
    """A vdev; both ends have rings of 2048."""
    return f"net_memif{number},role={role},id=0,socket={socket},socket-abstract=no,rsize=11"


def sampled(
    process: Engine, rest: list[int], watch: CoreWatch, seconds: float, streams: list[dict[str, Any]],
    received: bool = False,
) -> Callable[[], float]:  # fmt: skip
    """A sample of ours; ``rest`` stands still meanwhile. ``received`` counts what came, not what was sent."""

    def sample() -> float:
        with held(*rest), watch.sample():
            reading = process.trial(streams, seconds, drain_s=0.02)
            process.request("settle", duration_s=0.0)
        if received:
            return float(sum(each["received"] for each in reading["streams"]) / reading["transmit_ns"] * 1e9)
        return frames_per_s(reading)

    return sample


def of_testpmd(process: Testpmd, rest: list[int], watch: CoreWatch, seconds: float) -> Callable[[], float]:
    """A sample of testpmd."""

    def sample() -> float:
        with held(*rest):
            return process.rate(seconds, watch.sample)

    return sample


def null_rows(stack: ExitStack, cpus: Cpus, pages: tuple[str, ...], seconds: float) -> list[Row]:
    """One core into ``net_null``."""
    huge = "--no-huge" not in pages
    watch = stack.enter_context(watching([cpus.worker]))
    ours = stack.enter_context(engine([port("null", "null")], worker_cpu=cpus.worker, huge_pages=huge, memory_mib=160))
    modes = {
        "txonly": ["--forward-mode=txonly", "--txpkts=60"],
        "multi": ["--forward-mode=txonly", "--txpkts=60", "--txonly-multi-flow"],
        "flowgen": ["--forward-mode=flowgen", "--txpkts=60", f"--flowgen-flows={FLOWS}"],
    }
    peers = {
        name: stack.enter_context(
            running_testpmd(
                name, [NULL], options, main_cpu=cpus.other, worker_cpu=cpus.worker, pages=pages, memory_mib="160"
            )
        )
        for name, options in modes.items()
    }
    one, many = (sampled(ours, [], watch, seconds, [stream(flows)]) for flows in (1, FLOWS))

    def peer(name: str) -> Callable[[], float]:
        return of_testpmd(peers[name], [ours.pid], watch, seconds)

    return [
        Row("generate, 1 flow, `net_null`", "txonly", 1.0, one, peer("txonly"), watch),
        Row(f"generate, {FLOWS} flows, `net_null`", "txonly --txonly-multi-flow", 1.0, many, peer("multi"), watch),
        Row(f"generate, {FLOWS} flows, `net_null`", "flowgen", 1.9, many, peer("flowgen"), watch),
    ]


def two_core_rows(stack: ExitStack, cpus: Cpus, pages: tuple[str, ...], seconds: float) -> list[Row]:
    """Generate on one core and analyse every packet on another."""
    huge = "--no-huge" not in pages
    watch = stack.enter_context(watching([cpus.worker, cpus.other]))
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nicbench-bench-")))
    own, theirs = folder / "own.sock", folder / "peer.sock"

    def workers(transmit: int, receive: int) -> list[dict[str, Any]]:
        return [{"cpu": cpus.worker, "transmit": [transmit]}, {"cpu": cpus.other, "receive": [receive]}]

    common: dict[str, Any] = {"worker_cpu": cpus.worker, "huge_pages": huge, "memory_mib": 192}
    ring = stack.enter_context(engine([port("ring", "ring")], workers=workers(0, 0), **common))
    ends = [port("m0", "vdev", vdev=memif(0, "server", own)), port("m1", "vdev", vdev=memif(1, "client", own))]
    shared = stack.enter_context(engine(ends, workers=workers(0, 1), **common))
    options: dict[str, Any] = {"pages": pages, "memory_mib": "160"}
    receiver = stack.enter_context(
        running_testpmd(
            "rx",
            [memif(0, "server", theirs)],
            ["--forward-mode=rxonly"],
            main_cpu=cpus.worker,
            worker_cpu=cpus.other,
            **options,
        )
    )
    sender = stack.enter_context(
        running_testpmd(
            "tx",
            [memif(0, "client", theirs)],
            ["--forward-mode=txonly", "--txpkts=60"],
            main_cpu=cpus.other,
            worker_cpu=cpus.worker,
            **options,
        )
    )

    program = stack.enter_context(ring_loop.compiled())
    loops = {
        name: stack.enter_context(
            ring_loop.running_ring_loop(
                program, written=written, read=read, sender_cpu=cpus.worker, receiver_cpu=cpus.other, pages=pages,
                memory_mib=64,
            )
        )
        for name, (written, read) in RING_PEERS.items()
    }  # fmt: skip
    pids = [ring.pid, shared.pid, *(loop.pid for loop in loops.values())]

    def rest(pid: int) -> list[int]:
        return [other for other in pids if other != pid]

    def of_memif() -> float:
        with held(*pids), receiver.forwarding():
            return sender.rate(seconds, watch.sample)

    def of_loop(loop: RingLoop) -> Callable[[], float]:
        def sample() -> float:
            with held(*rest(loop.pid)):
                return loop.rate(seconds, watch.sample)

        return sample

    work = f"generate and analyse on two cores, {FLOWS} flows"
    over_ring = sampled(ring, rest(ring.pid), watch, seconds, [stream(FLOWS)])
    over_memif = sampled(shared, rest(shared.pid), watch, seconds, [stream(FLOWS, transmit=0, receive=1)])
    rows = [
        Row(f"{work}, `net_ring`", f"DPDK in C, {name}", wanted, over_ring, of_loop(loops[name]), watch)
        for name, wanted in zip(RING_PEERS, (1.0, None, None), strict=True)
    ]
    return [*rows, Row(f"{work}, `net_memif`", "txonly to rxonly", 1.0, over_memif, of_memif, watch)]


def forward_rows(stack: ExitStack, cpus: Cpus, pages: tuple[str, ...], seconds: float) -> list[Row]:
    """A forwarder on one core, frames going round through it from the other; small pages for both."""
    del pages
    order = (cpus.other, cpus.worker)
    watch = stack.enter_context(watching(order))
    return [
        Row(
            "forward (`reflect`, mac_swap), `net_memif`", "macswap", 0.95,
            lambda: measure(reflector, order, seconds, watch), lambda: measure(testpmd_macswap, order, seconds, watch),
            watch,
        )
    ]  # fmt: skip


def is_root() -> bool:
    """Huge pages and namespaces need it."""
    return os.geteuid() == 0
