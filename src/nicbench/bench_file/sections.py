"""Sections with a ``kind``: the registry finds the plug-in, and its own ``Options`` validate the rest of the section.

Nothing here names a lab, a DUT, a host or a method: a new file beside their ``base.py`` is a new kind in bench files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from nicbench.bench_file.problems import Problem, quote, suggest
from nicbench.bench_file.reader import Node
from nicbench.bench_file.wording import Step, list_problems
from nicbench.core.base import Frozen
from nicbench.core.quantity import UNITS_REQUIRED
from nicbench.core.registry import find

Model = TypeVar("Model", bound=BaseModel)


class Reading:
    """The reading of one bench file: its tree, and the problems found so far."""

    def __init__(self, root: Node) -> None:
        self.root = root
        self.problems: list[Problem] = []

    def validate(
        self, model: type[Model], content: Mapping[str, Any], path: tuple[Step, ...], beside: Iterable[str] = ()
    ) -> Model | None:
        """Validates ``content``, found at ``path``, as ``model``; None after noting the problems.

        ``beside`` names keys of the section that ``content`` leaves out.
        """
        try:
            # As JSON and strictly: a list is a tuple, but text is no number and a number is no text.
            return model.model_validate_json(json.dumps(content), strict=True, context={UNITS_REQUIRED: True})
        except ValidationError as error:
            self.problems += list_problems(error, self.root, path, model, tuple(beside))
            return None

    def choose(
        self,
        path: tuple[Step, ...],
        package: str,
        base: type[Any],
        *,
        key: str = "kind",
        beside: Iterable[str] = (),
        default: str | None = None,
    ) -> tuple[type[Any], Frozen] | None:
        """The plug-in that the section at ``path`` chooses by ``key``, and its options; None after noting the problems.

        ``beside`` are further keys of the section, not the plug-in's. A kind may stand alone (``lab: simulated``):
        it is a section without options. ``default`` is the kind of a section that names none.
        """
        node = self.root.find(path)
        kind_node = node.child(key) if node.entries is not None else node
        if kind_node is None and default is None:
            self.problems.append(_report_missing_kind(node, key))
            return None
        kinds = find(package, base)
        kind = kind_node.value if kind_node is not None else default
        if kind_node is not None and (not isinstance(kind, str) or kind not in kinds):
            where = ".".join(str(step) for step in path if isinstance(step, str))
            message = f"there is no {where} of the {key} {quote(kind_node.plain())}"
            self.problems.append(Problem(kind_node.position, message, suggest(str(kind), list(kinds), key)))
            return None
        taken = {key, *beside}
        model: type[Frozen] = kinds[str(kind)].Options
        content = {name: child.plain() for name, child in (node.entries or {}).items() if name not in taken}
        options = self.validate(model, content, path, beside=taken)
        return None if options is None else (kinds[str(kind)], options)


def _report_missing_kind(node: Node, key: str) -> Problem:
    """The problem of a section whose key ``key`` is missing, or only misspelt."""
    close = get_close_matches(key, node.key_positions, n=1)
    if close:
        return Problem(node.key_positions[close[0]], f"unknown key {quote(close[0])}", f"did you mean `{key}`?")
    return Problem(node.position, f"{quote(key)} is missing", f"add `{key}: ...`")
