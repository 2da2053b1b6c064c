"""A tester's headings in the words of a method: what both formats of testers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nicbench.errors import UsageError
from nicbench.importing.cells import Cell, Sheet
from nicbench.problems import Problem, WrongFileError

Names = Mapping[str, Mapping[str, str]]
"""By method: a heading of the tester, and what the method calls it, with its unit."""


def renamed(sheet: Sheet, path: str, names: Names, method: str, tester: str, key: Callable[[str], str] = str) -> Sheet:
    """The columns that the method takes; the others are left out. ``key`` makes the headings of versions alike."""
    if method not in names:
        raise UsageError(
            f"nothing is known of how {tester} exports `{method}`",
            place="--from",
            next_step=f"known are {', '.join(f'`{name}`' for name in names)}; or rename columns and use --from plain",
        )
    wanted = names[method]
    taken: dict[str, tuple[int, Cell]] = {}
    for number, head in enumerate(sheet.heads):
        name = wanted.get(key(head.text))
        if name is not None and name not in taken:
            taken[name] = (number, head)
    missing = "frame size" not in taken
    if missing or len(taken) < 2:
        known = ", ".join(f"`{name}`" for name in wanted)
        problem = Problem(
            sheet.heads[0].position,
            f"this is no table of {tester} for `{method}`: "
            + ("it has no frame size" if missing else "nothing but the frame size is known of it"),
            f"the headings that are known: {known}; is it --from plain?",
        )
        raise WrongFileError(path, [problem])
    used = {number for number, _ in taken.values()}
    left_out = tuple(head.text for number, head in enumerate(sheet.heads) if number not in used)
    heads = tuple(Cell(name, head.position) for name, (_, head) in taken.items())
    rows = tuple(tuple(row[number] for number, _ in taken.values()) for row in sheet.rows)
    return Sheet(heads, rows, (*sheet.ignored, *left_out))
