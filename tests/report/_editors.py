"""A study of editors as it could have been measured: one port that carries nine of them, and a bond that hashes.

The rates follow from where instances land, so that what the report has to say of them is known beforehand.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from nicbench.core.events import RunFinished, RunStarted
from nicbench.core.result import Result, ResultVerdict, Summary, Value
from nicbench.methods.base import main_values
from nicbench.stats.frames import Instance, Target, figures_of_run
from nicbench.stats.runs import summarise_over_runs
from nicbench.store import RunFolder

FRAME_BYTES = 51_052_544
PORT_FRAMES_PER_S = 58.7
"""Of one of the bond's four ports."""
TARGET = Target()


def results(
    configurations: tuple[str, ...] = ("1x100", "4x25"),
    directions: tuple[str, ...] = ("read", "write"),
    instances: tuple[int, ...] = tuple(range(1, 13)),
    runs: int = 15,
    *,
    target: Target | None = TARGET,
    warm_up: int = 0,
    seed: int = 1,
) -> tuple[Result, ...]:
    """In the order in which runs take turns; the first ``warm_up`` runs warm up, and are slow."""
    draw = random.Random(seed)
    return tuple(
        result
        for run in range(1, warm_up + runs + 1)
        for configuration in configurations
        for direction in directions
        for count in instances
        for result in of_round(
            configuration, direction, rates(configuration, count, draw), run, target, warm_up=run <= warm_up
        )
    )


def rates(configuration: str, count: int, draw: random.Random) -> list[tuple[float, str | None]]:
    """Of each instance, and the port of the bond that it landed on."""
    if configuration != "4x25":
        return [(min(24.0, 4 * PORT_FRAMES_PER_S / count), None)] * count
    ports = [draw.randrange(4) for _ in range(count)]
    return [(min(24.0, PORT_FRAMES_PER_S / ports.count(port)), f"eth{port + 1}") for port in ports]


def of_round(
    configuration: str,
    direction: str,
    had: list[tuple[float, str | None]],
    run: int,
    target: Target | None,
    *,
    warm_up: bool = False,
    verdict: ResultVerdict = ResultVerdict.VALID,
) -> Iterator[Result]:
    """Both parts: all instances together, and each."""
    count, due = len(had), 480
    dropped = [round(due * (1 - min(1.0, rate / 24.0))) if target else None for rate, _ in had]
    figures = figures_of_run(
        [
            Instance(rate / 2 if warm_up else rate, drops, due if target else None)
            for (rate, _), drops in zip(had, dropped, strict=True)
        ],
        target or TARGET,
    )
    place = {"direction": direction, "instances": count}
    told = {
        "sum_frames_per_s": figures.sum_frames_per_s,
        "average_frames_per_s": figures.average_frames_per_s,
        "standard_deviation_frames_per_s": figures.standard_deviation_frames_per_s,
        "minimum_frames_per_s": figures.minimum_frames_per_s,
        "maximum_frames_per_s": figures.maximum_frames_per_s,
        "fairness": figures.fairness,
        **_target(target, count, figures.is_met),
        "dropped_frames": figures.dropped_frames,
        "due_frames": figures.due_frames,
        "bytes_per_s": (figures.sum_frames_per_s or 0.0) * FRAME_BYTES,
        **_times(24.0 * count / max(1.0, figures.sum_frames_per_s or 1.0)),
        "server_cpu_mean_percent": 3.0 * count,
        "client_cpu_mean_percent": None,
        "limited_by": "port" if configuration == "4x25" else "frame rate",
        "limit": f"{count} instances shared the ports of the bond" if configuration == "4x25" else None,
    }
    common = {
        "method": "frames",
        "test": "frames",
        "configuration": configuration,
        "run": run,
        "warm_up": warm_up,
        "verdict": verdict,
        "disturbances": () if verdict is ResultVerdict.VALID else ("r0007: something else ran",),
    }
    identifier = f"{configuration}/{run}/frames/{direction}/{count}"
    yield Result(
        id=identifier,
        scope="sum of the instances",
        parameters={"part": "runs", **place},
        values=told,
        **common,
    )
    for number, ((rate, port), drops) in enumerate(zip(had, dropped, strict=True), start=1):
        had_rate = rate / 2 if warm_up else rate
        yield Result(
            id=f"{identifier}/{number}",
            scope=f"instance {number}",
            parameters={
                "part": "instances",
                **place,
                "instance": number,
                "client": f"editor{number}",
                "directory": f"/mnt/d{number}",
            },
            values={
                "frames_per_s": had_rate,
                "bytes_per_s": had_rate * FRAME_BYTES,
                **_target(target, 1, target is not None and target.is_met(had_rate)),
                "dropped_frames": drops,
                "due_frames": due if target else None,
                **_times(24.0 / max(1.0, had_rate)),
                "cpu_per_frame_ns": 21e6,
                "engine": "io_uring",
                "bond_port": port,
            },
            **common,
        )


def write(parent: Path, found: tuple[Result, ...], configurations: tuple[str, ...] = ()) -> Path:
    """A finished run folder of these results."""
    folder = RunFolder.create(parent, "title: Editors\n", "Editors")
    folder.journal.append(
        RunStarted(run_id=folder.run_id, title="Editors", nicbench_version="0", wall_time="2026-01-31", seed=1)
    )
    folder.journal.append(RunFinished(verdict=ResultVerdict.VALID))
    folder.finish(summary(found, configurations))
    return folder.path


def summary(found: tuple[Result, ...], configurations: tuple[str, ...] = ()) -> Summary:
    """As a run sums them up."""
    return Summary(
        title="Editors",
        verdict=ResultVerdict.VALID,
        results=found,
        configurations=configurations,
        over_runs=summarise_over_runs(found, main=main_values),
    )


def _target(target: Target | None, count: int, met: bool) -> dict[str, Value]:
    if target is None:
        return {}
    return {
        "target_frames_per_s": target.for_instances(count),
        "tolerance_percent": 100.0 * target.tolerance_ratio,
        "met": "yes" if met else "no",
    }


def _times(slowness: float) -> dict[str, Value]:
    return {
        "completion_p50_ns": 9e6 * slowness,
        "completion_p99_ns": 21e6 * slowness,
        "completion_maximum_ns": 60e6 * slowness,
        "lateness_p99_ns": 1e6 * (slowness - 1.0),
        "lateness_maximum_ns": 9e6 * (slowness - 1.0),
    }
