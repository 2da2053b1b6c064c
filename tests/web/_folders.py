"""Run folders as a run leaves them, made of an example of a trial: whole, growing, broken off, and very many."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from nicbench.core.events import Note, RunFinished, RunStarted, TestStarted, TrialFinished
from nicbench.core.judging import Finding, Reason, Verdict
from nicbench.core.reading import Counts
from nicbench.core.result import ResultVerdict
from nicbench.core.trial import Health, Latency, Purpose, Reading, Trial, TrialRequest
from nicbench.stats.latency import histogram_of
from nicbench.store.files import json_text

HOSTILE = '<img src=x onerror="window.broken=1"><script>window.broken=1</script>\'"&\u202e'
CAPACITY = 500_000.0


@cache
def _distribution(kind: int) -> str:
    """A histogram of latencies from 20 to 90 us, of which there are a few kinds."""
    return histogram_of([(20_000 + each * (60 + 10 * kind), 1 + 4000 // (each + 1)) for each in range(1000)])


def trial(number: int, load: float = 400_000.0, *, size: int = 64, test: str = "throughput", note: str = "") -> Trial:
    """A trial of one second at a DUT that forwards ``CAPACITY`` frames per second; ``note`` makes it invalid."""
    sent = int(load)
    received = min(sent, int(CAPACITY))
    counts = Counts(intended=sent, sent=sent, received=received, lost=sent - received)
    latency = Latency(
        source="software",
        count=received,
        minimum_ns=20_000,
        mean_ns=21_000.0,
        maximum_ns=90_000,
        percentiles_ns={"50": 21_000, "99": 40_000, "99.9": 80_000},
        histogram=_distribution(number % 4),
    )
    found = Finding(reason=Reason.DISTURBED, threshold="gap", value=2.0, limit=1.0, text=note)
    return Trial(
        id=Trial.id_of(number),
        key=f"{test}/{size}/{number}",
        test=test,
        configuration="default",
        parameters={"frame_bytes": size},
        repeat=0,
        request=TrialRequest(
            frame_bytes=size,
            load_frames_per_s=load,
            duration_s=1.0,
            drain_s=0.1,
            settle_s=0.1,
            purpose=Purpose.SEARCH,
        ),
        verdict=Verdict(findings=(found,) if note else ()),
        at_s=float(number),
        reading=Reading(
            transmit_ns=1_000_000_000, counts=counts, streams=(), ports=(), latency=latency, health=Health()
        ),
    )


def line(event: Any) -> str:
    """The line of an event in a journal."""
    return json_text(event, indent=None) + "\n"


def started(title: str = "A run", *, run_id: str = "run", resumed: bool = False) -> str:
    """The first line of a journal."""
    return line(
        RunStarted(
            run_id=run_id,
            title=title,
            nicbench_version="0.1.0",
            wall_time="2026-11-26T12:00:00+00:00",
            seed=1,
            resumed=resumed,
        )
    )


def finished(*, complete: bool = True) -> str:
    """The last line of a journal."""
    return line(RunFinished(verdict=ResultVerdict.VALID, complete=complete, wall_time="2026-11-26T12:10:00+00:00"))


def begun(test: str = "throughput") -> str:
    """The line of a test that begins."""
    return line(TestStarted(test=test, method="throughput", points=2, estimate_s=60.0))


def note(text: str) -> str:
    """The line of a note."""
    return line(Note(level="warning", text=text))


def trials(count: int, first: int = 1, **options: Any) -> str:
    """The lines of some trials, whose loads go up and down around the capacity."""
    loads = [CAPACITY * (0.9 + 0.2 * ((number * 7) % 10) / 10) for number in range(first, first + count)]
    return "".join(
        line(TrialFinished(trial=trial(number, load, **options))) for number, load in enumerate(loads, start=first)
    )


def make_run(runs: Path, name: str, journal: str, *, bench: str = "nicbench: 1\n") -> Path:
    """A run folder with a journal."""
    folder = runs / name
    folder.mkdir(parents=True)
    (folder / "bench.yaml").write_text(bench)
    (folder / "journal.ndjson").write_text(journal)
    return folder


@cache
def long_journal(count: int) -> str:
    """The journal of a run of many trials, which is over; made from one line, as models would take a minute."""
    plain = json.loads(line(TrialFinished(trial=trial(1))))
    lines = []
    for number in range(1, count + 1):
        load = int(CAPACITY * (0.9 + 0.2 * ((number * 7) % 10) / 10))
        sample = plain["trial"]
        sample |= {"id": f"t{number:04d}", "key": f"throughput/{number}/0", "at_s": float(number)}
        sample["parameters"]["frame_bytes"] = (64, 512, 1518)[number * 3 // (count + 1)]
        sample["request"]["load_frames_per_s"] = load
        received = min(load, int(CAPACITY))
        sample["reading"]["latency"]["histogram"] = _distribution(number % 4)
        sample["reading"]["counts"] |= {"intended": load, "sent": load, "received": received, "lost": load - received}
        lines.append(json.dumps(plain))
    return started("Ten thousand trials") + begun() + "\n".join(lines) + "\n" + finished()
