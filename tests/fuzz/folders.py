"""What is fuzzed of folders and conversations: run folders, records of changes, and what engines say."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import io
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Final
from unittest import mock

from tests.engine.test_client import ScriptedProcess
from tests.fakes import FakeHost
from tests.report._synthetic import SyntheticRun

from nicbench.cli import running
from nicbench.cli.main import main
from nicbench.core.errors import HostError, NicbenchError
from nicbench.core.result import ResultVerdict
from nicbench.engine.client import EngineClient
from nicbench.engine.reading import parse_reading, require_consistent
from nicbench.hosts.owner import boot_id
from nicbench.monitor.running import MonitorClient
from nicbench.store import manifest
from nicbench.tuning import drivers
from nicbench.tuning.restore import restore
from nicbench.tuning.undo import processes

GOOD: Final = "2026-01-02T000000Z-good"
BAD: Final = "2026-01-01T000000Z-bad"
STATUSES: Final = frozenset({0, 2, 3, 4, 5, 7})
FILES: Final = (
    *("journal.ndjson", "summary.json", "plan.json", "inventory.json", "bench.yaml", "MANIFEST.json"),
    *("monitor.parquet", "rounds.parquet", "trials.parquet", "tags.json", "import.json", "undo.json"),
)
SIGNED, REPORTED, COMPARED, EXPORTED = 1, 2, 4, 8
"""Bits of the second byte: whoever changed the file wrote the manifest anew; what is made of the folder as well. The
upper half of the byte chooses what it is exported to."""
EXPORTS: Final = ("badge", "csv", "json", "junit", "openmetrics", "parquet", "xlsx")
NOBODY: Final = 65534
BOOT: Final = b"BOOT-ID"
"""In a record, in the place of the id of this boot."""


def run_folders(content: bytes) -> None:
    """A run folder with one file changed: the first byte chooses the file, the second what is done."""
    name = FILES[content[0] % len(FILES)] if content else FILES[0]
    done = content[1] if len(content) > 1 else 0
    runs = _runs()
    shutil.rmtree(runs / BAD, ignore_errors=True)
    shutil.copytree(runs / GOOD, runs / BAD)
    (runs / BAD / name).write_bytes(content[2:])
    if done & SIGNED:
        manifest.write(runs / BAD)
    _end("list", "--json", "--runs", str(runs))
    _end("diff", BAD, GOOD, "--json", "--runs", str(runs))
    with mock.patch.object(running, "conduct"):  # everything but the run itself
        _end("resume", BAD, "--runs", str(runs))
    if done & REPORTED:
        _end("report", BAD, "--damaged", "--format", "md", "--runs", str(runs))
    if done & COMPARED:
        _end("compare", BAD, GOOD, "--force", "--json", "--out", str(_made()), "--runs", str(runs))
    if done & EXPORTED:
        kind = EXPORTS[(done >> 4) % len(EXPORTS)]
        _end("export", BAD, "--to", kind, "--out", str(_made() / kind), "--runs", str(runs))


def _end(*arguments: str) -> None:
    """The command ends as documented, whatever it was given."""
    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        status = main(arguments)
    assert status in STATUSES, (arguments, status, said.getvalue()[-3000:])
    assert "nicbench failed" not in said.getvalue(), said.getvalue()[-3000:]


@cache
def _made() -> Path:
    return _folder("exported")


@cache
def _runs() -> Path:
    """A folder of runs with a good one, in memory."""
    run = SyntheticRun(_folder("made")).start()
    run.measure((64,), latency=False)
    runs = _folder("runs")
    shutil.copytree(run.finish(ResultVerdict.VALID), runs / GOOD)
    return runs


def records(content: bytes) -> None:
    """A record of changes: what others may have written is refused, and nothing of it is done."""
    state = content[0] % 4 if content else 0
    runtime = _records()
    path = runtime / "run" / "undo.json"
    shutil.rmtree(runtime, ignore_errors=True)
    path.parent.mkdir(mode=0o700, parents=True)
    path.write_bytes(content[1:].replace(BOOT, boot_id().encode()))
    path.chmod(0o600)
    if state == 1:
        os.chown(path, NOBODY, NOBODY)
    elif state == 2:
        path.chmod(0o666)
    elif state == 3:
        path.parent.chmod(0o777)
    host = FakeHost()
    said = None
    with (
        mock.patch.object(drivers, "_STEP_S", 0.0),  # a card that never comes is waited for all the same
        mock.patch.object(processes, "_END_STEP_S", 0.0),
        contextlib.suppress(NicbenchError),
    ):
        said = asyncio.run(restore("run", runtime, lambda _: host))
    if state:
        assert said is None
        assert not host.commands
        assert not host.writes


@cache
def _records() -> Path:
    return _folder("runtime") / "nicbench"


def engine_lines(content: bytes) -> None:
    """What an engine and a monitor say to the controller: an error of ours at worst, and no count below 0."""
    asyncio.run(_converse(content.decode(errors="replace").split("\n")))


async def _converse(lines: list[str]) -> None:
    client = EngineClient(ScriptedProcess(list(lines)), "engine")
    with contextlib.suppress(HostError):
        await client.greet()
        await client.request("configure")
        await client.request("start")
        await client.wait_for("transmitted", within_s=1)
        drained = await client.request("drain")
        settled = await client.request("settle")
        reading = require_consistent(parse_reading(drained, settled.get("late", ())))
        for counts in (reading.counts, *(stream.counts for stream in reading.streams)):
            assert all(number is None or number >= 0 for number in counts.model_dump().values()), counts
    await client.close()
    monitor = MonitorClient(ScriptedProcess(list(lines)), lambda _: None, "monitor")
    with contextlib.suppress(HostError):
        await monitor.greet()
        await monitor.request("configure")
    await monitor.close()


def _folder(name: str) -> Path:
    """A new one in memory, where that can be; it is gone when the process ends."""
    memory = Path("/dev/shm")
    parent = memory if memory.is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix=f"nicbench-fuzz-{name}-", dir=parent))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
