"""Monitors of a run: where they are placed, what they are set to, and what is told of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from tests.fakes import FakeHost

from nicbench.bench_file.load import parse
from nicbench.core.errors import BenchFileError, EngineError
from nicbench.core.events import Bus, Event, Note
from nicbench.core.machine import MonitorPlan, MonitorSettings
from nicbench.core.reading import ChangeKind
from nicbench.hosts.kinds.local import LocalHost
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.monitor.base import WatchedNetwork, machines, measuring_cpus, place
from nicbench.monitor.running import CpuWatch, MonitorClient, RunningMonitors, _WatchedMachine
from nicbench.store import monitor_samples
from nicbench.store.monitor_samples import MonitorLog
from nicbench.testbed.cores import CoreMap
from nicbench.testbed.labs.base import Testbed, TestHost

# Monitors that run beside a test: what becomes of one that no longer answers.

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


# Where a monitor runs: beside the CPUs that measure, or silent while they do.

TESTBED = Testbed(
    tester=FakeHost("t"),
    dut=FakeHost("d"),
    tester_ports=(),
    dut_ports=(),
    cores=CoreMap(worker=0, dut=(1,), housekeeping=(2, 3), shared=False),
    link_bits_per_s=10e9,
    link_is_nominal=True,
)


def test_it_runs_on_the_cpus_that_do_not_measure() -> None:
    where = place(online=(0, 1, 2, 3, 5), measuring=(0, 1))
    assert where.cpus == (2, 3, 5)
    assert not where.paused
    assert where.during_trials == "on CPUs 2-3,5, which do not measure"


def test_where_every_cpu_measures_it_is_silent() -> None:
    where = place(online=(0, 1), measuring=(0, 1))
    assert where.paused
    assert "every CPU measures (0, 1)" in where.during_trials


@pytest.mark.parametrize(("online", "measuring"), [(None, (0,)), ((0, 1, 2, 3), ())])
def test_where_something_is_not_known_it_is_silent(online: tuple[int, ...] | None, measuring: tuple[int, ...]) -> None:
    where = place(online, measuring)
    assert where.paused
    assert not where.cpus


def test_workers_and_the_dut_measure() -> None:
    assert measuring_cpus(TESTBED, (1, 2), {}) == (0, 1, 2)
    assert measuring_cpus(TESTBED, (1,), {"options": {"worker_cpu": 3}}) == (1, 3)
    assert measuring_cpus(TESTBED, (1,), {"options": {"workers": [{"cpu": 2}, {"cpu": 3}]}}) == (1, 2, 3)


def test_who_sends_is_not_known_of_a_tester_that_names_no_cpu() -> None:
    cores = CoreMap(worker=None, dut=(), housekeeping=(), shared=False)
    assert measuring_cpus(replace(TESTBED, cores=cores), (1,), {}) == ()


def test_namespaces_of_one_machine_have_one_monitor() -> None:
    local = LocalHost("local")
    hosts = {"tester": NetnsHost(local, "one", "tester"), "dut": NetnsHost(local, "two", "dut"), "local": local}
    found = machines([TestHost("dut", name, host, ("eth9",)) for name, host in hosts.items()])
    assert list(found) == ["local"]
    machine = found["local"]
    assert (machine.host, machine.namespaces) == (local, {"one": "/run/netns/one", "two": "/run/netns/two"})


def test_all_of_a_namespace_is_watched_and_of_a_machine_its_ports() -> None:
    local = LocalHost("local")
    hosts = {"tester": NetnsHost(local, "one", "tester"), "dut": local}
    watched = machines([TestHost("dut", name, host, ("eth9",)) for name, host in hosts.items()])["local"].watched
    assert watched == {
        "/run/netns/one": WatchedNetwork(["tester"], []),
        None: WatchedNetwork(["dut"], ["eth9"]),
    }


# What a bench file may ask of the monitor.

BENCH = """
nicbench: 1
title: Watched
lab: {{kind: simulated}}
dut: simulated
{monitor}
tests: [{{name: throughput, method: throughput, frame_bytes: [64]}}]
"""


def settings(monitor: str) -> MonitorSettings:
    return parse(BENCH.format(monitor=monitor).encode(), Path("bench.yaml")).monitor


def test_it_watches_once_a_second_unless_told_otherwise() -> None:
    assert settings("") == MonitorSettings(interval=1.0, enabled=True)
    assert settings("monitor: {interval: 100 ms}").interval == 0.1


def test_off_is_a_word() -> None:
    assert not settings("monitor: off").enabled
    assert settings("monitor: on").enabled


@pytest.mark.parametrize("wrong", ["{interval: 50 ms}", "{interval: 1}", "never", "{every: 1 s}", "[]"])
def test_anything_else_is_refused(wrong: str) -> None:
    with pytest.raises(BenchFileError):
        settings(f"monitor: {wrong}")


# CPU shares of a round from the monitor's lines as they come.

CPU_WATCH_SERIES = [("cpu_user_ns", "cpu0"), ("cpu_idle_ns", "cpu0"), ("cpu_user_ns", "cpu1"), ("cpu_idle_ns", "cpu1")]


def named(watch: CpuWatch) -> None:
    series = [{"series": number, "metric": metric, "of": of} for number, (metric, of) in enumerate(CPU_WATCH_SERIES)]
    series.append({"series": len(CPU_WATCH_SERIES), "metric": "monitor_cpu_ns", "of": "monitor"})
    watch.heard(json.dumps({"event": "series", "series": series}, separators=(",", ":")))


def cpu_watch_sample(*values: int) -> str:
    return json.dumps({"event": "sample", "values": list(enumerate(values))}, separators=(",", ":"))


def test_shares_are_of_all_cpus_and_the_busiest_is_told() -> None:
    watch = CpuWatch()
    named(watch)
    watch.begin()
    watch.heard(cpu_watch_sample(1_000_000_000, 0, 0, 1_000_000_000, 2_000_000))
    watch.heard(cpu_watch_sample(1_000_000_000, 0, 500_000_000, 500_000_000, 2_000_000))
    cpu = watch.end("server")
    assert (cpu.mean, cpu.minimum, cpu.maximum) == (0.625, 0.5, 0.75)
    assert (cpu.busiest_core, cpu.cpus, cpu.samples, cpu.monitor) == (1.0, 2, 2, 0.001)


def test_samples_before_and_after_a_round_are_not_of_it() -> None:
    watch = CpuWatch()
    named(watch)
    watch.heard(cpu_watch_sample(9, 9, 9, 9, 9))
    watch.begin()
    cpu = watch.end("server")
    assert (cpu.mean, cpu.samples) == (None, 0)


def test_what_is_no_line_of_a_monitor_says_nothing() -> None:
    watch = CpuWatch()
    named(watch)
    watch.begin()
    watch.heard("not json")
    watch.heard('{"event":"sample","values":[[99,1],[0,null]]}')
    assert watch.end("server").mean is None
