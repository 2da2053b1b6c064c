"""Third stage: the tester on the testbed's ports."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from nicbench.bench_file.frame_sizes import sizes_of
from nicbench.bench_file.models import BenchFile
from nicbench.engine.binary import find_binary
from nicbench.engine.packets import PacketsOptions, PacketsTester, Recording
from nicbench.engine.received import RAW
from nicbench.engine.tester import Tester, TesterFacts
from nicbench.errors import BenchFileError
from nicbench.labs.base import Testbed, TesterPort
from nicbench.tuning.bpf import expect_program
from nicbench.tuning.changes import Changes

# How the protocol calls a port by these drivers; a lab makes its ports for AF_XDP.
_OTHER_KINDS = {"net_af_packet": "af_packet", "net_pcap": "pcap"}


def make_tester(
    bench: BenchFile,
    testbed: Testbed,
    dut_cpus: tuple[int, ...],
    run_id: str,
    engine_folder: str | None,
    fault: dict[str, float] | None = None,
    neighbours: tuple[tuple[dict[str, Any], ...], ...] = (),
    run_folder: Path | None = None,
) -> PacketsTester:
    """The tester, not started yet. ``fault`` is for tests; ``neighbours``: addresses each port answers for.

    Without ``run_folder`` no files are written.
    """
    tester = bench.tester
    worker = tester.worker_cpu if tester.worker_cpu is not None else testbed.cores.worker
    options = PacketsOptions(
        run_key=run_key(run_id, bench.seed),
        ports=tuple(
            _port(bench, port, neighbours[index] if index < len(neighbours) else ())
            for index, port in enumerate(testbed.tester_ports)
        ),
        worker_cpu=None if testbed.simulated or tester.workers else worker,
        workers=_workers(bench, testbed),
        watch_cpus=dut_cpus,
        virtual_clock=testbed.simulated,
        huge_pages=tester.huge_pages,
        memory_mib=max(1, tester.memory // 2**20),
        burst=tester.burst,
        catch_up_s=tester.catch_up,
        latency_from=tester.latency_from,
        reordering_n=tester.reordering_n,
        timestamps=tester.timestamps,
        traffic=bench.traffic,
        eal=testbed.eal,
        recording=_recording(bench, run_folder),
        fault=fault,
    )
    return PacketsTester(testbed.tester, str(find_binary("nicbench-packets", engine_folder)), options)


def _workers(bench: BenchFile, testbed: Testbed) -> tuple[dict[str, Any], ...]:
    """The workers with numbers of ports in place of names."""
    numbers = {port.name: number for number, port in enumerate(testbed.tester_ports)}
    for worker in bench.tester.workers:
        for name in (*worker.transmit, *worker.receive):
            if name not in numbers:
                raise BenchFileError(
                    f"tester.workers: the tester has no port {name}",
                    place=str(bench.path),
                    next_step=f"its ports are {', '.join(numbers)}",
                )
    return tuple(
        {
            "cpu": worker.cpu,
            "transmit": [numbers[name] for name in worker.transmit],
            "receive": [numbers[name] for name in worker.receive],
        }
        for worker in bench.tester.workers
    )


def _recording(bench: BenchFile, run_folder: Path | None) -> Recording | None:
    capture, per_flow = bench.tester.capture, bench.tester.per_flow
    if run_folder is None or (capture is None and per_flow is None):
        return None
    return Recording(
        folder=run_folder / RAW,
        capture=capture.model_dump(exclude_none=True) if capture else None,
        per_flow=per_flow,
    )


def run_key(run_id: str, seed: int) -> int:
    """64 bits that key the signature: frames of another run are foreign, those of this run known after a resumption."""
    return int.from_bytes(hashlib.sha256(f"{run_id}/{seed}".encode()).digest()[:8], "big")


async def start_tester(
    tester: Tester, bench: BenchFile, testbed: Testbed, changes: Changes
) -> tuple[TesterFacts, Testbed]:
    """Starts it and checks that its ports hold the frames; the testbed comes back with the speed the ports told."""
    for port in testbed.tester_ports:
        # In a lab the program ends with its interface; on a real one a killed engine would leave it behind.
        if bench.lab is None and port.device is not None and port.engine["kind"] == "af_xdp":
            await expect_program(changes, testbed.tester, port.device)
    facts = await tester.start()
    _check_frame_sizes(bench, facts)
    if bench.lab is None and testbed.link_is_nominal and facts.link_bits_per_s is not None:
        testbed = replace(testbed, link_bits_per_s=facts.link_bits_per_s, link_is_nominal=False)
    return facts, testbed


def _check_frame_sizes(bench: BenchFile, facts: TesterFacts) -> None:
    """Refuses, before the first trial, a frame size that a port cannot hold."""
    for test in bench.tests:
        for size in test.build().frame_sizes():
            for frame_bytes in sizes_of(size, bench.traffic):
                if not facts.minimum_frame_bytes <= frame_bytes <= facts.maximum_frame_bytes:
                    raise BenchFileError(
                        f"test {test.name}: the ports hold frames of {facts.minimum_frame_bytes} to "
                        f"{facts.maximum_frame_bytes} bytes (FCS included), not {frame_bytes}",
                        place=str(bench.path),
                        next_step="choose another frame size, or raise the MTU of the lab or the interface",
                    )


def _port(bench: BenchFile, port: TesterPort, addresses: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    """The port's object in the protocol, with the tester's options; a kernel interface gets the chosen driver."""
    tester = bench.tester
    common = {
        "name": port.name,
        "transmit_descriptors": tester.transmit_descriptors,
        "receive_descriptors": tester.receive_descriptors,
        "lossless": False,
        "send_buffer_bytes": tester.send_buffer,
    }
    engine = dict(port.engine)
    if bench.lab is not None and engine["kind"] == "af_xdp" and tester.driver in _OTHER_KINDS:
        engine = {"kind": _OTHER_KINDS[tester.driver], "device": engine["device"]}
    return {**common, **engine, **({"addresses": list(addresses)} if addresses else {})}
