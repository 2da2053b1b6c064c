"""Ends a run between two tests where somebody asked for it; what asks is ``store/stop_request.py``."""

from __future__ import annotations

from nicbench.core.errors import InterruptedRunError
from nicbench.store.folder import RunFolder
from nicbench.store.stop_request import forget_request, is_asked_to_stop


def end_where_asked(folder: RunFolder, following: str) -> None:
    """Raises InterruptedRunError where the run is to end before what follows; the request is then done with."""
    if is_asked_to_stop(folder.path):
        forget_request(folder.path)
        raise InterruptedRunError(f"stopped before {following}, as somebody asked for")
