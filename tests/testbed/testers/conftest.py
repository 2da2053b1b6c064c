"""A stand-in for a TRex server, and runs of bench files on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.testbed.testers import trex_server


@pytest.fixture
def trex(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The stand-in's module, with a new server."""
    trex_server.SERVER = trex_server.Server()
    address = str(tmp_path / "trex")
    monkeypatch.setenv("FAKE_TREX", address)
    with trex_server.serving(address):
        yield trex_server
