"""No code of the report asks which method a result is of: what is special about a method stands in its own file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from nicbench.core.registry import find
from nicbench.methods.base import Method

SOURCE = Path(__file__).parents[2] / "src/nicbench"
ROOMS = ("report", "export", "compare", "cli", "importing/folder.py")


def files() -> Iterator[Path]:
    for room in ROOMS:
        path = SOURCE / room
        yield from (path,) if path.is_file() else sorted(path.rglob("*.py"))


def comparisons_with_a_method(tree: ast.AST) -> Iterator[int]:
    """The lines on which a name or attribute called ``method`` is held against a name that is written there."""
    kinds = set(find("nicbench.methods", Method))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare):
            continue
        sides = [node.left, *node.comparators]
        asks = any(
            (isinstance(side, ast.Attribute) and side.attr == "method")
            or (isinstance(side, ast.Name) and side.id == "method")
            for side in sides
        )
        written = [part.value for side in sides for part in ast.walk(side) if isinstance(part, ast.Constant)]
        constants = any(isinstance(side, ast.Name) and side.id.isupper() for side in sides)
        if asks and (constants or any(isinstance(text, str) and text in kinds for text in written)):
            yield node.lineno


@pytest.mark.parametrize("path", tuple(files()), ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_method_is_known_by_its_name(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert list(comparisons_with_a_method(tree)) == []


@pytest.mark.parametrize(
    "code",
    [
        'result.method == "throughput"',
        'method != "latency"',
        'row.method in ("soak", "reset")',
        "result.method == METHOD",
    ],
)
def test_the_search_finds_what_it_looks_for(code: str) -> None:
    assert list(comparisons_with_a_method(ast.parse(code))) == [1]


def test_two_results_may_be_asked_whether_they_are_of_one_method() -> None:
    assert list(comparisons_with_a_method(ast.parse("one.method != other.method"))) == []
