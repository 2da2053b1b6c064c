"""The runs of an invented laboratory over two years, whose truth is known: when a value changed, by how much, and why.

The folders are written by the code that writes those of real runs; only the numbers are drawn.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.web._folders import line

from nicbench.core.events import RunFinished, RunStarted
from nicbench.core.plan import Plan, PlannedTest
from nicbench.core.result import Bounded, LimitedBy, Result, ResultVerdict, Summary
from nicbench.store import manifest
from nicbench.store.files import json_text
from nicbench.store.marks import add_tag

FIRST = datetime(2024, 11, 4, 2, 30, tzinfo=UTC)
NOISE = 0.01
KERNEL_WEEK, FIRMWARE_WEEK, RING_WEEK = 60, 34, 84
CARDS = {
    "25G": {
        "vendor": "Example",
        "model": "NIC 25G",
        "id": "1af4:0025",
        "driver": "exa",
        "rate": 14.2e6,
        "delay": 9_000,
    },
    "100G": {
        "vendor": "Example",
        "model": "NIC 100G",
        "id": "1af4:0100",
        "driver": "exb",
        "rate": 42e6,
        "delay": 6_000,
    },
}
LINE_RATE = {"25G": 25e9, "100G": 100e9}
OPTIONS = {"search": {"kind": "mlr", "goals": {"NDR": 0.0}, "precision": 0.005}}


def kernel_of(week: int) -> str:
    """The kernel of a week: an update within 6.1 now and then, and 6.12 from ``KERNEL_WEEK`` on."""
    return f"6.1.{90 + week // 8}" if week < KERNEL_WEEK else f"6.12.{week // 8}"


def truth(card: str, week: int) -> tuple[float, float]:
    """The rate at 64 bytes and the median latency in ns, without noise."""
    rate, delay = float(CARDS[card]["rate"]), float(CARDS[card]["delay"])  # type: ignore[arg-type]
    if card == "25G" and week >= KERNEL_WEEK:
        rate *= 0.94
    if card == "100G" and week >= FIRMWARE_WEEK:
        rate *= 1.05
    if week >= RING_WEEK:
        delay *= 1.12
    return rate, delay


def make_history(runs: Path, weeks: int = 104, *, title: str = "Nightly", first: int = 0) -> None:
    """Makes one run each week for each of two cards; each 17th is disturbed, and far off."""
    draw = random.Random(2026)
    for week in range(weeks):
        for card in CARDS:
            drawn = [1.0 + NOISE * draw.gauss() for _ in range(8)]
            if week >= first:
                make_week(runs, card, week, drawn, title=f"{title} {card}")


def make_week(runs: Path, card: str, week: int, drawn: list[float], *, title: str) -> Path:
    """Makes the run of one week; ``drawn`` are the factors of its noise."""
    at = FIRST + timedelta(weeks=week, minutes=37 * list(CARDS).index(card))
    rate, delay = truth(card, week)
    disturbed = week % 17 == 11
    results = list(_results(card, rate * (0.8 if disturbed else 1.0), delay, drawn, disturbed))
    folder = make_finished(runs, f"{at:%Y-%m-%dT%H%M%SZ}-nightly-{card.lower()}", at, title, results, facts(card, week))
    if week % 26 == 0:
        add_tag(folder, "release")
    return folder


def _results(card: str, rate: float, delay: float, drawn: list[float], disturbed: bool) -> list[Result]:
    verdict = ResultVerdict.DISTURBED if disturbed else ResultVerdict.VALID
    why = ("steal time of 4 % on the tester's CPU",) if disturbed else ()
    found = []
    for number, size in enumerate((64, 512, 1518)):
        line_rate = LINE_RATE[card] / (8 * (size + 20))
        passed = rate * drawn[number] * (1.0 - 0.02 * number)
        limited = passed >= line_rate
        lower = line_rate if limited else passed * 0.998
        ndr = Bounded(
            value=lower,
            lower=lower,
            upper=None if limited else passed * 1.002,
            limited_by=LimitedBy.LINE_RATE if limited else LimitedBy.DUT,
            n=9,
        )
        found.append(result("throughput", size, {"ndr_frames_per_s": ndr}, verdict, why))
    for load, factor in ((100, 1.0), (50, 0.8), (10, 0.75)):
        p50 = round(delay * factor * drawn[4])
        values = {"latency_p50_ns": p50, "latency_p99_ns": round(p50 * 1.9 * drawn[5]), "latency_mean_ns": p50 * 1.05}
        found.append(result("latency", 64, values, verdict, why, load_percent=load, load_of="NDR"))
    return found


def make_collapse(runs: Path, good: int = 8, collapsed: int = 8, upper: float = 1000.0) -> None:
    """Makes runs of a card a day apart; in the last of them every load failed, so the NDR is only known as a bound."""
    for day in range(good + collapsed):
        rate = 500e3 + 100 * day
        below = Bounded(value=None, upper=upper, limited_by=LimitedBy.DUT, reason_null="no load that was tried passed")
        known = Bounded(value=rate, lower=rate, upper=1.002 * rate, limited_by=LimitedBy.DUT)
        at = FIRST + timedelta(days=day)
        found = [result("throughput", 64, {"ndr_frames_per_s": known if day < good else below}, ResultVerdict.VALID)]
        make_finished(runs, f"{at:%Y-%m-%dT%H%M%SZ}-collapse", at, "Collapse", found, facts("25G", 1))


def make_fall(runs: Path) -> None:
    """Makes ten runs of two goals, a day apart: the fourth lacks one of them, and in the last every load failed.

    The last three have only a bound of the NDR, the very last has one of the PDR as well.
    """
    for day in range(10):
        at = FIRST + timedelta(days=day)
        below = Bounded(value=None, upper=1000.0, limited_by=LimitedBy.DUT, reason_null="no load that was tried passed")
        known = [
            Bounded(value=rate, lower=rate, upper=rate, limited_by=LimitedBy.DUT) for rate in (4e5 + day, 5e5 + day)
        ]
        values = {
            "ndr_frames_per_s": below if day > 6 else known[0],
            "pdr_frames_per_s": below if day > 8 else known[1],
        }
        if day == 3:
            del values["ndr_frames_per_s"]
        found = [result("throughput", 64, values, ResultVerdict.VALID)]
        make_finished(runs, f"{at:%Y-%m-%dT%H%M%SZ}-fall", at, "Fall", found, facts("25G", 1))


def result(
    test: str,
    size: int,
    values: Mapping[str, Any],
    verdict: ResultVerdict,
    why: tuple[str, ...] = (),
    **parameters: Any,
) -> Result:
    """A result whose test is named after its method."""
    return Result(
        id="/".join(map(str, (test, size, *parameters.values()))),
        test=test,
        method="latency" if test == "latency" else "throughput",
        scope="per port",
        parameters={"frame_bytes": size, **parameters},
        values=dict(values),
        verdict=verdict,
        disturbances=why,
    )


def facts(card: str, week: int) -> dict[str, Any]:
    """The inventory of a week."""
    known = CARDS[card]
    adapter = {name: known[name] for name in ("vendor", "model", "id", "driver")}
    firmware = "22.41" if week < FIRMWARE_WEEK else "24.10"
    return {
        "dut": {
            "cpu": {"model": "Example CPU 32", "cpus": 32},
            "kernel": {"release": kernel_of(week), "command_line": "isolcpus=2-15"},
            "drivers": {"nic0": {"name": known["driver"], "bus": "0000:03:00.0", "firmware": firmware}},
            "interfaces": {"nic0": {"mtu": 1500}},
            "pci_adapters": {"0000:03:00.0": adapter},
            "rings": {"nic0": {"rx": 1024 if week < RING_WEEK else 4096, "tx": 1024}},
        }
    }


def make_finished(
    runs: Path, name: str, at: datetime, title: str, results: list[Result], inventory: dict[str, Any]
) -> Path:
    """Makes the folder of a finished run."""
    folder = runs / name
    folder.mkdir(parents=True)
    moment = at.isoformat(timespec="seconds")
    tests = {each.test or "": each.method for each in results}
    planned = tuple(
        PlannedTest(name=test, method=method, description="", options=OPTIONS, points=1, estimate_s=1.0)
        for test, method in tests.items()
    )
    plan = Plan(
        run_id=name, title=title, nicbench_version="0.1.0", seed=1, tests=planned, dut={"kind": "external"},
        lab={"kind": "external"}, link_bits_per_s=25e9,
    )  # fmt: skip
    worst = max((each.verdict for each in results), key=list(ResultVerdict).index)
    begun = RunStarted(run_id=name, title=title, nicbench_version="0.1.0", wall_time=moment, seed=1, resumed=False)
    ended = RunFinished(verdict=worst, complete=True, wall_time=moment)
    (folder / "bench.yaml").write_text("nicbench: 1\n")
    (folder / "journal.ndjson").write_text(line(begun) + line(ended))
    (folder / "plan.json").write_text(json_text(plan))
    (folder / "inventory.json").write_text(json_text(inventory))
    (folder / "summary.json").write_text(json_text(Summary(title=title, verdict=worst, results=tuple(results))))
    manifest.write(folder)
    return folder
