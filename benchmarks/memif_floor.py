"""What limits two cores over net_memif: the receiving core, with and without its analysis, beside testpmd's.

The same senders and receivers are put together in every way. Our receiver analyses nothing while no trial runs: it
takes bursts and gives their buffers back, so that what is left is the driver and the two calls of ours around it.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from core_watch import CoreWatch, watching
from engine_process import Engine, engine, frames_per_s, port, stream
from machine import ClockProbe, Cpus
from pairs import held
from testpmd_process import Testpmd, running_testpmd

FLOWS = 8192
# Descriptors, as the power of two that memif asks for, and bytes of a buffer. A stride of 2048 puts the first lines of
# all buffers into two sets of the first-level cache.
SHAPES = ((11, 2048), (11, 1984), (10, 2048))
# Of each of the seven processes: all must fit into the huge pages of a run.
MEMORY_MIB = 128


def link(number: int, role: str, socket: Path, shape: tuple[int, int]) -> str:
    """A vdev."""
    ring, buffer = shape
    return f"net_memif{number},role={role},id=0,socket={socket},socket-abstract=no,rsize={ring},bsize={buffer}"


class Link:
    """One memif link: who sends and who receives, kept running, and how a sample of it is taken."""

    def __init__(self, name: str, pids: list[int], take: Callable[[], float]) -> None:
        self.name = name
        self.pids = pids
        self.take = take
        self.taken: list[float] = []


def floor_lines(cpus: Cpus, pages: tuple[str, ...], seconds: float, rounds: int) -> list[str]:
    """Every pairing in turn, with rings and buffers of several sizes."""
    lines = [
        "| two cores, `net_memif` | rings | buffers | Mpps: median (range) | core cycles of the slower core |",
        "|---|---|---|---|---|",
    ]
    for shape in SHAPES:
        with ExitStack() as stack:
            watch = stack.enter_context(watching([cpus.worker, cpus.other]))
            links = make_links(stack, cpus, pages, seconds, shape, watch)
            probe = ClockProbe(cpus.other)
            pids = [pid for each in links for pid in each.pids]
            for _ in range(rounds):
                for each in links:
                    with held(*(pid for pid in pids if pid not in each.pids)):
                        each.taken.append(each.take())
                with held(*pids):
                    probe.take()
        clock = statistics.median(probe.seen_hz)
        for each in links:
            rate = statistics.median(each.taken)
            span = f"{min(each.taken) / 1e6:.1f} to {max(each.taken) / 1e6:.1f}"
            lines.append(
                f"| {each.name} | {1 << shape[0]} | {shape[1]} | {rate / 1e6:.1f} ({span}) | {clock / rate:.0f} |"
            )
    return lines


def make_links(
    stack: ExitStack, cpus: Cpus, pages: tuple[str, ...], seconds: float, shape: tuple[int, int], watch: CoreWatch
) -> list[Link]:
    """The four ways; a server comes before its client."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nicbench-bench-")))
    sockets = [folder / f"{number}.sock" for number in range(4)]
    of_ours: dict[str, Any] = {
        "worker_cpu": cpus.worker,
        "huge_pages": "--no-huge" not in pages,
        "memory_mib": MEMORY_MIB,
    }
    sends = {"cpu": cpus.worker, "transmit": [0]}

    def receiving(socket: Path) -> Testpmd:
        return stack.enter_context(
            running_testpmd(
                f"rx{socket.stem}", [link(0, "server", socket, shape)], ["--forward-mode=rxonly"],
                main_cpu=cpus.worker, worker_cpu=cpus.other, pages=pages, memory_mib=str(MEMORY_MIB),
            )
        )  # fmt: skip

    def sending(socket: Path) -> Testpmd:
        return stack.enter_context(
            running_testpmd(
                f"tx{socket.stem}", [link(0, "client", socket, shape)], ["--forward-mode=txonly", "--txpkts=60"],
                main_cpu=cpus.other, worker_cpu=cpus.worker, pages=pages, memory_mib=str(MEMORY_MIB),
            )
        )  # fmt: skip

    def vdev(name: str, number: int, role: str, socket: Path) -> dict[str, Any]:
        return port(name, "vdev", vdev=link(number, role, socket, shape))

    def ours(ports: list[dict[str, Any]], workers: list[dict[str, Any]]) -> Engine:
        return stack.enter_context(engine(ports, workers=workers, **of_ours))

    def of_testpmd(process: Testpmd) -> float:
        return process.rate(seconds, watch.sample)

    def of_trial(process: Engine, streams: list[dict[str, Any]]) -> float:
        with watch.sample():
            reading = process.trial(streams, seconds, drain_s=0.02)
            process.request("settle", duration_s=0.0)
        return frames_per_s(reading)

    receiver, sender = receiving(sockets[0]), sending(sockets[0])

    def plain() -> float:
        with receiver.forwarding():
            return of_testpmd(sender)

    # The first worker has nothing to do here; the second one takes what comes and throws it away.
    idle = ours([vdev("m0", 0, "server", sockets[1])], [sends, {"cpu": cpus.other, "receive": [0]}])
    to_idle = sending(sockets[1])
    both = ours(
        [vdev("m0", 0, "server", sockets[2]), vdev("m1", 1, "client", sockets[2])],
        [sends, {"cpu": cpus.other, "receive": [1]}],
    )
    plain_receiver = receiving(sockets[3])
    alone = ours([vdev("m0", 0, "client", sockets[3])], [sends, {"cpu": cpus.other, "receive": [0]}])

    def to_plain() -> float:
        with plain_receiver.forwarding():
            return of_trial(alone, [stream(FLOWS)])

    return [
        Link("txonly to rxonly", [receiver.pid, sender.pid], plain),
        Link("txonly to our receiver, nothing analysed", [idle.pid, to_idle.pid], lambda: of_testpmd(to_idle)),
        Link("our generator to rxonly", [plain_receiver.pid, alone.pid], to_plain),
        Link(
            "our generator to our analyser", [both.pid], lambda: of_trial(both, [stream(FLOWS, transmit=0, receive=1)])
        ),
    ]
