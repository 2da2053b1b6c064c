"""Whatever the file: a bench file or a WrongBenchFileError with places inside of it, never another exception."""

from __future__ import annotations

from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from nicbench.bench_file import WrongBenchFileError, parse
from nicbench.core.errors import Problem

EXAMPLE = (Path(__file__).parents[2] / "examples" / "kernel-forward.yaml").read_text()
LINES = EXAMPLE.splitlines()
SCRAPS = st.sampled_from(
    [*":-[]{},&*!|>'\"%@`#?\t\n ~<", "<<", "&a ", "*a", "---", "1e9", "null", "- ", ": ", "0x", "\u2028"]
)


def problems_of(content: bytes) -> tuple[Problem, ...]:
    try:
        parse(content, Path("b.yaml"))
    except WrongBenchFileError as error:
        return error.problems
    return ()


def understood_or_refused(content: bytes) -> None:
    lines = content.count(b"\n") + content.count(b"\r") + 2
    for problem in problems_of(content):
        assert 1 <= problem.position.line <= lines
        assert problem.position.column >= 1
        assert problem.message


@settings(max_examples=150)
@given(st.binary(max_size=200))
@example(b"\xef\xbb\xbf")
@example(b"\r")
@example(b"? ")
@example(b"- - -\n- ? : ")
def test_any_bytes(content: bytes) -> None:
    understood_or_refused(content)


@settings(max_examples=150)
@given(st.lists(SCRAPS | st.sampled_from(LINES), max_size=30).map("".join))
def test_scraps_of_yaml(text: str) -> None:
    understood_or_refused(text.encode())


@settings(max_examples=100)
@given(st.integers(0, len(EXAMPLE) - 1), st.integers(0, 40), SCRAPS)
def test_an_example_with_a_piece_replaced(start: int, length: int, scrap: str) -> None:
    understood_or_refused((EXAMPLE[:start] + scrap + EXAMPLE[start + length :]).encode())
