"""The directives of the pages: each writes a table in Markdown, which the page's own parser reads."""

from __future__ import annotations

import json
import re
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from nicbench.core.judging import Thresholds
from nicbench_docs.commands import help_of, options_of, usage_of
from nicbench_docs.models import keys_of, model_of
from nicbench_docs.program import COLUMN_HEADS, ITEM_HEADS, STEP_HEADS, column_rows, item_rows, step_rows, steps_of
from nicbench_docs.schemas import rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from docutils import nodes


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Writes a table in Markdown."""
    lines = [list(heads)]
    lines += [["---"] * len(lines[0]), *map(list, rows)]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


class _FromTheProgram(SphinxDirective):
    """Parses Markdown that was made from the program; the page is made anew whenever that changes."""

    has_content = False
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()
        return list(self.parse_text_to_nodes(self.markdown(self.arguments[0])))

    def markdown(self, name: str) -> str:
        raise NotImplementedError


class Keys(_FromTheProgram):
    """``{keys} testbed.duts/netem``: the keys of a kind, or of a model by ``module:Class``; of a method its steps, too.

    ``own`` leaves out what it inherits, ``only`` and ``without`` choose keys by name.
    """

    option_spec: ClassVar[dict[str, Callable[[str], Any]] | None] = {
        "own": directives.flag,
        "only": str.split,
        "without": str.split,
    }

    def markdown(self, name: str) -> str:
        only, without = self.options.get("only"), self.options.get("without", ())
        rows = [
            (f"`{key.name}`", f"{key.accepts}<br>{_default(key.default)}", key.meaning)
            for key in keys_of(model_of(name))
            if not ("own" in self.options and key.is_inherited)
            and (only is None or key.name in only)
            and key.name not in without
        ]
        steps = steps_of(name.removeprefix("methods/")) if name.startswith("methods/") else ""
        return f"{steps}\n\n{table(('key', 'value', 'meaning'), rows)}"


def _default(text: str) -> str:
    return "**required**" if text == "required" else "optional" if text == "–" else f"default: {text}"


class ThresholdTable(_FromTheProgram):
    """``{thresholds} all``: the thresholds of verdicts with their defaults and reasons."""

    def markdown(self, name: str) -> str:
        rows = []
        for key, field in Thresholds.model_fields.items():
            extra = field.json_schema_extra
            unit = extra["unit"] if isinstance(extra, dict) else ""
            rows.append((f"`{key}`", f"{field.default:g}", str(unit), str(field.description)))
        return table(("threshold", "default", "unit", "what exceeds it"), rows)


class Command(_FromTheProgram):
    """``{command} run``: how a command is called, and its arguments and options."""

    final_argument_whitespace = True

    def markdown(self, name: str) -> str:
        rows = table(("argument or option", "meaning"), options_of(name))
        return f"{help_of(name)}\n\n```text\n{usage_of(name)}\n```\n\n{rows}"


class SchemaTable(_FromTheProgram):
    """``{schema} docs/summary.schema.json``: the members of a JSON document."""

    def markdown(self, name: str) -> str:
        path = Path(self.env.srcdir) / name
        self.env.note_dependency(str(path))
        return table(("member", "type", "meaning"), rows_of(json.loads(path.read_text())))


class Examples(_FromTheProgram):
    """``{examples} all``: the bench files of ``examples``, each with the first sentence of its comment."""

    def markdown(self, name: str) -> str:
        up = "../" * self.env.docname.count("/")
        rows = []
        for path in sorted((Path(self.env.srcdir) / "examples").glob("*.yaml")):
            self.env.note_dependency(str(path))
            comment = takewhile(lambda line: line.strip("# "), path.read_text().splitlines())
            sentence = re.split(r"(?<=[.?:])\s", " ".join(line.lstrip("# ") for line in comment), maxsplit=1)[0]
            rows.append((f"[{path.stem}]({up}examples/{path.name})", sentence.rstrip(":.")))
        return table(("bench file", "what it measures"), rows)


class TuningItems(_FromTheProgram):
    """``{items} all``: the items of host tuning with their options."""

    def markdown(self, name: str) -> str:
        return table(ITEM_HEADS, item_rows())


class TuningProfile(_FromTheProgram):
    """``{profile} dpdk``: the steps of a profile of host tuning, and why each is there."""

    def markdown(self, name: str) -> str:
        return table(STEP_HEADS, step_rows(name))


class ExportColumns(_FromTheProgram):
    """``{columns} values``: the columns of an exported table."""

    def markdown(self, name: str) -> str:
        return table(COLUMN_HEADS, column_rows(name))


DIRECTIVES = {
    "columns": ExportColumns,
    "command": Command,
    "examples": Examples,
    "items": TuningItems,
    "keys": Keys,
    "profile": TuningProfile,
    "schema": SchemaTable,
    "thresholds": ThresholdTable,
}
"""Every directive by its name in the pages."""
