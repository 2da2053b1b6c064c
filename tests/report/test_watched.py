"""Activity of the machine: each CPU by phase, and a drawing that never mixes a trial with what is beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nicbench.core.machine import MonitorCost, MonitorPlan
from nicbench.core.plan import Plan
from nicbench.report.drawing.figures import Figures
from nicbench.report.drawing.kit import NARROW, WIDE
from nicbench.report.drawing.over_time import cpu_chart, merge_steps, watched_figure
from nicbench.report.html import fragment
from nicbench.report.model import Report
from nicbench.report.sections.watched import watched_parts
from nicbench.report.watched import BETWEEN, Slice, WatchedMachine, watched_machines
from nicbench.stats.cpu import CpuStates
from nicbench.store import monitor_samples
from nicbench.store.monitor_samples import MonitorLog

S = 1_000_000_000
STATES = ("user", "softirq", "steal", "idle")
PHASES = {"t0001": "calibration", "t0002": "throughput"}
PLAN = Plan(
    run_id="r",
    title="t",
    nicbench_version="0",
    seed=1,
    cores={"worker": 0, "dut": [1], "housekeeping": [], "shared": False},
    monitors=(
        MonitorPlan(host="local", interval_s=1.0, paused=True, during_trials="silent: every CPU measures (0, 1)"),
    ),
)


def written(folder: Path, cpus: int = 2, began_ns: int = 0) -> None:
    """A second between trials, then a trial of calibration, one of a test, and one that was cut short."""
    log = MonitorLog(folder, began_ns)
    log.event("local", json.dumps({"event": "ready"}))
    series = [
        {"series": cpu * len(STATES) + index, "metric": f"cpu_{state}_ns", "of": f"cpu{cpu}", "kind": "count"}
        for cpu in range(cpus)
        for index, state in enumerate(STATES)
    ]
    log.event("local", json.dumps({"event": "series", "series": series}))
    spent_by_sample = ((0, 0, 0, 100), (50, 50, 0, 0), (20, 60, 20, 0), (100, 0, 0, 0))
    for number, (trial, spent) in enumerate(zip((None, 1, 2, 9), spent_by_sample, strict=True), start=1):
        log.trial("local", trial)
        values = [[cpu * len(STATES) + at, ticks * S // 100] for cpu in range(cpus) for at, ticks in enumerate(spent)]
        sample = {"event": "sample", "values": values, "interval_ns": S, "time_ns": began_ns + number * S}
        log.event("local", json.dumps(sample))
    log.cost("local", MonitorCost(cpu_ns=5_000_000, elapsed_ns=5 * S, samples=4, maximum_sample_ns=2_000_000))
    log.close()


def view_of(folder: Path, cpus: int = 2) -> WatchedMachine:
    written(folder, cpus)
    (view,) = watched_machines(folder, PLAN, PHASES)
    return view


def test_each_phase_has_the_figures_of_each_cpu_with_its_role(tmp_path: Path) -> None:
    view = view_of(tmp_path)
    assert [phase.name for phase in view.phases] == [
        "calibration",
        "throughput",
        "a trial that was not finished",
        BETWEEN,
    ]
    throughput = view.phases[1]
    assert [row.name for row in throughput.rows] == ["CPU 0, tester", "CPU 1, DUT"]
    row = throughput.rows[0]
    assert (row.busy.mean, row.softirq.mean, row.steal.maximum) == (0.8, 0.6, 0.2)
    assert throughput.duration_s == pytest.approx(1.0)
    assert view.phases[-1].rows[0].busy.maximum == 0.0
    assert view.cost.share_of_a_core == 0.001


def test_of_many_cpus_those_that_do_not_measure_are_told_together(tmp_path: Path) -> None:
    view = view_of(tmp_path, cpus=64)
    assert list(view.series) == ["CPU 0, tester", "CPU 1, DUT", "the other 62 CPUs"]
    assert view.phases[0].rows[2].busy.mean == 1.0


def test_sessions_of_a_resumed_run_follow_one_another(tmp_path: Path) -> None:
    written(tmp_path)
    written(tmp_path, began_ns=900 * S)
    (view,) = watched_machines(tmp_path, PLAN, PHASES)
    assert [round(one.end_s) for one in next(iter(view.series.values()))] == [1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("killed", [True, False], ids=["killed", "interrupted"])
def test_what_a_trial_that_was_not_finished_took_is_not_of_the_one_that_took_its_number(
    tmp_path: Path, killed: bool
) -> None:
    written(tmp_path)
    if not killed:
        monitor_samples.finish(tmp_path)
    log = MonitorLog(tmp_path, 900 * S)
    log.event("local", json.dumps({"event": "ready"}))
    names = [{"series": at, "metric": f"cpu_{one}_ns", "of": "cpu0", "kind": "count"} for at, one in enumerate(STATES)]
    log.event("local", json.dumps({"event": "series", "series": names}))
    log.trial("local", 9)  # it was under way when the first session ended, at a load of 100 %
    sample = {"event": "sample", "values": [[0, S // 10], [3, S * 9 // 10]], "interval_ns": S, "time_ns": 901 * S}
    log.event("local", json.dumps(sample))
    log.close()

    (view,) = watched_machines(tmp_path, PLAN, {**PHASES, "t0009": "latency"})
    busy = {phase.name: (phase.duration_s, phase.rows[0].busy.mean) for phase in view.phases}
    assert busy["latency"] == (1.0, pytest.approx(0.1))
    assert busy["a trial that was not finished"] == (1.0, 1.0)
    assert [span.name for span in view.spans][-2:] == ["a trial that was not finished", "latency"]


def test_neighbours_are_taken_together_but_never_a_trial_with_what_is_beside_it() -> None:
    slices = [
        Slice(float(at), at + 1.0, "t0001" if 40 <= at < 50 else None, CpuStates({"user": at})) for at in range(100)
    ]
    steps = merge_steps(slices, 10)
    assert len(steps) <= 12
    assert [(step.begin_s, step.end_s) for step in steps if step.trial] == [(40.0, 50.0)]
    assert sum(step.spent.busy_ns for step in steps) == sum(range(100))
    assert merge_steps([], 10) == ()


def test_it_is_drawn_for_a_screen_and_for_a_phone(tmp_path: Path, view: Report) -> None:
    machine = view_of(tmp_path)
    figure = watched_figure(machine, Figures(view))
    assert figure is not None
    assert fragment(figure).count("<svg ") == 2 * len(machine.series)
    assert "calibration" in figure.panels[0].drawing.svg
    for form in (WIDE, NARROW):
        assert cpu_chart(next(iter(machine.series)), form, view=machine, is_first=True, is_last=True) is not None


def test_a_run_without_monitors_has_no_such_section(tmp_path: Path) -> None:
    assert watched_machines(tmp_path, PLAN, PHASES) == ()


def write_links(folder: Path, metrics: tuple[str, ...], values: tuple[tuple[int, ...], ...]) -> None:
    """Samples of a second of two sockets: one between trials, then one in each of two trials of throughput."""
    written(folder)
    log = MonitorLog(folder, 0)
    log.event("local", json.dumps({"event": "ready"}))
    named = [(metric, f"socket{socket}") for socket in range(2) for metric in metrics]
    series = [{"series": 100 + n, "metric": metric, "of": of, "kind": "count"} for n, (metric, of) in enumerate(named)]
    log.event("local", json.dumps({"event": "series", "series": series}))
    for number, (trial, counts) in enumerate(zip((None, 2, 2), values, strict=True), start=1):
        log.trial("local", trial)
        sample = {"event": "sample", "values": [[100 + n, count] for n, count in enumerate((*counts, *counts))]}
        log.event("local", json.dumps(sample | {"interval_ns": S, "time_ns": number * S}))
    log.close()


def test_links_between_sockets_tell_their_use_in_percent(tmp_path: Path, view: Report) -> None:
    metrics = ("link_transmit_bytes", "link_used_flits", "link_possible_flits")
    write_links(tmp_path, metrics, ((0, 0, 1000), (10 * S, 600, 1000), (20 * S, 800, 1000)))
    (machine,) = watched_machines(tmp_path, PLAN, PHASES)
    assert [(row.phase, row.socket) for row in machine.links] == [
        ("throughput", "socket0"),
        ("throughput", "socket1"),
        (BETWEEN, "socket0"),
        (BETWEEN, "socket1"),
    ]
    row = machine.links[0]
    assert (row.sent_bytes_per_s.mean, row.sent_bytes_per_s.greatest) == (15e9, 20e9)
    assert (row.used.mean, row.used.greatest) == (pytest.approx(0.7), 0.8)
    shown = "".join(fragment(block) for block in watched_parts((machine,), Figures(view)))
    assert "Links used [%]" in shown
    assert "<strong>70.0</strong>" in shown


def test_a_link_whose_width_is_unknown_tells_what_was_sent_alone(tmp_path: Path, view: Report) -> None:
    write_links(tmp_path, ("link_transmit_bytes",), ((0,), (10 * S,), (20 * S,)))
    (machine,) = watched_machines(tmp_path, PLAN, PHASES)
    assert machine.links[0].used is None
    shown = "".join(fragment(block) for block in watched_parts((machine,), Figures(view)))
    assert "this processor does not tell" in shown
