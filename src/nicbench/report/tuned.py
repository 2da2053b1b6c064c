"""What was tuned for the test, from tuning.json: each setting before and during, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from nicbench.report.declared import Shapes, item_shapes
from nicbench.report.facts import label_of, plain

_OUTCOMES: Final = {
    "changed": "changed",
    "already": "was so already",
    "skipped": "skipped",
    "met": "as asked",
    "not_met": "not as asked",
    "failed": "failed",
}
_UNDONE: Final = "put back"


@dataclass(frozen=True, slots=True)
class TunedRow:
    """One value of a setting at one place; texts, a dash where it is not known."""

    place: str
    setting: str
    before: str
    during: str
    outcome: str
    source: str
    changed: bool
    wrong: bool
    """Otherwise than it was asked for, during the test or after the undo."""


def tuned_rows(content: Any) -> tuple[TunedRow, ...]:
    """A row for each value, in the order in which settings were applied; nothing where nothing was tuned."""
    settings = content.get("settings", ()) if isinstance(content, Mapping) else ()
    return tuple(each for row in settings if isinstance(row, Mapping) and row.get("item") for each in _rows(row))


def _rows(row: Mapping[str, Any]) -> Iterator[TunedRow]:
    asked, before, during, after = (_values(row.get(name)) for name in ("asked", "before", "during", "after"))
    outcome = str(row.get("outcome") or "unknown")
    item = str(row["item"])
    shapes = item_shapes(item)
    for name in asked or during or before or (item,):
        strayed = name in asked and name in during and asked[name] != during[name]
        left = outcome == "changed" and name in after and name in before and after[name] != before[name]
        words = [_OUTCOMES.get(outcome, outcome)]
        if outcome == "changed" and name in after:
            words.append("not put back" if left else _UNDONE)
        if row.get("reason"):
            words.append(str(row["reason"]))
        yield TunedRow(
            place=_place(row),
            setting=label_of(item) if name == item else f"{label_of(item)}: {label_of(name, shapes.get(name))}",
            before=_text(name, before, shapes),
            during=_text(name, during or asked, shapes),
            outcome=", ".join(words),
            source=str(row.get("source") or ""),
            changed=outcome == "changed",
            wrong=strayed or left or outcome in ("not_met", "failed"),
        )


def _place(row: Mapping[str, Any]) -> str:
    configuration, run = row.get("configuration") or "default", row.get("run") or 1
    host = str(row.get("host") or "")
    parts = ["DUT" if host == "dut" else host, str(row.get("device") or "")]
    parts += [str(configuration)] if configuration != "default" else []
    parts += [f"run {run}"] if run != 1 else []
    return ", ".join(part for part in parts if part)


def _values(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}


def _text(name: str, values: Mapping[str, Any], shapes: Shapes) -> str:
    return plain(name, values[name], shapes.get(name)) if name in values else "\u2013"
