"""nicbench: a NIC performance lab in one tool."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from os import PathLike

    from nicbench.loading import LoadedRun

__version__ = "0.1.0"


def load(run: str | PathLike[str], *, runs: str | PathLike[str] = "runs") -> LoadedRun:
    """A run for Python: typed results, and tables that pandas and others read (``nicbench.loading.LoadedRun``).

    ``run`` is a run's folder, its id under ``runs``, or ``latest``. UsageError where there is none.
    """
    from nicbench.loading import load as load_run  # here: importing nicbench loads nothing else

    return load_run(run, runs=runs)
