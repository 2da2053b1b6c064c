"""What to add to ``nicbench import`` where a table does not say enough: suggestions, which nobody follows unasked.

A column that only holds speeds of links is the link; one of texts that names a device, or that tells apart rows with
the same frame size, is what is compared; any other unknown column is left out. What cannot be guessed stands in
capitals, to be filled in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from nicbench.core.errors import Problem, UsageError
from nicbench.core.table import ImportTable
from nicbench.importing.cells import Sheet
from nicbench.importing.columns import LINK, Assignment, ImportOptions, assign, nearest_column, plain
from nicbench.importing.units import parse_link
from nicbench.methods.base import Method

_DEVICES: Final = frozenset({"card", "device", "nic", "adapter", "dut", "product", "model", "configuration"})
"""Words of a heading whose column names what was measured."""


def with_flags(assignment: Assignment, sheet: Sheet, table: ImportTable) -> list[Problem]:
    """The problems of an assignment, those of unknown columns with the option that would settle each."""
    places = {head.position: index for index, head in reversed(list(enumerate(sheet.heads)))}
    known = [one.index for one in assignment.columns]
    keys = [one.index for one in assignment.columns if one.column.tells_apart]
    return [
        problem
        if problem.flags or places[problem.position] in known
        else replace(problem, flags=_flags_for_unknown(sheet, places[problem.position], keys, table))
        for problem in assignment.problems
    ]


def _flags_for_unknown(sheet: Sheet, index: int, keys: Sequence[int], table: ImportTable) -> tuple[str, ...]:
    """``keys`` are the columns that tell rows apart: what is compared repeats their values. A column of numbers is
    never taken for another one: a name that is alike is no reason to import a drop rate as a frame rate. It is to be
    named then.
    """
    head = sheet.heads[index].text
    texts = [text for row in sheet.rows if (text := row[index].text)]
    if texts and all(map(_is_link, texts)):
        return "--column", f"{head}={LINK.name}"
    if any(not _is_number(text) for text in texts):
        if _DEVICES.intersection(plain(head).split()):
            return "--configuration", head
        points = [tuple(row[key].text for key in keys) for row in sheet.rows]
        if len(set(points)) < len(points) and len(set(texts)) < len(texts):
            return "--configuration", head
        return "--ignore", head
    if nearest_column(head, table.columns) is not None:
        return "--column", f"{head}=NAME"
    return "--ignore", head


def likely_method(heads: Sheet, methods: Mapping[str, type[Method]]) -> str | None:
    """The method with the most columns of these headings, which has what it needs; None where none fits."""
    best: tuple[tuple[int, bool], str] | None = None
    for name, method in methods.items():
        table = method.imports()
        if table is None:
            continue
        try:
            found = assign(heads, table, ImportOptions())
        except UsageError:
            continue
        own = [one for one in found.columns if one.column is not LINK]
        values = {one.column.value for one in own}
        fits = bool(values.intersection(table.any_of)) and all(
            column.value in values for column in table.columns if column.is_required
        )
        rank = (len(own), name == "throughput")  # of equals, that which most tables are of
        if fits and (best is None or rank > best[0]):
            best = (rank, name)
    return best[1] if best else None


def _is_link(text: str) -> bool:
    try:
        parse_link(text)
    except ValueError:
        return False
    return True


def _is_number(text: str) -> bool:
    cleaned = plain(text).replace(" ", "").removesuffix("percent")
    try:
        return math.isfinite(float(cleaned))
    except ValueError:
        return False
