"""What a run does at this moment: ``.now.json`` in its folder, for whoever watches it. It is removed at the run's end.

The journal has what was measured; what is being measured is worth nothing once it is over. The file is replaced as a
whole and is not synced to disk: a run that was killed leaves it behind, and it is not believed then.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import Any, Final

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.errors import NicbenchError
from nicbench.core.events import Event, RoundBegun, RunFinished, StageStarted, TestStarted, TrialStarted
from nicbench.stats.activity import Estimate
from nicbench.store import files
from nicbench.store.files import json_text

NAME: Final = ".now.json"
_SHOWN: Final = (StageStarted, TestStarted, TrialStarted, RoundBegun)


class Now(Frozen):
    """``event`` is the last that began something, at ``began_s`` (Unix time); ``estimate`` is of the whole run."""

    event: dict[str, Any]
    began_s: float = Field(allow_inf_nan=False)
    estimate: Estimate


class NowFile:
    """Writes the file. A failure, on a full disk for instance, never ends a run."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME

    def note(self, event: Event, estimate: Estimate) -> None:
        """Takes an event of the run into account."""
        if isinstance(event, RunFinished):
            self.remove()
        elif isinstance(event, _SHOWN):
            now = Now(event=event.model_dump(mode="json"), began_s=time.time(), estimate=estimate)
            temporary = self._path.with_name(f"{NAME}.{os.getpid()}.tmp")
            with contextlib.suppress(OSError, NicbenchError):
                temporary.unlink(missing_ok=True)
                with temporary.open("x", encoding="utf-8") as stream:  # a new file: no link is followed
                    stream.write(json_text(now, indent=None))
                temporary.replace(self._path)

    def remove(self) -> None:
        """Removes the file, where there is one."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)


def read_now(folder: Path) -> Now | None:
    """Reads what the run does; None where it does not say, or nothing that can be understood."""
    try:
        return Now.model_validate_json(files.read_bytes(folder / NAME))
    except (OSError, ValueError, NicbenchError):
        return None
