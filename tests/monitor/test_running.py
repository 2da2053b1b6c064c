"""Monitors that run beside a test: what becomes of one that no longer answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from nicbench.core.errors import EngineError
from nicbench.core.events import Bus, Event, Note
from nicbench.core.monitor import MonitorPlan
from nicbench.core.reading import ChangeKind
from nicbench.monitor.running import CpuWatch, MonitorClient, RunningMonitors, _WatchedMachine
from nicbench.store import monitor_samples
from nicbench.store.monitor_samples import MonitorLog

SERIES = '{"event":"series","series":[{"series":0,"metric":"cpu_user_ns","of":"0","kind":"count"}]}'


class Silent:
    """A monitor that answers nothing but the first request."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def request(self, command: str, *, on_reply: Any = None, **fields: Any) -> dict[str, Any]:
        self.asked.append(command)
        if len(self.asked) > 1:
            raise EngineError(f"did not answer {command} within 10 s", kind="silent")
        on_reply()
        return {"ok": True}

    async def close(self) -> None:
        return None


def sample(at_s: int) -> str:
    return f'{{"event":"sample","time_ns":{at_s}000000000,"interval_ns":1000000000,"values":[[0,{at_s}]]}}'


async def test_samples_of_a_monitor_that_is_lost_belong_to_no_trial(tmp_path: Path) -> None:
    log, bus, told = MonitorLog(tmp_path, 0), Bus(), list[Event]()
    bus.subscribe(told.append)
    monitors, silent = RunningMonitors(log, bus), Silent()
    plan = MonitorPlan(host="local", interval_s=1.0, cpus=(0,), paused=False, during_trials="")
    client = cast(MonitorClient, silent)
    monitors._watched.append(_WatchedMachine("local", client, plan, CpuWatch(), is_local=True))
    log.event("local", SERIES)
    await monitors.begin_trial(5, 1.0)
    log.event("local", sample(1))
    await monitors.end_trial()
    log.event("local", sample(2))
    await monitors.begin_trial(6, 1.0)
    await monitors.close()
    log.close()
    found = monitor_samples.read(tmp_path, None)
    assert found is not None
    assert found.table.column("trial").to_pylist() == ["t0005", None]
    assert silent.asked == ["pause", "resume"]
    assert [event.text for event in told if isinstance(event, Note)] == [
        "the monitor of local did not answer resume within 10 s; the run goes on without it"
    ]


class Seeing:
    """A monitor that saw a change."""

    async def request(self, command: str, **fields: Any) -> dict[str, Any]:
        change = {"network": "dut", "kind": "route", "action": "added", "what": "default", "pid": None}
        return {"ok": True, "changes": [change], "more": 1, "overflowed": []} if command == "changes" else {"ok": True}


async def test_what_one_machine_saw_is_told_also_where_another_is_lost(tmp_path: Path) -> None:
    log, bus = MonitorLog(tmp_path, 0), Bus()
    monitors, lost = RunningMonitors(log, bus), Silent()
    for name, client in (("near", Seeing()), ("far", lost)):
        monitors._watched.append(_WatchedMachine(name, cast(MonitorClient, client), None, CpuWatch(), is_local=False))
    lost.asked.append("started")
    await monitors.watch()
    seen = await monitors.changes()
    assert seen is not None
    assert ([each.kind for each in seen.changes], seen.more) == ([ChangeKind.ROUTE], 1)
    log.close()


async def test_where_a_machine_is_lost_nobody_knows_that_nothing_changed(tmp_path: Path) -> None:
    log, bus = MonitorLog(tmp_path, 0), Bus()
    monitors, lost = RunningMonitors(log, bus), Silent()
    monitors._watched.append(_WatchedMachine("far", cast(MonitorClient, lost), None, CpuWatch(), is_local=False))
    lost.asked.append("started")
    await monitors.watch()
    assert await monitors.changes() is None
    log.close()
