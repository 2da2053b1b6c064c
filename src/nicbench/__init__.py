"""nicbench: a NIC performance lab in one tool.

In Python: ``nicbench.load(RUN)`` opens a run; ``nicbench.Bounded``, ``nicbench.Spread`` and ``nicbench.Result`` are the
types of what is in it. Importing nicbench loads none of it before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from os import PathLike

    from nicbench.core.result import Bounded, Result, Spread
    from nicbench.export.loading import LoadedRun

__all__ = ["Bounded", "Result", "Spread", "__version__", "load"]
__version__ = "0.1.0"

_TYPES = {"Bounded": "nicbench.core.result", "Result": "nicbench.core.result", "Spread": "nicbench.core.result"}


def load(run: str | PathLike[str], *, runs: str | PathLike[str] = "runs") -> LoadedRun:
    """A run for Python: typed results, and tables that pandas and others read (``nicbench.export.loading.LoadedRun``).

    ``run`` is a run's folder, its id under ``runs``, or ``latest``. UsageError if it does not exist.
    """
    from nicbench.export.loading import load as load_run  # here: importing nicbench loads nothing else

    return load_run(run, runs=runs)


def __getattr__(name: str) -> object:
    """The types, when they are first asked for."""
    import importlib

    if name in _TYPES:
        return getattr(importlib.import_module(_TYPES[name]), name)
    raise AttributeError(f"module 'nicbench' has no attribute {name!r}")
