"""Entries as they could come from run folders, built by hand."""

from __future__ import annotations

from typing import Any

from nicbench.compare.entries import Entry
from nicbench.core.plan import Plan, PlannedTest
from nicbench.core.result import Bounded, ImportOrigin, LimitedBy, Result, ResultVerdict, Value

OPTIONS = {
    "search": {"kind": "mlr", "goals": {"NDR": 0.0, "PDR": 0.005}},
    "trial": {"duration": 60.0, "drain": 0.2},
}


def rate(value: float, half: float = 0.01) -> Bounded:
    return Bounded(
        value=value * (1 - half), lower=value * (1 - half), upper=value * (1 + half), limited_by=LimitedBy.DUT, n=3
    )


def result(
    size: int = 64,
    value: Value | None = None,
    *,
    test: str = "throughput",
    method: str = "throughput",
    scope: str = "per port",
    name: str = "ndr_frames_per_s",
    verdict: ResultVerdict = ResultVerdict.VALID,
    run: int | None = None,
    **parameters: Any,
) -> Result:
    return Result(
        id=f"{test}/{size}",
        test=test,
        method=method,
        scope=scope,
        run=run,
        parameters={"frame_bytes": size, **parameters},
        values={name: rate(1e6) if value is None else value},
        verdict=verdict,
    )


def plan(options: dict[str, Any] | None = None, *, tests: dict[str, str] | None = None, **more: Any) -> Plan:
    return Plan(
        run_id="r",
        title="t",
        nicbench_version="0.1.0",
        seed=1,
        tests=tuple(
            PlannedTest(name=name, method=method, description="", options=options or OPTIONS, points=1, estimate_s=1.0)
            for name, method in (tests or {"throughput": "throughput"}).items()
        ),
        **{"link_bits_per_s": 25e9, **more},
    )


def entry(name: str, *results: Result, **more: Any) -> Entry:
    return Entry(
        **{
            "name": name,
            "run_id": f"id-{name}",
            "title": "t",
            "results": results or (result(),),
            "plan": plan(),
            **more,
        }
    )


def published(name: str, *results: Result, **more: Any) -> Entry:
    known = ImportOrigin(
        source="A report",
        year=2019,
        device=None,
        method="throughput",
        format="plain",
        file="raw/x.csv",
        sha256="0",
        rows=1,
    )
    given = results or (result(value=Bounded(value=2e6), scope="sum of 2 ports"),)
    goals = {"search": {"goals": {"NDR": 0.0}}}
    return entry(
        name,
        *given,
        **{"imported": known, "verdict": ResultVerdict.IMPORTED, "plan": plan(goals, link_bits_per_s=None), **more},
    )
