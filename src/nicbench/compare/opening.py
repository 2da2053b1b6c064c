"""Opens the entries that a command line names: run folders, their configurations, tags, published data sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from nicbench.compare.entry import Entry
from nicbench.compare.run_differences import read_settings
from nicbench.core.errors import UsageError, suggest
from nicbench.core.plan import Plan
from nicbench.core.result import Result, ResultVerdict, Summary
from nicbench.importing.reference.data_sets import as_run, data_set
from nicbench.store.folder import RunFolder
from nicbench.store.listing import INVENTORY, clean, headline, machines_of, open_run, path_of
from nicbench.store.marks import tags_of

REFERENCE: Final = "reference:"
MOST: Final = 100
"""Maximum number of entries in one comparison; a page with more is not readable."""

Tagged = Callable[[str], Sequence[Path]]
"""A function that returns the folders of the runs with a given tag, oldest first."""


def entries_of(words: Sequence[str], output: Path, tagged: Tagged, *, damaged: bool = False) -> tuple[Entry, ...]:
    """Returns an entry for each configuration of everything that the words name.

    A word is ``[NAME=]RUN[:CONFIGURATION]``, where RUN may be a tag or ``reference:DATA-SET``. Only names that the user
    gives are final; ``name_entries`` chooses the others. UsageError where a word names nothing, or nothing that can be
    compared; HostError where a folder is damaged, unless ``damaged`` allows it.
    """
    found: list[Entry] = []
    for word in words:
        name, wanted = _name_of(word)
        some = list(_open_entries(wanted, output, tagged, damaged=damaged))
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


def _open_entries(word: str, output: Path, tagged: Tagged, *, damaged: bool) -> Iterator[Entry]:
    if word.startswith(REFERENCE):
        yield from _open_data_set(word.removeprefix(REFERENCE))
        return
    for head, configuration in _split_word(word):
        if path_of(head, output).exists():
            yield from open_folder(open_run(head, output, damaged=damaged), configuration, head)
            return
        if paths := tagged(head):
            for path in paths:
                yield from open_folder(open_run(str(path), output, damaged=damaged), configuration, head)
            return
    if "/" in word:
        open_run(word, output)  # raises an error that says what is wrong with the path
    raise UsageError("is neither a run nor a tag", place=repr(word), next_step="`nicbench list` shows runs and tags")


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
                "processor": _processors(folder.read_json(INVENTORY)),
            },
            told={} if summary.imported else read_settings(folder, name),
        )


def _open_data_set(word: str) -> Iterator[Entry]:
    name, _, configuration = word.partition(":")
    chosen = data_set(name)
    made = as_run(chosen)
    plan = made.plan(f"{REFERENCE}{name}")
    for own, results in _choose_configuration(
        _group_by_configuration(made.summary.results), configuration or None, name
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


def _processors(inventory: Any) -> tuple[str, ...]:
    each = inventory.values() if isinstance(inventory, Mapping) else ()
    parts = [facts.get("cpu") for facts in each if isinstance(facts, Mapping)]
    models = [part.get("model") for part in parts if isinstance(part, Mapping)]
    return tuple(dict.fromkeys(clean(model) for model in models if isinstance(model, str)))


def _moment(text: str) -> str | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}" if moment.tzinfo else None


def _refuse_twice(entries: Sequence[Entry]) -> None:
    seen: dict[tuple[str, str], None] = {}
    for entry in entries:
        key = (entry.run_id, entry.configuration)
        if key in seen:
            raise UsageError(
                "is named twice, and would be compared with itself",
                place=entry.run_id,
                next_step="name each run once; RUN:CONFIGURATION chooses one of its configurations",
            )
        seen[key] = None
