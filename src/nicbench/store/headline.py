"""A run's headline: what a list shows of a run and what searches look at, and its line in the index."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic_core import from_json

from nicbench.core.errors import NicbenchError
from nicbench.store import reading

INVENTORY: Final = "inventory.json"
LONGEST_TEXT: Final = 300
MOST_NAMES: Final = 64
_FIELD: Final = "\x1f"
_NAME: Final = "\x1e"
"""Separators of the fields of a line, and of the names in a field: characters that no clean text has."""
VERDICTS: Final = frozenset({"", "valid", "adjusted", "disturbed", "incomplete", "imported"})
"""Values of a headline's verdict; empty where it has none."""
_FIELDS: Final = 17
_LONGEST_LINE: Final = 200_000
"""Characters: more than all names and texts of a headline can have."""
_NAME_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\dT)(\d\d)(\d\d)(\d\d)Z")


# What an inventory says by which runs are searched.


@dataclass(frozen=True, slots=True)
class Machines:
    """Cards under test, kernels and drivers of all machines of a run, each name once."""

    cards: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()


def machines_of(folder: Path) -> Machines:
    """Reads cards, kernels and drivers of a run folder; empty where it has no readable inventory."""
    try:
        return machines(from_json(reading.read_bytes(folder / INVENTORY), allow_inf_nan=False))
    except (OSError, ValueError, RecursionError, NicbenchError):
        return Machines()


def machines(inventory: Any) -> Machines:
    """Extracts cards, kernels and drivers from an inventory.

    Cards are those of the interfaces under test; where no interface is known (DPDK took it), all of the machine.
    """
    each = [_mapping(facts) for facts in _mapping(inventory).values()]
    cards = [card for facts in each for card in _cards(facts)]
    return Machines(
        cards=_once(" ".join(_words(card, "vendor", "model", "id")) for card in cards),
        kernels=_once(release for facts in each for release in _words(_mapping(facts.get("kernel")), "release")),
        drivers=_once(name for facts in each for name in _drivers(facts)),
    )


def _cards(facts: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    adapters = _mapping(facts.get("pci_adapters"))
    drivers = _mapping(facts.get("drivers"))
    buses = [str(_mapping(drivers.get(name)).get("bus")) for name in _mapping(facts.get("interfaces"))]
    known = [bus for bus in buses if bus in adapters]
    return [_mapping(adapters[bus]) for bus in known or adapters]


def _drivers(facts: Mapping[str, Any]) -> Iterator[str]:
    """Lists the drivers of the interfaces under test; for a virtual one its kind (veth) stands in for the driver."""
    for name, link in _mapping(facts.get("interfaces")).items():
        named = _words(_mapping(_mapping(facts.get("drivers")).get(name)), "name")
        yield from named or _words(_mapping(link), "kind")
    for card in _cards(facts):
        yield from _words(card, "driver")


def _words(found: Mapping[str, Any], *names: str) -> list[str]:
    return [value for name in names if isinstance(value := found.get(name), str) and value]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name))


# The headline.


def clean(text: str) -> str:
    """Puts a text on one line, without control characters, and cuts it to ``LONGEST_TEXT``."""
    if not text.isprintable():
        text = "".join(" " if unicodedata.category(one)[0] in "CZ" else one for one in text[: 2 * LONGEST_TEXT])
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"


def time_of_name(run_id: str) -> str:
    """Returns the time in the name of a run's folder, in UTC and sortable; empty where there is none."""
    found = _NAME_TIME.match(run_id)
    return f"{found[1]}{found[2]}:{found[3]}:{found[4]}+00:00" if found else ""


class RunHeadline(NamedTuple):
    """What a list shows of a run. ``started`` is wall time, a label; ``trouble`` says why a run cannot be read.

    All text is clean, no text is empty, and unknown is None.
    """

    run_id: str
    folder: str
    """Path of the run folder."""
    title: str | None = None
    started: str | None = None
    verdict: str | None = None
    """Value of ``ResultVerdict``."""
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
    """Format version of its summary."""
    headline: str | None = None

    @property
    def path(self) -> Path:
        """The run's folder as a path."""
        return Path(self.folder)

    @property
    def name(self) -> str:
        """The name of the run's folder, which addresses have; ``run_id`` is the same as clean text."""
        return self.folder.rpartition("/")[2]

    @property
    def at(self) -> str:
        """When it started, in UTC and sortable; from the folder's name where the journal does not say."""
        if self.started:
            return self.started
        return time_of_name(self.run_id)

    def plain(self) -> dict[str, Any]:
        """Returns the headline as a dictionary for JSON."""
        return {"path" if name == "folder" else name: value for name, value in self._asdict().items()}


def line_of(run: RunHeadline) -> str:
    """Encodes a headline as its line in the index, without the run's name and folder."""
    return _FIELD.join(
        _NAME.join(each) if isinstance(each, tuple) else str(int(each)) if isinstance(each, int) else each or ""
        for each in run[2:]
    )


def of_line(name: str, folder: str, line: str) -> RunHeadline | None:
    """Decodes the headline of the run ``name`` from its line in the index.

    None where the line is invalid: an index is trusted no more than a run folder is.
    """
    fields = line.split(_FIELD)
    if len(fields) != _FIELDS or len(line) > _LONGEST_LINE:
        return None
    if not line.replace(_FIELD, "").replace(_NAME, "").isprintable():
        return None
    title, started, verdict, finished, trials, results, has_report, trouble, *names, version, form, said = fields
    if verdict not in VERDICTS or not (trials.isdecimal() and results.isdecimal() and len(trials + results) < 24):
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
