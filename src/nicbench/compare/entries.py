"""The entries of a comparison: opened from run folders, configurations, tags and published data sets, with the names
and the settings that tell them apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from nicbench.compare.run_differences import (
    NOT_RECORDED,
    Difference,
    differences_between,
    importance_of,
    last_name_of,
    read_settings,
    shorten,
)
from nicbench.core.errors import UsageError, suggest
from nicbench.core.frozen import frozen
from nicbench.core.lists import grouped
from nicbench.core.plan import Plan
from nicbench.core.result import ImportOrigin, Result, ResultVerdict, Summary
from nicbench.core.turn import DEFAULT
from nicbench.store.folder import RunFolder
from nicbench.store.listing import clean, headline, machines_of, open_run, path_of
from nicbench.store.marks import tags_of


class Origin(StrEnum):
    """Where the numbers of an entry come from."""

    MEASURED = "measured"
    SIMULATED = "simulated"
    IMPORTED = "imported"


@frozen
class Entry:
    """One thing that is compared: a configuration of a run, or published results.

    ``results`` are those of every run of the configuration that counts; ``plan`` is the plan of this configuration
    alone. ``told`` has all settings that the run discloses, by machine (``read_settings``); it is empty for imported
    results. ``moment`` is the second at which the run began, as UTC text; None where it is unknown.
    """

    name: str
    run_id: str
    title: str
    results: tuple[Result, ...]
    configuration: str = DEFAULT
    verdict: ResultVerdict = ResultVerdict.VALID
    finished: bool = True
    troubles: tuple[str, ...] = ()
    """Sentences about files of the run folder that changed after the run."""
    plan: Plan | None = None
    imported: ImportOrigin | None = None
    data_set: str | None = None
    """The name of the built-in data set; None for results from elsewhere."""
    notes: tuple[str, ...] = ()
    """Remarks that the built-in data set makes about itself."""
    tags: tuple[str, ...] = ()
    moment: str | None = None
    machines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Network cards, processors and kernels of its machines, by the keys ``card``, ``processor`` and ``kernel``."""
    links: tuple[str, ...] = ()
    """The names that the source gives to the links of its results."""
    told: Mapping[str, Any] = field(default_factory=dict)
    is_named: bool = False
    """Whether the user chose the name."""
    parts: tuple[Entry, ...] = ()
    """The runs of a tag, oldest first, where the entry is all of them."""

    @property
    def minute(self) -> str | None:
        """The minute at which the run began, as UTC text."""
        return None if self.moment is None else self.moment[: len("2026-01-31 12:00")]

    @property
    def origin(self) -> Origin:
        """Where the numbers come from; imported results count as imported even if they are results of a simulation."""
        if self.imported is not None:
            return Origin.IMPORTED
        return Origin.SIMULATED if self.plan is not None and self.plan.simulated else Origin.MEASURED

    @property
    def runs(self) -> int:
        """How many runs of the configuration count; what a source prints over all its runs does not count."""
        return max(1, len({result.run_number for result in self.results} - {None}))

    @property
    def published(self) -> str | None:
        """The mark of imported results in every name: "published 2019", "published", "imported"; else None."""
        if self.imported is None:
            return None
        if self.imported.source is None and self.imported.year is None:
            return "imported"
        return f"published {self.imported.year}" if self.imported.year is not None else "published"


_LAST_THAT_MATTERS: Final = importance_of("inventory.clock_source").rank
"""The last rank that matters; ranks after it are versions of tools and remaining facts (compare/run_differences.py)."""


@frozen
class Settings:
    """The settings that differ between entries, by their importance.

    ``main`` change results; ``others`` are less likely to. ``apart`` has the paths of differences other than settings.
    ``of`` names the entries that disclose their settings, ``silent`` those that do not.
    """

    of: tuple[str, ...]
    silent: tuple[str, ...]
    main: tuple[Difference, ...]
    others: tuple[Difference, ...]
    apart: tuple[str, ...]


def compare_settings(entries: Sequence[Entry]) -> Settings:
    """Compares the entries that disclose their settings; without any difference where fewer than two do."""
    telling = [entry for entry in entries if entry.told]
    silent = tuple(entry.name for entry in entries if not entry.told)
    names = tuple(entry.name for entry in telling)
    if len(telling) < 2:
        return Settings(names, silent, (), (), ())
    rows = differences_between([entry.told for entry in telling])
    kept = rows.pop("settings")
    return Settings(
        of=names,
        silent=silent,
        main=tuple(row for row in kept if row.rank <= _LAST_THAT_MATTERS),
        others=tuple(row for row in kept if row.rank > _LAST_THAT_MATTERS),
        apart=tuple(dict.fromkeys(row.path for kind in rows.values() for row in kind)),
    )


