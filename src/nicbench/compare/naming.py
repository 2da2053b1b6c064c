"""The names under which entries are compared: each tells its entry from the others, as briefly as it can."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from nicbench.compare.entry import Entry
from nicbench.compare.importance import last_name_of, shorten
from nicbench.compare.settings import compare_settings
from nicbench.core.turn import DEFAULT
from nicbench.store.listing import clean

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

    Paths with the same last name and the same values are one setting: a driver tells again what it was told.
    """
    of_title: dict[str, list[int]] = {}
    for place, entry in enumerate(entries):
        if entry.configuration == DEFAULT:
            of_title.setdefault(entry.title, []).append(place)
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
