"""The server beside a run: out of the way, its cost told, and no run fails for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.web._folders import make_run, started

from nicbench.core.errors import InterruptedRunError
from nicbench.core.events import Bus, Event, Note, RunFinished
from nicbench.core.machine import MonitorPlan
from nicbench.core.plan import Plan
from nicbench.core.result import ResultVerdict
from nicbench.store.folder import RunFolder
from nicbench.store.marks import ask_to_stop, end_where_asked, forget_request
from nicbench.web.live import LivePage, _raise_priority, cpu_time_s, free_cpus, live_page

ASIDE = """
import os, sys, time
from pathlib import Path
from nicbench.web.live import step_aside
step_aside(Path(sys.argv[1]))
end = time.monotonic() + 20
while os.sched_getaffinity(0) != {min(os.sched_getaffinity(0))} and time.monotonic() < end:
    time.sleep(0.01)
print(os.sched_getscheduler(0) == os.SCHED_IDLE, os.nice(0), sorted(os.sched_getaffinity(0)))
"""


def plan(cpus: tuple[int, ...]) -> str:
    """A plan whose monitor is bound to these CPUs."""
    monitor = MonitorPlan(host="local", interval_s=1.0, cpus=cpus, paused=False, during_trials="")
    return Plan(run_id="one", title="", nicbench_version="", seed=1, monitors=(monitor,)).model_dump_json()


def test_the_server_has_the_lowest_priority_and_keeps_off_the_cpus_that_measure(runs: Path) -> None:
    folder = make_run(runs, "one", started())
    assert free_cpus(folder) == frozenset()
    first = min(os.sched_getaffinity(0))
    (folder / "plan.json").write_text(plan((first, 100_000)))
    assert free_cpus(folder) == {first, 100_000}
    done = subprocess.run([sys.executable, "-c", ASIDE, str(folder)], capture_output=True, text=True, check=True)
    assert done.stdout.split(maxsplit=2) == ["True", "19", f"[{first}]\n"]


def test_what_the_server_cost_is_noted_before_the_run_ends() -> None:
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        while (cpu_time_s(process.pid) or 0.0) < 0.05:
            time.sleep(0.01)
        bus, told = Bus(), list[Event]()
        bus.subscribe(LivePage(process, "http://127.0.0.1:1/").subscriber(bus))
        bus.subscribe(told.append)
        bus.publish(RunFinished(verdict=ResultVerdict.VALID))
    finally:
        process.kill()
        process.wait()
    note, last = told
    assert isinstance(note, Note)
    assert "its server used" in note.text
    assert isinstance(last, RunFinished)
    assert cpu_time_s(process.pid) is None


def test_a_server_that_cannot_start_costs_a_run_its_page_and_no_more(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder(make_run(runs, "one", started()))
    monkeypatch.setattr(sys, "executable", "/bin/false")
    said: list[str] = []
    with live_page(folder, said.append) as page:
        assert page is None
    assert said == ["warning: the live page could not be served; the run goes on without it"]


def test_a_page_is_served_while_the_run_goes_on_and_ends_with_it(runs: Path) -> None:
    folder = RunFolder(make_run(runs, "one", started()))
    said: list[str] = []
    with live_page(folder, said.append) as page:
        assert page is not None
        assert said == [f"live page: {page.address}runs/one"]
        process = page._process
        assert process.poll() is None
        assert os.sched_getscheduler(process.pid) == os.SCHED_IDLE
        _raise_priority(process.pid)  # as at the end of a run, for the last words
        assert os.sched_getscheduler(process.pid) == os.SCHED_OTHER
    assert process.poll() == 0


def test_a_request_to_stop_ends_the_run_once(runs: Path) -> None:
    folder = make_run(runs, "one", started())
    end_where_asked(folder, "test b")
    ask_to_stop(folder)
    ask_to_stop(folder)
    with pytest.raises(InterruptedRunError, match="stopped before test b"):
        end_where_asked(folder, "test b")
    end_where_asked(folder, "test c")
    forget_request(folder)
    outside = runs.parent / "outside"
    (folder / ".stop-after-test").symlink_to(outside)
    with pytest.raises(Exception, match="cannot be read or written"):
        ask_to_stop(folder)
    assert not outside.exists()


def test_a_plan_that_no_run_wrote_leaves_the_server_where_it_is(runs: Path) -> None:
    folder = make_run(runs, "one", started())
    (folder / "plan.json").write_text(json.dumps({"monitors": "all"}))
    with pytest.raises(Exception, match="is damaged"):
        free_cpus(folder)
