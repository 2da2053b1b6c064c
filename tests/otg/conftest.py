"""One server for all tests that leave it usable: a start and a report take seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .served import Served, serving


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("serve")) as served:
        yield served
