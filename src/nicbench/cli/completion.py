"""Shell completion: names of runs, tags, methods, formats, examples, labs and data sets.

A completion is asked for at each press of a key: it loads the command that it is for and nothing else, looks at names
of files and not into them where it can, and never fails. What cannot be looked at completes to nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from itertools import islice
from pathlib import Path
from typing import Final

import typer

Completer = Callable[[typer.Context, str], list[str]]

_ASKED: Final = "_NICBENCH_COMPLETE"
_RUN: Final = re.compile(r"\d{4}-\d{2}-\d{2}T\d{6}Z-.+")
"""Names of run folders, which begin with the time."""
_MOST_RUNS: Final = 500
"""The newest runs are completed; older ones only by ``nicbench list``."""


def is_asked(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the shell asks for a completion, or for the script that asks."""
    return _ASKED in environment


def typed_words(environment: Mapping[str, str] = os.environ) -> list[str]:
    """The words before the one that is completed, without the program's name."""
    if "COMP_WORDS" in environment:  # bash
        try:
            last = int(environment.get("COMP_CWORD", "0"))
        except ValueError:
            last = 0
        return environment["COMP_WORDS"].split()[1:last]
    typed = environment.get("_TYPER_COMPLETE_ARGS", "")  # zsh, fish
    words = typed.split()[1:]
    return words if typed.endswith(" ") else words[:-1]


def _careful(complete: Callable[[Path], Iterable[str]]) -> Completer:
    """Makes a completer of a function from the folder of runs to names."""

    @wraps(complete)
    def completer(ctx: typer.Context, incomplete: str) -> list[str]:
        try:
            names = complete(Path(str(ctx.params.get("runs_folder") or "runs")))
            return [name for name in dict.fromkeys(names) if name.startswith(incomplete)]
        except Exception:  # whatever it was: somebody is typing
            return []

    # typer looks at the types of the function that it is given, not at those of the one within.
    del completer.__wrapped__
    completer.__annotations__ = {"ctx": typer.Context, "incomplete": str, "return": list[str]}
    return completer


def _runs(folder: Path) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted((entry.name for entry in entries if _RUN.fullmatch(entry.name)), reverse=True)


def _tags(folder: Path) -> list[str]:
    from nicbench.store.marks import tags_of  # imported here, as in _published

    return sorted({tag for run in islice(_runs(folder), _MOST_RUNS) for tag in tags_of(folder / run)})


def _runs_and_latest(folder: Path) -> list[str]:
    return ["latest", *_runs(folder)[:_MOST_RUNS]]


def _published() -> list[str]:
    from nicbench.importing.reference.data_sets import data_sets  # imported here, as few completions need it

    return list(data_sets())


def _labs(_: Path) -> list[str]:
    from nicbench.tuning.restore import find_kept_runs  # imported here, as in _published

    return find_kept_runs()


def _examples(_: Path) -> list[str]:
    from nicbench.core.shipped import example_names  # imported here, as in _published

    return list(example_names())


def _kinds(package: str) -> list[str]:
    from nicbench.core.registry import list_kinds  # imported here, as in _published

    return list_kinds(package)


def _list_of(names: Callable[[], Iterable[str]]) -> Completer:
    return _careful(lambda _: names())


runs: Final = _careful(_runs_and_latest)
tags: Final = _careful(_tags)
runs_and_tags: Final = _careful(lambda folder: [*_runs_and_latest(folder), *_tags(folder)])
comparable: Final = _careful(
    lambda folder: [*_runs_and_latest(folder), *_tags(folder), *(f"reference:{name}" for name in _published())]
)
methods: Final = _list_of(lambda: _kinds("nicbench.methods"))
labs: Final = _careful(_labs)
examples: Final = _careful(_examples)
data_sets: Final = _list_of(_published)
export_formats: Final = _list_of(lambda: _kinds("nicbench.export.formats"))
import_formats: Final = _list_of(lambda: _kinds("nicbench.importing.formats"))
report_formats: Final = _list_of(lambda: ("html", "pdf", "md", "all"))
