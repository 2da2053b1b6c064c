"""Reads bench files from text."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nicbench.bench_file import BenchFile, parse

Read = Callable[[str | bytes], BenchFile]


@pytest.fixture
def read() -> Read:
    """Reads a bench file called ``b.yaml`` from its text."""

    def from_text(content: str | bytes) -> BenchFile:
        return parse(content.encode() if isinstance(content, str) else content, Path("b.yaml"))

    return from_text
