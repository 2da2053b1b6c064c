"""What was tuned for the test, from tuning.json: each setting before and during, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

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
    """One setting at one place; texts, a dash where it is not known."""

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
    """Rows in the order in which they were applied; nothing where nothing was tuned."""
    settings = content.get("settings", ()) if isinstance(content, Mapping) else ()
    return tuple(_row(row) for row in settings if isinstance(row, Mapping) and row.get("item"))


def _row(row: Mapping[str, Any]) -> TunedRow:
    asked, before, during, after = (_values(row.get(name)) for name in ("asked", "before", "during", "after"))
    wanted = asked or during
    was = {name: before[name] for name in wanted if name in before}
    outcome = str(row.get("outcome") or "unknown")
    strayed = bool(asked and during) and any(during.get(name) != value for name, value in asked.items())
    left = (
        outcome == "changed"
        and bool(after)
        and any(after[name] != value for name, value in was.items() if name in after)
    )
    words = [_OUTCOMES.get(outcome, outcome)]
    if outcome == "changed" and after:
        words.append("not put back" if left else _UNDONE)
    if row.get("reason"):
        words.append(str(row["reason"]))
    configuration, run = row.get("configuration") or "default", row.get("run") or 1
    whose = [str(row.get("host") or ""), str(row.get("device") or "")]
    whose += [str(configuration)] if configuration != "default" else []
    whose += [f"run {run}"] if run != 1 else []
    return TunedRow(
        place=", ".join(part for part in whose if part),
        setting=label_of(str(row["item"])),
        before=_shown(was or before),
        during=_shown(during or asked),
        outcome=", ".join(words),
        source=str(row.get("source") or ""),
        changed=outcome == "changed",
        wrong=strayed or left or outcome in ("not_met", "failed"),
    )


def _values(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}


def _shown(values: Mapping[str, Any]) -> str:
    if not values:
        return "\u2013"
    if len(values) == 1:
        ((name, value),) = values.items()
        return plain(name, value)
    return ", ".join(f"{label_of(name)} {plain(name, value)}" for name, value in values.items())
