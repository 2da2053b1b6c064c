"""Beside the samples: a monitor on every machine of the turn, which keeps off trials and goes on through rounds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from nicbench.monitor.base import Monitors
from nicbench.monitor.running import RunningMonitors
from nicbench.stages.rigs import Rig, TurnSetting
from nicbench.store.monitor_samples import MonitorLog


@asynccontextmanager
async def run_monitors(setting: TurnSetting, rig: Rig[Any]) -> AsyncIterator[Monitors]:
    """None runs where there are no hosts: nothing but arithmetic is measured. ``off`` leaves out the samples alone.

    They end before the testbed is taken down: they hold its namespaces open.
    """
    settings, folder = setting.bench.monitor, setting.folder
    log = MonitorLog(folder.path, int(setting.began * 1e9), folder.redactor)
    monitors = RunningMonitors(log, setting.bus)
    try:
        if rig.watched_hosts:
            await monitors.start(settings, rig.watched_hosts, rig.measuring_cpus, setting.engine_folder)
        yield monitors
    finally:
        await monitors.close()
        log.close()
