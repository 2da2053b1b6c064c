"""The tables that stand first on the page of a comparison: what is compared, and in what it differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nicbench.compare.entry import Entry, Origin
from nicbench.compare.importance import shorten_apart
from nicbench.compare.settings import Setting
from nicbench.core.turn import DEFAULT
from nicbench.core.units import format_bits_per_s
from nicbench.report.numbers import UNKNOWN

_LONGEST = 90


HEADS: Final = ("Device", "Machine", "Link", "Made", "Runs", "Verdict")
"""The headings of the facts that are told of each entry."""


@dataclass(frozen=True, slots=True)
class EntryRow:
    """One entry; ``told`` maps each of ``HEADS`` to its text, which is a dash where the fact is unknown."""

    number: int
    name: str
    run: str
    told: Mapping[str, str]


def entry_rows(entries: Sequence[Entry]) -> tuple[EntryRow, ...]:
    """Returns a row for each entry, in the order in which the entries are compared."""
    return tuple(
        EntryRow(
            number=number,
            name=entry.name,
            run=entry.run_id if entry.configuration == DEFAULT else f"{entry.run_id}: {entry.configuration}",
            told=dict(zip(HEADS, _texts_of(entry), strict=True)),
        )
        for number, entry in enumerate(entries, 1)
    )


def columns_of(rows: Sequence[EntryRow]) -> tuple[str, ...]:
    """Returns the headings under which entries differ; what all entries share is said once, before the table."""
    return tuple(head for head in HEADS if len({row.told[head] for row in rows}) > 1)


def _texts_of(entry: Entry) -> tuple[str, ...]:
    machine = "; ".join(text for kind in ("processor", "kernel") for text in entry.machines.get(kind, ()))
    made = f"{entry.minute} UTC" if entry.minute else _year(entry)
    return _device(entry), machine or UNKNOWN, _link(entry), made, str(entry.runs), entry.verdict.value


def _year(entry: Entry) -> str:
    return str(entry.imported.year) if entry.imported is not None and entry.imported.year is not None else UNKNOWN


def _device(entry: Entry) -> str:
    if entry.imported is not None:
        return entry.imported.device or (entry.configuration if entry.configuration != DEFAULT else UNKNOWN)
    plan = entry.plan
    kind = plan.dut.get("kind") if plan is not None else None
    parts = [str(kind)] if kind else []
    if entry.origin is not Origin.SIMULATED:
        parts += entry.machines.get("card", ())
    return "; ".join(parts) or UNKNOWN


def _link(entry: Entry) -> str:
    plan = entry.plan
    if plan is None or plan.link_bits_per_s is None:
        return "; ".join(entry.links) or UNKNOWN
    speed = format_bits_per_s(plan.link_bits_per_s)
    return f"{speed}, simulated" if plan.simulated else f"{speed}, nominal" if plan.link_is_nominal else speed


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting that differs. ``texts`` has its value for each entry; ``groups`` has each distinct value with the
    names of the entries that have it.
    """

    setting: str
    where: str
    why: str
    texts: tuple[str, ...]
    groups: tuple[tuple[str, tuple[str, ...]], ...]


def setting_rows(found: Sequence[Setting], names: Sequence[str]) -> tuple[SettingRow, ...]:
    """Returns a row for each setting; ``names`` are those of the entries that disclose any settings."""
    rows = []
    for one in found:
        texts = shorten_apart(one.values, one.path, _LONGEST)
        groups: dict[str, list[str]] = {}
        for text, name in zip(texts, names, strict=True):
            groups.setdefault(text, []).append(name)
        turned = tuple((text, tuple(who)) for text, who in sorted(groups.items(), key=lambda item: -len(item[1])))
        rows.append(SettingRow(one.path, ", ".join(one.places), one.why, texts, turned))
    return tuple(rows)
