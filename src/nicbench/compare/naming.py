"""The names under which entries are compared: each tells its entry from the others, as briefly as it can."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from nicbench.compare.entry import Entry
from nicbench.compare.importance import shorten
from nicbench.compare.settings import compare_settings
from nicbench.core.turn import DEFAULT
from nicbench.store.headline import clean

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
    return tags[0] if tags else _only_setting(entry, entries) or entry.minute or entry.title[:LONGEST]


def _only_setting(entry: Entry, entries: Sequence[Entry]) -> str | None:
    """Returns the one setting that tells an entry from all others of its title; None where there is none.

    Settings that have the same values count as one: a driver tells again what it was told.
    """
    alike = [other for other in entries if other.title == entry.title and other.configuration == DEFAULT]
    if entry not in alike or not all(other.told for other in alike):
        return None
    differing = compare_settings(alike).main
    if not differing or any(one.values != differing[0].values for one in differing):
        return None
    first = differing[0]
    texts = [clean(shorten(value, first.path)) for value in first.values if isinstance(value, str | int | float)]
    if len(set(texts)) < len(alike) or max(map(len, texts)) > _LONGEST_VALUE:
        return None
    return f"{clean(first.path.rpartition('.')[2].replace('_', ' '))} {texts[alike.index(entry)]}"


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
