"""The system configuration table: what a reader must know of each machine, with a column for each machine and a row for
each subject.

It is made from inventory.json alone. A subject about which a machine says nothing stays None; the report says in one
place why. Below it stand the whole inventory and, from tuning.json, what was tuned for the test: each setting before
and during the test, and what came of it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from nicbench.core.described import DescribedPlugin, Facts, Subject
from nicbench.core.registry import find
from nicbench.report.facts import Shapes, host_name, item_shapes, label_of, plain

REASONS: Final = "reasons_null"


@functools.cache
def subjects() -> Mapping[str, tuple[str, Subject]]:
    """Returns the subjects that facts contribute, by label and in order, each with the kind of its fact."""
    brought = [
        (subject, kind)
        for kind, fact in find("nicbench.system.inventory.facts", DescribedPlugin).items()
        for subject in fact.subjects
    ]
    in_order = sorted(brought, key=lambda one: (one[0].place, one[0].label))
    return MappingProxyType({subject.label: (kind, subject) for subject, kind in in_order})


def tell(label: str, facts: Facts) -> str | None:
    """Returns what a machine says of a subject; None where an inventory of another version has another structure."""
    try:
        return subjects()[label][1].tell(facts, plain) or None
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


class SystemRow(NamedTuple):
    """One subject: a text for each machine, None where it does not say; ``declared`` marks what somebody typed."""

    label: str
    texts: tuple[str | None, ...]
    declared: bool = False


class SystemTable(NamedTuple):
    """The table: a column for each machine; ``unknown`` has each subject about which no machine says anything, with the
    reason.
    """

    machines: tuple[str, ...]
    rows: tuple[SystemRow, ...]
    unknown: tuple[tuple[str, str], ...] = ()
    declared_things: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    """What is declared of things other than the machines of the test: a switch, cables."""


def system_table(inventory: Mapping[str, Any], declared: Mapping[str, Any] | None = None) -> SystemTable:
    """Returns the table; machines that are alike in everything share a column."""
    declared = declared or {}
    columns: dict[str, _Column] = {}
    for name, facts in inventory.items():
        known = facts if isinstance(facts, Mapping) else {}
        machine = name.partition(",")[0]
        why = known.get(REASONS)
        said: _Column = (
            tuple(tell(label, known) for label in subjects()),
            _pairs(declared.get(name, declared.get(machine))),
            {str(fact): str(reason) for fact, reason in why.items()} if isinstance(why, Mapping) else {},
        )
        twin = next((other for other, content in columns.items() if content[:2] == said[:2]), None)
        if twin is None:
            columns[_title_of(name)] = said
        else:
            columns = {
                (f"{twin} and {_title_of(name, first=False)}" if key == twin else key): kept
                for key, kept in columns.items()
            }
    # A machine that runs others stands behind all of them.
    columns = dict(sorted(columns.items(), key=lambda column: column[0].startswith("hypervisor")))
    rows = []
    unknown = []
    for number, (label, (kind, _)) in enumerate(subjects().items()):
        texts = tuple(content[0][number] for content in columns.values())
        if any(texts):
            rows.append(SystemRow(label, texts))
        elif columns and subjects()[label][1].is_everywhere:
            unknown.append((label, _reason([content[2] for content in columns.values()], kind)))
    labels = dict.fromkeys(label for content in columns.values() for label, _ in content[1])
    for label in labels:
        rows.append(SystemRow(label, tuple(dict(content[1]).get(label) for content in columns.values()), declared=True))
    machines = {*inventory, *(name.partition(",")[0] for name in inventory)}
    things = tuple((name, _pairs(values)) for name, values in declared.items() if name not in machines)
    return SystemTable(tuple(columns), tuple(rows), tuple(unknown), things)


_Column = tuple[tuple[str | None, ...], tuple[tuple[str, str], ...], dict[str, str]]
"""A machine's column: the texts of all subjects, what is declared, and why facts are unknown."""


