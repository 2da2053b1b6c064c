"""How a run is named: by its folder, by its id in the folder that holds runs, or as ``latest``."""

from __future__ import annotations

from pathlib import Path

from nicbench.errors import UsageError
from nicbench.store.folder import RunFolder
from nicbench.store.listing import latest_run
from nicbench.store.quarantine import refuse_damaged

LATEST = "latest"


def open_run(reference: str, output: Path, *, damaged: bool = False) -> RunFolder:
    """The run folder that ``reference`` names; UsageError where there is none, HostError where it is damaged.

    ``damaged`` opens it all the same; who reads it then says what is the matter with it.
    """
    folder = RunFolder.open(path_of(reference, output))
    if not damaged:
        refuse_damaged(folder)
    return folder


def path_of(reference: str, output: Path) -> Path:
    """Where the run would be; UsageError where there are no runs of which one could be the last."""
    if reference == LATEST:
        run = latest_run(output)
        if run is None:
            raise UsageError("there are no runs here", place=str(output), next_step="nicbench run BENCH.yaml makes one")
        return run
    path = Path(reference)
    by_id = output / reference
    # An id has no folder in it; a folder of that name here comes first, as the user sees it.
    return by_id if not path.exists() and by_id.exists() else path
