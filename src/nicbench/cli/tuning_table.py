"""What a run would tune, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from nicbench.cli.output import FORMAT
from nicbench.model.tuning import Outcome, PlannedSetting
from nicbench.model.turn import DEFAULT
from nicbench.tuning.values import shown

_WORDS: Final = {
    Outcome.CHANGED: "would be changed",
    Outcome.ALREADY: "is so already",
    Outcome.SKIPPED: "skipped",
    Outcome.MET: "as expected",
    Outcome.NOT_MET: "not as expected",
    Outcome.FAILED: "cannot be set",
}


def print_tuning(console: Console, settings: Sequence[PlannedSetting]) -> None:
    """Host, item, now, would become; and below, what cannot be, with the reason."""
    if not settings:
        console.print("nothing would be tuned: the bench file has no section `tuning`", soft_wrap=True)
        return
    compared = any(setting.configuration != DEFAULT for setting in settings)
    heads = ("configuration",) if compared else ()
    table = Table(header_style="bold")
    for head in (*heads, "host", "interface", "item", "from", "now", "would become", "outcome"):
        table.add_column(head, overflow="fold")
    for setting in settings:
        own = (setting.configuration,) if compared else ()
        outcome = "not known yet" if setting.outcome is None else _WORDS[setting.outcome]
        asked = setting.asked if setting.asked or setting.outcome is None else None
        cells = (*own, setting.host, setting.device or "-", setting.item, setting.source)
        table.add_row(*map(escape, (*cells, shown(setting.now) or "-", shown(asked) or "-", outcome)))
    console.print(table)
    for setting in settings:
        if setting.reason is not None:
            place = ", ".join(part for part in (setting.host, setting.device) if part)
            console.print(f"{escape(setting.item)} ({escape(place)}): {escape(setting.reason)}", soft_wrap=True)
    refused = sum(setting.outcome is Outcome.FAILED for setting in settings)
    console.print(f"{refused} cannot be set: the run would be refused" if refused else "nothing was changed")


def tuning_document(settings: Sequence[PlannedSetting]) -> dict[str, Any]:
    """The same for programs."""
    return {"format": FORMAT, "settings": [setting.model_dump(mode="json") for setting in settings]}
