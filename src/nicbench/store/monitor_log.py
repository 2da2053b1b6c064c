"""monitor.ndjson: what monitors tell, line by line as it comes, so that a run that is killed keeps it.

``monitor_table.py`` makes monitor.parquet of it. A line holds ``began_ns``, a start of the run, or a host and one
thing: a line of its monitor as it was (``event``), the trial or round that begins or, null, ends (``trial``), or the
``cost``, or of another machine ``ahead_ns``: by how much this machine's monotonic clock is ahead of its.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nicbench.model.monitor import MonitorCost
from nicbench.store.files import storage_error

NAME = "monitor.ndjson"
SAMPLE = '{"event":"sample"'
"""How the lines begin that are many: they are kept as they are."""


class MonitorLog:
    """Appends. ``began_ns`` is when this start of the run was (monotonic), from which times in the table count.

    ``redact`` takes out of names what identifies a machine: an interface may be called after its MAC address.
    """

    def __init__(self, folder: Path, began_ns: int | None = None, redact: Callable[[Any], Any] | None = None) -> None:
        self._redact = redact
        self._path = folder / NAME
        self._began_ns = time.monotonic_ns() if began_ns is None else began_ns
        self._descriptor: int | None = None

    def event(self, host: str, line: str) -> None:
        """A line of a monitor; samples are numbers, in which nothing is to be redacted."""
        if self._redact is not None and not line.startswith(SAMPLE):
            line = json.dumps(self._redact(json.loads(line)))
        self._write(f'{{"host":{json.dumps(host)},"event":{line}}}\n')

    def trial(self, host: str, number: int | None) -> None:
        """Samples of this host that follow are of this trial; None: of none."""
        self._write(json.dumps({"host": host, "trial": number}) + "\n")

    def round(self, host: str, number: int) -> None:
        """Samples of this host that follow are of this round, until ``trial`` ends it with None."""
        self._write(json.dumps({"host": host, "trial": number, "is_round": True}) + "\n")

    def clock(self, host: str, ahead_ns: int) -> None:
        """This machine's monotonic clock is so far ahead of that of this host, which was booted at another time."""
        self._write(json.dumps({"host": host, "ahead_ns": ahead_ns}) + "\n")

    def cost(self, host: str, cost: MonitorCost) -> None:
        """What its monitor has cost."""
        self._write(json.dumps({"host": host, "cost": cost.model_dump()}) + "\n")

    def close(self) -> None:
        """A later line opens the file again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _write(self, text: str) -> None:
        try:
            if self._descriptor is None:
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
                self._descriptor = os.open(self._path, flags, 0o644)
                # A line that a crash cut short ends here.
                text = "\n" + json.dumps({"began_ns": self._began_ns}) + "\n" + text
            os.write(self._descriptor, text.encode())
        except OSError as error:
            raise storage_error(error, self._path) from error
