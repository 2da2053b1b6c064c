"""Third stage: the tester on the testbed's ports."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from nicbench.bench_file.frame_sizes import sizes_of
from nicbench.bench_file.models import BenchFile
from nicbench.errors import BenchFileError
from nicbench.hosts.base import Host
from nicbench.labs.base import Testbed
from nicbench.testers.base import Setting, Tester, TesterFacts
from nicbench.tuning.bpf import expect_program
from nicbench.tuning.changes import Changes
from nicbench.tuning.promiscuity import expect_promiscuity
from nicbench.tuning.undo import RemovePath


def make_tester(
    bench: BenchFile,
    testbed: Testbed,
    dut_cpus: tuple[int, ...],
    run_id: str,
    engine_folder: str | None,
    fault: dict[str, float] | None = None,
    neighbours: tuple[tuple[dict[str, Any], ...], ...] = (),
    run_folder: Path | None = None,
) -> Tester:
    """The tester, not started yet. ``fault`` is for tests; ``neighbours``: addresses each port answers for.

    Without ``run_folder`` no files are written.
    """
    setting = Setting(
        testbed=testbed,
        traffic=bench.traffic,
        seed=bench.seed,
        run_id=run_id,
        place=str(bench.path),
        in_a_lab=bench.lab is not None,
        dut_cpus=dut_cpus,
        neighbours=neighbours,
        engine_folder=engine_folder,
        run_folder=run_folder,
        fault=fault,
    )
    return bench.tester_kind().make(setting)


async def start_tester(
    tester: Tester, bench: BenchFile, testbed: Testbed, changes: Changes
) -> tuple[TesterFacts, Testbed]:
    """Starts it and checks that its ports hold the frames; the testbed comes back with the speed the ports told."""
    for port in testbed.tester_ports:
        # In a lab the program ends with its interface; on a real one a killed engine would leave it behind.
        if bench.lab is None and port.device is not None and port.engine.get("kind") == "af_xdp":
            await expect_program(changes, testbed.tester, port.device)
        if bench.lab is None and port.device is not None:
            await expect_promiscuity(changes, testbed.tester, port.device)
    if (folder := tester.folder_elsewhere) is not None:
        machine, command = testbed.tester.machine, ("mkdir", "-m", "700", folder)
        await changes.make(machine, RemovePath(path=folder), lambda: _run(machine, command))
    facts = await tester.start()
    _check_frame_sizes(bench, facts)
    if bench.lab is None and testbed.link_is_nominal and facts.link_bits_per_s is not None:
        testbed = replace(testbed, link_bits_per_s=facts.link_bits_per_s, link_is_nominal=False)
    return facts, testbed


async def _run(host: Host, command: tuple[str, ...]) -> None:
    await host.run(command)


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