LONGEST: Final = 40
"""Maximum length in characters of a title that serves as a name."""
_LONGEST_VALUE: Final = 24


def name_entries(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Returns the entries with distinct names; a name that the user chose is kept.

    An entry is named after its configuration, where that has a name, else after its title, a tag, or the only setting
    in which it differs from the others of its title ("queue frames 64"), else after the time at which its run began, to
    the second where the minute is that of another; the run's id is added last, where names are still equal. The name of
    imported results says that they were not measured here, so that every table and figure shows it.
    """
    settings = _settings_apart(entries)
    names = [
        entry.name if entry.is_named else _base_name(entry, entries, settings.get(place))
        for place, entry in enumerate(entries)
    ]
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


def _base_name(entry: Entry, entries: Sequence[Entry], setting: str | None) -> str:
    if entry.parts:
        return entry.name
    if entry.configuration != DEFAULT:
        return entry.configuration
    if entry.imported is not None and entry.imported.device:
        return entry.imported.device
    alone = sum(other.title == entry.title for other in entries) == 1
    if alone and len(entry.title) <= LONGEST:
        return entry.title
    tags = [tag for tag in entry.tags if sum(tag in other.tags for other in entries) == 1]
    return tags[0] if tags else setting or entry.minute or entry.title[:LONGEST]


def _settings_apart(entries: Sequence[Entry]) -> dict[int, str]:
    """Returns for entries that differ from all others of their title in one setting only what that is, by place.

    Paths with the same last name and the same values are one setting: a driver repeats what it was given.
    """
    of_title = grouped((entry.title, place) for place, entry in enumerate(entries) if entry.configuration == DEFAULT)
    found: dict[int, str] = {}
    for places in of_title.values():
        alike = [entries[place] for place in places]
        if len(alike) < 2 or not all(entry.told for entry in alike):
            continue
        settings = compare_settings(alike)
        differing = (*settings.main, *settings.others)
        if not settings.main or len({(last_name_of(one.path), repr(one.values)) for one in differing}) > 1:
            continue
        first = differing[0]
        texts = [clean(shorten(value, first.path)) for value in first.values if isinstance(value, str | int | float)]
        if len(set(texts)) == len(alike) and max(map(len, texts)) <= _LONGEST_VALUE:
            label = clean(_label_of(first.path))
            found |= {place: f"{label} {text}" for place, text in zip(places, texts, strict=True)}
    return found


def _label_of(path: str) -> str:
    """Returns the last name of a path, for a fact or a tuned item behind what it is of: "smt active"."""
    parts = path.split(".")
    of = [parts[1]] if parts[0] in ("inventory", "tuning") and len(parts) > 2 and parts[1] != last_name_of(path) else []
    return " ".join((*of, last_name_of(path))).replace("_", " ")


_MORE: tuple[Callable[[Entry], str | None], ...] = (
    lambda entry: entry.minute,
    lambda entry: entry.moment,
    lambda entry: entry.run_id,
)


def _append_detail(name: str, more: str | None, entry: Entry) -> str:
    """Appends what tells the entry from others of this name; to a minute only the seconds are added."""
    if entry.is_named or more is None or more in name:
        return name
    if entry.minute is not None and name.endswith(entry.minute) and more == entry.moment:
        return name.removesuffix(entry.minute) + more
    return more if name == entry.moment else f"{name}, {more}"


def _number_copies(names: Sequence[str]) -> list[str]:
    """Numbers names that are still equal, because copies of one run folder have everything in common."""
    seen: Counter[str] = Counter()
    counts = Counter(names)
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if counts[name] == 1 else f"{name} #{seen[name]}")
    return found


REFERENCE: Final = "reference:"
MOST: Final = 100
"""Maximum number of entries in one comparison; a page with more is not readable."""

Tagged = Callable[[str], Sequence[Path]]
"""A function that returns the folders of the runs with a given tag, oldest first."""


def entries_of(words: Sequence[str], output: Path, tagged: Tagged, *, damaged: bool = False) -> tuple[Entry, ...]:
    """Returns an entry for each configuration of everything that the words name.

    A word is ``[NAME=]RUN[:CONFIGURATION]``, where RUN may be a tag or ``reference:DATA-SET``. A tag is one entry, with
    all runs that have it; alone it is an entry for each of them. Only names that the user gives are final;
    ``name_entries`` chooses the others. UsageError where a word names nothing, or nothing that can be compared;
    HostError where a folder is damaged, unless ``damaged`` allows it.
    """
    found = []
    for word in words:
        name, wanted = _name_of(word)
        some = list(_open_entries(wanted, output, tagged, apart=len(words) == 1, damaged=damaged))
        if name is not None:
            alone = len(some) == 1
            some = [
                replace(one, name=name if alone else f"{name} {number}", is_named=True)
                for number, one in enumerate(some, 1)
            ]
        found += some
    _refuse_twice(found)
    if len(found) < 2:
        raise UsageError(
            "one run alone is no comparison" if found else "no run is named",
            place=words[0] if words else None,
            next_step="name another run, or a published one: `nicbench list`, `nicbench reference list`",
        )
    if len(found) > MOST:
        raise UsageError(
            f"{len(found)} entries are more than a page can show ({MOST})",
            next_step="name fewer runs, or one configuration of each (RUN:CONFIGURATION)",
        )
    return tuple(found)


def _name_of(word: str) -> tuple[str | None, str]:
    """Splits ``old=2026-01-31T120000Z-title`` into name and run; an existing path is never split."""
    name, given, rest = word.partition("=")
    if not given or not name.strip() or "/" in name or Path(word).exists():
        return None, word
    return clean(name.strip()), rest


def _open_entries(word: str, output: Path, tagged: Tagged, *, apart: bool, damaged: bool) -> Iterator[Entry]:
    if word.startswith(REFERENCE):
        yield from _open_data_set(word.removeprefix(REFERENCE))
        return
    for head, configuration in _split_word(word):
        if path_of(head, output).exists():
            yield from open_folder(open_run(head, output, damaged=damaged), configuration, head)
            return
        if paths := tagged(head):
            opened = [
                entry
                for path in paths
                for entry in open_folder(open_run(str(path), output, damaged=damaged), configuration, head)
            ]
            yield from opened if apart or paths[0].name == head else _join_by_configuration(head, opened)
            return
    if "/" in word:
        open_run(word, output)  # raises an error that says what is wrong with the path
    raise UsageError("is neither a run nor a tag", place=repr(word), next_step="`nicbench list` shows runs and tags")


def _join_by_configuration(tag: str, entries: Sequence[Entry]) -> Iterator[Entry]:
    """Yields an entry for each configuration of the runs with a tag; its results are those of all these runs."""
    for configuration in dict.fromkeys(entry.configuration for entry in entries):
        parts = tuple(entry for entry in entries if entry.configuration == configuration)
        numbers: dict[tuple[str, int], int] = {}
        results = tuple(
            result.replace(run=numbers.setdefault((part.run_id, result.run_number or 1), len(numbers) + 1))
            for part in parts
            for result in part.results
        )
        one = parts[-1]
        yield replace(
            one,
            name=tag if configuration == DEFAULT else f"{tag}: {configuration}",
            run_id=one.run_id if len(parts) == 1 else f"{len(parts)} runs, {parts[0].run_id} to {one.run_id}",
            results=results,
            verdict=max((part.verdict for part in parts), key=list(ResultVerdict).index),
            finished=all(part.finished for part in parts),
            troubles=tuple(trouble for part in parts for trouble in part.troubles),
            tags=(tag,),
            told=_join_settings([part.told for part in parts]),
            parts=tuple(replace(part, name=part.run_id) for part in parts),
        )


def _join_settings(values: Sequence[Any]) -> Any:
    """Returns the settings of several runs as those of one: where they differ, all values ("16 / 1024")."""
    if all(value == values[0] for value in values):
        return values[0]
    if all(isinstance(value, Mapping) for value in values):
        names = dict.fromkeys(name for value in values for name in value)
        return {name: _join_settings([value.get(name, NOT_RECORDED) for value in values]) for name in names}
    return " / ".join(dict.fromkeys(shorten(value, "") for value in values))


def _split_word(word: str) -> Iterator[tuple[str, str | None]]:
    """Yields the whole word, then for each colon, last first, the text before it and the configuration after it."""
    yield word, None
    for place in range(len(word) - 1, 0, -1):
        if word[place] == ":":
            yield word[:place], word[place + 1 :]


def open_folder(folder: RunFolder, configuration: str | None, word: str) -> Iterator[Entry]:
    """Yields an entry for each configuration of a run, or only for the one that is named.

    A run that ended early has the results that are in its journal.
    """
    plan, summary = folder.plan(), folder.summary()
    finished = folder.finished and summary is not None
    if summary is None:
        title = plan.title if plan is not None else folder.run_id
        summary = Summary(title=title, verdict=ResultVerdict.INCOMPLETE, results=folder.journal.results())
    order = plan.compared if plan is not None else summary.configurations  # turns are made in a random order
    head = headline(folder.path)
    machines = machines_of(folder.path)
    for name, results in _choose_configuration(
        _group_by_configuration(summary.counted, order), configuration, word
    ).items():
        own = _plan_of(plan, name)
        yield Entry(
            name=name,
            run_id=folder.run_id,
            title=clean(summary.title),
            results=results,
            configuration=name,
            verdict=summary.verdict,
            finished=finished,
            troubles=folder.damage(),
            plan=own,
            imported=summary.imported,
            links=_links(results),
            tags=tags_of(folder.path),
            moment=None if summary.imported else _moment(head.at),
            machines={
                "card": machines.cards,
                "kernel": machines.kernels,
                "processor": tuple(map(clean, machines.processors)),
            },
            told={} if summary.imported else read_settings(folder, name),
        )


def _open_data_set(word: str) -> Iterator[Entry]:
    from nicbench.importing.reference.data_sets import as_run, data_set  # imported here, as few comparisons need them

    name, _, configuration = word.partition(":")
    chosen = data_set(name)
    made = as_run(chosen)
    plan = made.plan(f"{REFERENCE}{name}")
    for own, results in _choose_configuration(
        _group_by_configuration([chosen.points.of(one) for one in made.summary.results]), configuration or None, name
    ).items():
        yield Entry(
            name=own,
            run_id=f"{REFERENCE}{name}",
            title=chosen.title,
            results=results,
            configuration=own,
            verdict=ResultVerdict.IMPORTED,
            plan=plan,
            imported=made.summary.imported,
            data_set=name,
            links=_links(results),
            notes=(chosen.about, *chosen.notes),
        )


def _links(results: Sequence[Result]) -> tuple[str, ...]:
    """Returns the links that results of published tables name; a run that nicbench measured has them in its plan."""
    return tuple(dict.fromkeys(clean(link) for one in results if isinstance(link := one.parameters.get("link"), str)))


def _group_by_configuration(results: Sequence[Result], order: Sequence[str] = ()) -> dict[str, tuple[Result, ...]]:
    """Groups results by their configurations, in this order; others follow as they were measured."""
    found: dict[str, list[Result]] = {name: [] for name in order}
    for result in results:
        found.setdefault(result.configuration, []).append(result)
    return {name: tuple(members) for name, members in found.items() if members}


def _choose_configuration(
    found: Mapping[str, tuple[Result, ...]], wanted: str | None, word: str
) -> Mapping[str, tuple[Result, ...]]:
    """Returns the results of all configurations, or of the wanted one: by its name or an unambiguous part of it."""
    if not found:
        raise UsageError("has no results", place=word, next_step="name a run that measured something")
    if wanted is None:
        return found
    exact = [name for name in found if name == wanted]
    part = exact or [name for name in found if wanted.casefold() in name.casefold()]
    if len(part) != 1:
        what = "more than one configuration is called so" if part else "there is no such configuration"
        raise UsageError(f"{what}: {wanted!r}", place=word, next_step=suggest(wanted, tuple(found), "configuration"))
    return {part[0]: found[part[0]]}


def _plan_of(plan: Plan | None, configuration: str) -> Plan | None:
    if plan is None or not plan.compared:
        return plan
    return next((each for each in plan.each if each.configuration == configuration), None)


def _moment(text: str) -> str | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}" if moment.tzinfo else None


def _refuse_twice(entries: Sequence[Entry]) -> None:
    seen: dict[tuple[str, str], None] = {}
    for entry in (part for one in entries for part in one.parts or (one,)):
        key = (entry.run_id, entry.configuration)
        if key in seen:
            raise UsageError(
                "is named twice, and would be compared with itself",
                place=entry.run_id,
                next_step="name each run once; RUN:CONFIGURATION chooses one of its configurations",
            )
        seen[key] = None
