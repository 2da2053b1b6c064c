"""Beside the tester: a monitor on every machine of the turn, which keeps off its trials."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from nicbench.bench_file.models import BenchFile
from nicbench.duts.base import FrameDut
from nicbench.events import Bus
from nicbench.labs.base import Testbed, TestHost
from nicbench.monitor.base import Monitors
from nicbench.monitor.placing import measuring_cpus
from nicbench.monitor.running import RunningMonitors
from nicbench.store.folder import RunFolder
from nicbench.store.monitor_log import MonitorLog


@asynccontextmanager
async def monitored(
    bench: BenchFile,
    hosts: tuple[TestHost, ...],
    measuring: tuple[int, ...] | None,
    folder: RunFolder,
    bus: Bus,
    engine_folder: str | None,
    began: float,
) -> AsyncIterator[Monitors]:
    """None runs where the bench file says ``off``, and where there are no hosts: nothing but arithmetic is measured.

    They end before the testbed is taken down: they hold its namespaces open. ``began`` is when the run did (monotonic).
    ``measuring`` are the CPUs that they keep off during trials; None: rounds of workloads, beside which they go on.
    """
    log = MonitorLog(folder.path, int(began * 1e9), folder.redactor)
    monitors = RunningMonitors(log, bus)
    try:
        if bench.monitor.enabled and hosts:
            await monitors.start(bench.monitor, [each.host for each in hosts], measuring, engine_folder)
        yield monitors
    finally:
        await monitors.close()
        log.close()


def busy_cpus(bench: BenchFile, testbed: Testbed, dut: FrameDut) -> tuple[int, ...]:
    """The CPUs of the tester's workers and of the DUT, which monitors keep off."""
    tester = {"options": bench.tester.options.model_dump(mode="json")}
    return measuring_cpus(testbed, dut.cpus(testbed), tester)
