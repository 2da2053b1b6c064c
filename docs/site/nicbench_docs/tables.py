"""Writes the tables of ``docs/tables`` from the program (keys, commands, columns, thresholds, members), and the schema
of summary.json.

In those files a comment says what stands below it, until the next heading or comment:

- ``keys testbed.duts/netem``: the keys of a kind, or of a model by ``module:Class``; of a method its steps, too.
  ``own`` behind it leaves out what the model inherits.
- ``commands``: every command of the program under a heading of its own.
- ``profile NAME``: the steps of a profile of host tuning; ``items``: its items.
- ``columns TABLE``: the columns of an exported table; ``schema PATH``: the members of a JSON document.
- ``thresholds`` lists the thresholds of verdicts, ``examples`` the bench files in ``examples``, ``cards`` the proofs in
  ``proofs``, ``items_of STUDY`` what a published study has, from ``docs/studies/items.csv``.
"""

from __future__ import annotations

import json
import re
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from nicbench.core.judging import Thresholds
from nicbench.core.proof import Outcome, Proof
from nicbench_docs.commands import commands, help_of, options_of, usage_of
from nicbench_docs.items import items
from nicbench_docs.models import keys_of, model_of
from nicbench_docs.program import COLUMN_HEADS, ITEM_HEADS, STEP_HEADS, column_rows, item_rows, step_rows, steps_of
from nicbench_docs.schemas import rows_of, summary_schema_text

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "docs/tables"
SCHEMA = ROOT / "docs/summary.schema.json"
MARK = re.compile(
    r"^<!-- (keys|commands|profile|items_of|items|columns|schema|thresholds|examples|cards)\b ?(.*?) -->\n",
    re.MULTILINE,
)


def written(text: str) -> str:
    """Returns the text of a file of tables with each of its tables as the program has it now."""
    head, *parts = re.split(r"(?=^<!-- [a-z])", text, flags=re.MULTILINE)
    made = [head]
    for part in parts:
        mark = MARK.match(part)
        if mark is None:
            made.append(part)
            continue
        rest = re.search(r"^#+ ", part, re.MULTILINE) if mark[1] != "commands" else None
        made.append(f"{mark[0]}\n{_WRITERS[mark[1]](mark[2])}\n{part[rest.start() :] if rest else ''}")
    return "".join(made).rstrip("\n") + "\n"


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(heads)]
    lines += [["---"] * len(lines[0]), *map(list, rows)]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def _keys(name: str) -> str:
    name, _, own = name.partition(" ")
    rows = [
        (f"`{key.name}`", f"{key.accepts}<br>{_default(key.default)}", key.meaning)
        for key in keys_of(model_of(name))
        if not (own and key.is_inherited)
    ]
    steps = f"{steps_of(name.removeprefix('methods/'))}\n\n" if name.startswith("methods/") else ""
    return steps + _table(("key", "value", "meaning"), rows)


def _default(text: str) -> str:
    return "**required**" if text == "required" else "optional" if text == "–" else f"default: {text}"


def _commands(_: str) -> str:
    return "\n".join(
        f"## `nicbench {name}`\n\n{help_of(name)}\n\n```text\n{usage_of(name)}\n```\n\n"
        + _table(("argument or option", "meaning"), options_of(name))
        for name in commands()
    )


def _thresholds(_: str) -> str:
    rows = []
    for key, field in Thresholds.model_fields.items():
        extra = field.json_schema_extra
        unit = extra["unit"] if isinstance(extra, dict) else ""
        rows.append((f"`{key}`", f"{field.default:g}", str(unit), str(field.description)))
    return _table(("threshold", "default", "unit", "what exceeds it"), rows)


def _examples(_: str) -> str:
    rows = []
    for path in sorted((ROOT / "examples").glob("*.yaml")):
        comment = takewhile(lambda line: line.strip("# "), path.read_text().splitlines())
        sentence = re.split(r"(?<=[.?:])\s", " ".join(line.lstrip("# ") for line in comment), maxsplit=1)[0]
        rows.append((f"[{path.stem}](../../examples/{path.name})", sentence.rstrip(":.")))
    return _table(("bench file", "what it measures"), rows)


def _cards(_: str) -> str:
    rows = []
    for path in sorted((ROOT / "proofs").glob("*.json")):
        proof = Proof.model_validate_json(path.read_bytes())
        port = proof.ports[0]
        passed = [each for each in proof.with_outcome(Outcome.PROVEN) if each.name.startswith("drivers.")]
        drivers = [f"`{name}`" for each in passed if not (name := each.name.partition(".")[2]).startswith("native")]
        counts = ", ".join(f"{len(proof.with_outcome(each))} {each.words}" for each in Outcome)
        failures = [f"`{each.name}`: {each.seen}" for each in proof.with_outcome(Outcome.FAILED)]
        where = f"Linux {proof.kernel}{', in a virtual machine' if proof.in_virtual_machine else ''}"
        card = (
            f"{path.stem}<br>{port.card or 'no PCI card'}, driver {port.driver}, firmware {port.firmware or 'unknown'}"
        )
        rows.append((card, where, ", ".join(drivers) or "none", counts, "<br>".join(failures) or "none"))
    return _table(("card", "kernel", "frames pass by", "findings", "failed"), rows)


def _items_of(study: str) -> str:
    rows = []
    for item in items():
        if item.study == study:
            commands = "<br>".join(f"`{each}`" for each in item.commands) + (f" ({item.note})" if item.note else "")
            rows.append((str(item.number), item.published, commands, f"`{item.test}`", item.in_the_report))
    return _table(("no.", "published", "commands", "test", "in the report"), rows)


_WRITERS = {
    "cards": _cards,
    "columns": lambda name: _table(COLUMN_HEADS, column_rows(name)),
    "commands": _commands,
    "examples": _examples,
    "items_of": _items_of,
    "items": lambda _: _table(ITEM_HEADS, item_rows()),
    "keys": _keys,
    "profile": lambda name: _table(STEP_HEADS, step_rows(name)),
    "schema": lambda name: _table(("member", "type", "meaning"), rows_of(json.loads((ROOT / name).read_text()))),
    "thresholds": _thresholds,
}

if __name__ == "__main__":
    SCHEMA.write_text(summary_schema_text())
    for path in sorted(FOLDER.glob("*.markdown")):
        path.write_text(written(path.read_text()))
