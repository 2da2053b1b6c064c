"""What the program itself has the words for: steps of methods, tuning items, profiles, columns of exports. Pure.

A tuning item is described by the docstring of its class, a step of a profile by its reason, a column by its ``about``;
the steps of a method are those that its report prints.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Iterator

from nicbench.core.registry import find
from nicbench.export.tables import OF_RESULT, OF_VALUE
from nicbench.methods.base import Method
from nicbench.tuning.items.base import DeviceOptions, Item
from nicbench.tuning.tune import PROFILES
from nicbench_docs.models import Key, keys_of

ITEM_HEADS = ("item", "of", "what it is", "options")
STEP_HEADS = ("item", "why")
COLUMN_HEADS = ("column", "holds", "meaning")
_SCOPES = {"device": "interface"}
_CELLS = {"integer": "whole number", "flag": "`true` or `false`"}


def item_rows() -> Iterator[tuple[str, str, str, str]]:
    """Yields each tuning item with its scope, what it and its options are by their docstrings, and its options."""
    items = find("nicbench.tuning.items", Item)
    shared = {options for options, number in Counter(item.Options for item in items.values()).items() if number > 1}
    for kind, item in sorted(items.items()):
        meaning = (inspect.getdoc(item) or "").partition("\n\n")[0]
        if item.Options not in shared:
            meaning += f" {inspect.getdoc(item.Options) or ''}"
        options = [_option(key) for key in keys_of(item.Options) if key.name not in DeviceOptions.model_fields]
        yield f"`{kind}`", _SCOPES.get(item.scope, item.scope), _in_markdown(meaning), "<br>".join(options)


def step_rows(profile: str) -> Iterator[tuple[str, str]]:
    """Yields each step of a tuning profile, and why it is there."""
    for step in PROFILES[profile]:
        options = step.options.get("values", step.options)
        if options == {"on": False}:
            yield f"`{step.item}: false`", step.why
        else:
            yield (
                f"`{step.item}`: {', '.join(f'`{name}: {_in_yaml(value)}`' for name, value in options.items())}",
                step.why,
            )


def column_rows(table: str) -> Iterator[tuple[str, str, str]]:
    """Yields the fixed columns of an exported table: ``results``, or those that ``values`` has besides."""
    for column in {"results": OF_RESULT, "values": OF_VALUE}[table]:
        yield f"`{column.name}`", _CELLS.get(column.kind, column.kind), column.about


def steps_of(kind: str) -> str:
    """Returns how a method measures, in paragraphs, without references to pages of this project."""
    text = find("nicbench.methods", Method)[kind].procedure()
    text = re.sub(r"(?<=\?) \(docs/[^)]*\)\.| \(docs/[^)]*\)", "", text)
    return re.sub(r" (?=(?:Steps|Concluded|Verified|Deviation)\b)", "\n\n", text)


def _option(key: Key) -> str:
    default = "" if key.default in ("required", "–") else f"; {key.default}"
    return f"`{key.name}`: {key.accepts}{default}"


def _in_yaml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _in_markdown(text: str) -> str:
    return re.sub(r"``([^`]+)``", r"`\1`", " ".join(text.split()))
