"""Namespaces and an undo stack for the lab tests of DUTs."""

from __future__ import annotations

import secrets
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from lab import Wires, wires

from nicbench.tuning.stack import UndoStack


@pytest.fixture
def lab() -> Iterator[Wires]:
    with wires() as made:
        yield made


@pytest.fixture
async def changes(tmp_path: Path) -> AsyncIterator[UndoStack]:
    """What a test leaves undone is undone here."""
    stack = UndoStack(f"test-{secrets.token_hex(3)}", None, runtime=tmp_path)
    yield stack
    await stack.undo_all()
