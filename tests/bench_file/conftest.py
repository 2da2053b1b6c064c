"""Reads bench files from text."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nicbench.bench_file import BenchFile, WrongBenchFileError, parse

Read = Callable[[str | bytes], BenchFile]
Expected = tuple[int, int, str, str | None]
"""Line and column of a problem, part of its message, and part of its next step."""


@pytest.fixture
def read() -> Read:
    """Reads a bench file called ``b.yaml`` from its text."""

    def from_text(content: str | bytes) -> BenchFile:
        return parse(content.encode() if isinstance(content, str) else content, Path("b.yaml"))

    return from_text


def assert_refused(text: str, *expected: Expected, and_more: bool = False) -> None:
    """These are the problems of a wrong bench file, in its order: all of them, or the first, from which more follow."""
    with pytest.raises(WrongBenchFileError) as refused:
        parse(text.encode(), Path("b.yaml"))
    found = refused.value.problems[: len(expected) if and_more else None]
    assert [(one.position.line, one.position.column) for one in found] == [one[:2] for one in expected], found
    for problem, (_, _, message, step) in zip(found, expected, strict=True):
        assert message in problem.message
        assert step is None or step in (problem.next_step or "")
