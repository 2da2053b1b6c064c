"""A bench file for `nicbench serve`: what clients send takes the place of its tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nicbench.bench_file.models import BenchFile
from nicbench.bench_file.problems import Problem, WrongBenchFileError, quote
from nicbench.bench_file.reader import Node, read

_TESTS: Final = b"tests: [{name: transmissions, method: transmission}]"


def serve_instead(root: Node, path: str) -> None:
    """Puts what a session measures in the place of the file's tests. WrongBenchFileError where it compares several."""
    if root.entries is None:
        return
    if "configurations" in root.entries:
        step = "remove `configurations`: a session has one"
        position = root.position_of_key(("configurations",))
        raise WrongBenchFileError(path, [Problem(position, "`configurations` cannot be served", step)])
    served = read(_TESTS, path)
    assert served.entries is not None  # noqa: S101 - it is written above
    root.entries["tests"] = served.entries["tests"]
    root.key_positions.setdefault("tests", root.position)


def has_tests(bench: BenchFile) -> bool:
    """Whether the file that is served has tests, which are not made."""
    return "tests" in (read(bench.source.encode(), str(bench.path)).entries or {})


def check_methods(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields tests of a method that is measured only for clients."""
    for index, test in enumerate(bench.tests):
        if test.plugin.of_sessions:
            message = f"{quote(test.method_kind)} is measured for clients of `nicbench serve`, not by a test"
            step = f"remove the test, or `nicbench serve {bench.path}`"
            yield Problem(root.position_of(("tests", index, "method")), message, step)
