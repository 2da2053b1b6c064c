"""Before the first stage: what the journal says of a run that begins, and that a resumed one is still the same run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime

from nicbench import __version__
from nicbench.bench_file.models import BenchFile
from nicbench.errors import UsageError
from nicbench.events import Event, RunStarted


def wall_time() -> str:
    """The time of day, which labels only."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def started(bench: BenchFile, run_id: str, *, resumed: bool, redacted: bool = False) -> RunStarted:
    """The first event of a run, or of its resumption."""
    return RunStarted(
        run_id=run_id,
        title=bench.title,
        nicbench_version=__version__,
        wall_time=wall_time(),
        seed=bench.seed,
        resumed=resumed,
        bench_sha256=_checksum(bench),
        redacted=redacted,
    )


def refuse_changed_bench(bench: BenchFile, journaled: Iterable[Event]) -> None:
    """UsageError where the run was begun with another bench file: its trials would be passed off as this one's."""
    for event in journaled:
        if isinstance(event, RunStarted) and event.bench_sha256 not in (None, _checksum(bench)):
            raise UsageError(
                "the bench file was changed since this run began",
                place=str(bench.path),
                next_step="put it back as it was, or start a new run with the changed file",
            )


def _checksum(bench: BenchFile) -> str:
    return hashlib.sha256(bench.source.encode()).hexdigest()
