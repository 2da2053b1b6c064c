"""Trends and explore over 100,000 runs: how long a reader waits once the runs were read."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.web._history import CARDS, result
from tests.web.conftest import Client

from nicbench.compare.history import figure_index
from nicbench.compare.history.figures import FigureReader
from nicbench.core.result import ResultVerdict
from nicbench.store.index import IndexedRuns
from nicbench.store.listing import RunHeadline
from nicbench.web.catalogue import Catalogue
from nicbench.web.security import Door
from nicbench.web.site import Site

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.timeout(1200)]
RUNS = 100_000
FIRST = datetime(2024, 1, 1, tzinfo=UTC)
Say = Callable[[str, object], None]


def headline(runs: Path, number: int) -> RunHeadline:
    """A run every ten minutes, on one of two cards."""
    card = list(CARDS)[number % 2]
    at = FIRST + timedelta(minutes=10 * number)
    return RunHeadline(
        run_id=f"{at:%Y-%m-%dT%H%M%SZ}-nightly",
        folder=str(runs / f"{at:%Y-%m-%dT%H%M%SZ}-nightly"),
        title=f"Nightly {card}",
        started=at.isoformat(timespec="seconds"),
        verdict="valid",
        finished=True,
        cards=(f"Example NIC {card}",),
        kernels=(f"6.{number // 10_000}",),
    )


def test_100_000_runs_answer_at_once(runs: Path, monkeypatch: pytest.MonkeyPatch, record_property: Say) -> None:
    every = tuple(headline(runs, number) for number in range(RUNS))
    draw = random.Random(1)

    def read(self: figure_index.FigureIndex, name: str, stamp: str) -> figure_index._Read:
        rate = 14e6 * (1.0 + 0.01 * draw.gauss()) * (0.95 if name > "2025-01" else 1.0)
        values = {"ndr_frames_per_s": rate, "pdr_frames_per_s": rate * 1.01}
        found = [result("throughput", size, values, ResultVerdict.VALID) for size in (64, 1518)]
        figures = [(place, *row) for place, each in enumerate(found) for row in reader._figures(each)]
        return figure_index._Read(name, stamp, figure_index._pack({"inventory.kernel.release": name[:7]}), figures)

    reader = FigureReader()
    monkeypatch.setattr(figure_index.FigureIndex, "_read", read)
    monkeypatch.setattr(figure_index, "_stamp", lambda folder: "1")
    site = Site(runs, Catalogue(lambda: IndexedRuns(every, 0)), Door.of(("127.0.0.1",), 8425, tls=False))
    client = Client(site)
    began = time.monotonic()
    client.get("/api/trends")
    said = [f"first answer while all is read {time.monotonic() - began:.2f} s"]
    while site.history.progress is not None or not site.history.known.measures:
        time.sleep(0.1)
    said.append(f"index of {RUNS} runs {time.monotonic() - began:.0f} s without reading them")
    for path in (
        "/api/trends",
        "/api/trends?by=kernel",
        "/api/trends?card=25g&p.frame_bytes=1518",
        "/api/trends/changes",
        "/api/explore",
        "/api/explore?x=kernel",
        "/api/explore?x=setting:inventory.kernel.release",
    ):
        began = time.monotonic()
        answer = client.get(path)
        assert answer.status_code == 200
        said.append(f"{path} {time.monotonic() - began:.2f} s, {len(answer.content) / 1e3:.0f} kB")
    changes = client.get("/api/trends/changes").json()["series"]
    assert all(each["changes"][0]["run"] > "2025-01-01T0000" for each in changes)
    assert all(each["changes"][0]["run"] < "2025-01-01T0100" for each in changes)
    record_property("shown", "; ".join(said))
