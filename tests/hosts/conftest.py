"""A real sshd for the tests of hosts; it listens nowhere, unless a test makes a namespace for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from nicbench.hosts import close_connections, ssh_lease

from .sshd_server import SSHD, Server, make_server_folder


@pytest.fixture(scope="session")
def sshd_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if SSHD is None:
        pytest.skip("sshd is not installed: apt-get install openssh-server")
    return make_server_folder(tmp_path_factory.mktemp("sshd"))


@pytest_asyncio.fixture
async def sshd(sshd_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Server]:
    """Every connection is closed afterwards, without waiting for the keeper, which takes a second to end."""
    monkeypatch.setenv("HOME", str(tmp_path))  # the developer's own ~/.ssh has no say
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    yield Server(sshd_folder)
    monkeypatch.setattr(ssh_lease, "_KEEPER_END_S", 0.0)
    await close_connections()
    await asyncio.sleep(0)
