"""A stand-in for TRex, and runs of bench files on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nicbench.testbed.testers._trex_server import load_api

FAKE = Path(__file__).parent / "fake_trex"


@pytest.fixture
def trex() -> Iterator[Any]:
    """The stand-in's module, with a new server; another installation may be loaded afterwards."""
    api: Any = load_api(str(FAKE))
    api.SERVER = api.Server()
    yield api
    api.SERVER = api.Server()
