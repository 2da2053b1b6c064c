"""What is laid side by side: a configuration of a run, or published results, and the name that tells it apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from nicbench.core.imported import ImportOrigin
from nicbench.core.plan import Plan
from nicbench.core.result import Result, ResultVerdict
from nicbench.core.turn import DEFAULT


class Origin(StrEnum):
    """Whose numbers they are."""

    MEASURED = "measured"
    SIMULATED = "simulated"
    IMPORTED = "imported"


@dataclass(frozen=True, slots=True)
class Entry:
    """``results`` are those of every run of the configuration that counts; ``plan`` is the configuration's own.

    ``told`` is everything that the run says of its settings, by machine (``read_settings``); empty where imported.
    ``moment`` is when it was made, in UTC and in words; None where nobody says.
    """

    name: str
    run_id: str
    title: str
    results: tuple[Result, ...]
    configuration: str = DEFAULT
    verdict: ResultVerdict = ResultVerdict.VALID
    finished: bool = True
    troubles: tuple[str, ...] = ()
    """What of its files is not as the run left it, in words."""
    plan: Plan | None = None
    imported: ImportOrigin | None = None
    data_set: str | None = None
    """The name of the built-in data set."""
    notes: tuple[str, ...] = ()
    """What a data set says of itself."""
    tags: tuple[str, ...] = ()
    moment: str | None = None
    machines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Cards, processors and kernels of its machines, by these words."""
    links: tuple[str, ...] = ()
    """What a source calls the links of its results."""
    told: Mapping[str, Any] = field(default_factory=dict)
    is_named: bool = False
    """Whether the user gave the name."""

    @property
    def origin(self) -> Origin:
        """Imported results are nobody's measurement here, whatever they are of."""
        if self.imported is not None:
            return Origin.IMPORTED
        return Origin.SIMULATED if self.plan is not None and self.plan.simulated else Origin.MEASURED

    @property
    def runs(self) -> int:
        """How many runs of the configuration count."""
        return max(1, len({result.run_number for result in self.results}))

    @property
    def published(self) -> str | None:
        """How imported results are marked in every name: "published 2019", "imported"."""
        if self.imported is None:
            return None
        if self.imported.source is None and self.imported.year is None:
            return "imported"
        return f"published {self.imported.year}" if self.imported.year is not None else "published"


LONGEST = 40
"""Of a title that serves as a name, in characters."""


def name_entries(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """The same entries with names that are all different; one that the user gave stays.

    First the configuration, where it has a name; else the title; else when it was made; and last the run's id. What was
    not measured here says so in its name, so that no table and no figure shows it without.
    """
    names = [entry.name if entry.is_named else _base_name(entry, entries) for entry in entries]
    for more in _MORE:
        counts = Counter(names)
        names = [
            name if counts[name] == 1 else _append_detail(name, more(entry), entry)
            for name, entry in zip(names, entries, strict=True)
        ]
    marked = [
        f"{name} ({entry.published})" if entry.published and not entry.is_named else name
        for name, entry in zip(names, entries, strict=True)
    ]
    return tuple(replace(entry, name=name) for entry, name in zip(entries, _number_copies(marked), strict=True))


def _base_name(entry: Entry, entries: Sequence[Entry]) -> str:
    if entry.configuration != DEFAULT:
        return entry.configuration
    if entry.imported is not None and entry.imported.device:
        return entry.imported.device
    alone = sum(other.title == entry.title for other in entries) == 1
    if alone and len(entry.title) <= LONGEST:
        return entry.title
    tags = [tag for tag in entry.tags if sum(tag in other.tags for other in entries) == 1]
    return tags[0] if tags else entry.moment or entry.title[:LONGEST]


_MORE: tuple[Callable[[Entry], str | None], ...] = (
    lambda entry: None if entry.is_named else entry.moment,
    lambda entry: entry.run_id,
)


def _append_detail(name: str, more: str | None, entry: Entry) -> str:
    if entry.is_named or more is None or more in name:
        return name
    return more if name == entry.moment else f"{name}, {more}"


def _number_copies(names: Sequence[str]) -> list[str]:
    """Copies of one run folder have everything in common."""
    seen: Counter[str] = Counter()
    counts = Counter(names)
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if counts[name] == 1 else f"{name} #{seen[name]}")
    return found
