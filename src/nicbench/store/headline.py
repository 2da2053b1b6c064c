"""A run's headline: what a list shows of it, and the line of an index that it is kept as.

Ten thousand of them are read for every list, so that they are tuples, and this file loads nothing that takes long.
"""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import Any, Final, NamedTuple

LONGEST_TEXT: Final = 300
MOST_NAMES: Final = 64
_FIELD: Final = "\x1f"
_NAME: Final = "\x1e"
"""Between the fields of a line and between the names of one: characters that no clean text has."""
_VERDICTS: Final = frozenset({"", "valid", "disturbed", "incomplete", "imported"})
_FIELDS: Final = 17
_LONGEST_LINE: Final = 200_000
"""Characters: more than all names and texts of a headline can have."""
_NAME_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\dT)(\d\d)(\d\d)(\d\d)Z")


def clean(text: str) -> str:
    """On one line, without characters that steer a terminal, and not longer than ``LONGEST_TEXT``."""
    if not text.isprintable():
        text = "".join(" " if unicodedata.category(one)[0] in "CZ" else one for one in text[: 2 * LONGEST_TEXT])
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"


class RunHeadline(NamedTuple):
    """What a list shows of a run. ``started`` is wall time, a label; ``trouble`` says why a run cannot be read.

    All text is clean, no text is empty, and unknown is None.
    """

    run_id: str
    folder: str
    """The run's own, with its path."""
    title: str | None = None
    started: str | None = None
    verdict: str | None = None
    """``ResultVerdict``, as a word."""
    finished: bool = False
    trials: int = 0
    results: int = 0
    has_report: bool = False
    trouble: str | None = None
    tags: tuple[str, ...] = ()
    cards: tuple[str, ...] = ()
    """Vendor, model and PCI number of the cards under test, or the device of an import."""
    kernels: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    configurations: tuple[str, ...] = ()
    nicbench_version: str | None = None
    format: str | None = None
    """The format's version of its summary."""
    headline: str | None = None

    @property
    def path(self) -> Path:
        """The run's folder."""
        return Path(self.folder)

    @property
    def at(self) -> str:
        """When it started, in UTC and to be sorted; of a run that does not say, what its folder's name says."""
        if self.started:
            return self.started
        found = _NAME_TIME.match(self.run_id)
        return f"{found[1]}{found[2]}:{found[3]}:{found[4]}+00:00" if found else ""

    def plain(self) -> dict[str, Any]:
        """For JSON, by names."""
        return {"path" if name == "folder" else name: value for name, value in self._asdict().items()}


def line_of(run: RunHeadline) -> str:
    """What an index keeps: all but where the run is and what it is called, which no index says."""
    return _FIELD.join(
        _NAME.join(each) if isinstance(each, tuple) else str(int(each)) if isinstance(each, int) else each or ""
        for each in run[2:]
    )


def of_line(name: str, folder: str, line: str) -> RunHeadline | None:
    """The headline of the run ``name`` from its line; None where that is not one: an index is trusted no more than a
    run folder is.
    """
    fields = line.split(_FIELD)
    if len(fields) != _FIELDS or len(line) > _LONGEST_LINE:
        return None
    if not line.replace(_FIELD, "").replace(_NAME, "").isprintable():
        return None
    title, started, verdict, finished, trials, results, has_report, trouble, *names, version, form, said = fields
    if verdict not in _VERDICTS or not (trials.isdecimal() and results.isdecimal() and len(trials + results) < 24):
        return None
    tags, cards, kernels, drivers, methods, configurations = (
        tuple(each.split(_NAME)) if each else () for each in names
    )
    return RunHeadline(
        clean(name),
        folder,
        title or None,
        started or None,
        verdict or None,
        finished == "1",
        int(trials),
        int(results),
        has_report == "1",
        trouble or None,
        tags,
        cards,
        kernels,
        drivers,
        methods,
        configurations,
        version or None,
        form or None,
        said or None,
    )