def _reason(reasons: Iterable[Mapping[str, str]], kind: str) -> str:
    return next((why[kind] for why in reasons if kind in why), "the machine does not say")


def _pairs(values: Any) -> tuple[tuple[str, str], ...]:
    if isinstance(values, Mapping):
        return tuple((str(name), plain("", value)) for name, value in values.items())
    return (("", plain("", values)),) if values is not None else ()


def _title_of(name: str, *, first: bool = True) -> str:
    """Returns the name of a machine above its column: "DUT", "Tester, fast"; not capitalised where it follows another
    name. Other hosts keep their names.
    """
    return name if name.startswith("tester") and not first else host_name(name)


_OUTCOMES: Final = {
    "changed": "changed",
    "already": "was so already",
    "skipped": "skipped",
    "met": "as asked",
    "not_met": "not as asked",
    "failed": "failed",
}
_UNDONE: Final = "put back"


class TunedRow(NamedTuple):
    """One value of a setting at one place, as texts; a dash where it is not known."""

    place: str
    setting: str
    before: str
    during: str
    outcome: str
    source: str
    changed: bool
    wrong: bool
    """Whether the value was not as asked for during the test, or not restored by the undo."""
    commands: tuple[str, ...] = ()
    """The commands of its item that made it, where they say more than its value."""


def tuned_rows(content: Any) -> tuple[TunedRow, ...]:
    """Returns a row for each value, in the order in which settings were applied; nothing where nothing was tuned."""
    settings = content.get("settings", ()) if isinstance(content, Mapping) else ()
    return tuple(each for row in settings if isinstance(row, Mapping) and row.get("item") for each in _rows(row))


def _rows(row: Mapping[str, Any]) -> Iterator[TunedRow]:
    asked, before, during, after = (_values(row.get(name)) for name in ("asked", "before", "during", "after"))
    outcome = str(row.get("outcome") or "unknown")
    item = str(row["item"])
    shapes = item_shapes(item)
    strayed_names = _names(row.get("strayed"), asked, during)
    left_names = _names(row.get("not_restored"), before, after) if outcome == "changed" else frozenset()
    for name in asked or during or before or (item,):
        strayed, left = name in strayed_names, name in left_names
        words = [_OUTCOMES.get(outcome, outcome)]
        if outcome == "changed" and name in after:
            words.append("not put back" if left else _UNDONE)
        if row.get("reason"):
            words.append(str(row["reason"]))
        yield TunedRow(
            place=_place(row),
            setting=label_of(item) if name == item else f"{label_of(item)}: {label_of(name, shapes.get(name))}",
            before=_text_of_setting(name, before, shapes),
            during=_text_of_setting(name, during or asked, shapes),
            outcome=", ".join(words),
            source=str(row.get("source") or ""),
            changed=outcome == "changed",
            wrong=strayed or left or outcome in ("not_met", "failed"),
            commands=tuple(map(str, row.get("commands") or ())),
        )


def _names(said: Any, one: Mapping[str, Any], other: Mapping[str, Any]) -> frozenset[str]:
    """Returns the values that differ as the run says, which compared them as their item does; a run of an earlier
    version does not say, and its values differ where they are not equal.
    """
    if isinstance(said, list):
        return frozenset(map(str, said))
    return frozenset(name for name in one.keys() & other.keys() if one[name] != other[name])


def _place(row: Mapping[str, Any]) -> str:
    configuration, run = row.get("configuration") or "default", row.get("run") or 1
    host = str(row.get("host") or "")
    parts = ["DUT" if host == "dut" else host, str(row.get("device") or "")]
    parts += [str(configuration)] if configuration != "default" else []
    parts += [f"run {run}"] if run != 1 else []
    return ", ".join(part for part in parts if part)


def _values(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}


def _text_of_setting(name: str, values: Mapping[str, Any], shapes: Shapes) -> str:
    return plain(name, values[name], shapes.get(name)) if name in values else "\u2013"
