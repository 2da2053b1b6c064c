"""A real sshd for the tests of hosts; it listens nowhere, unless a test makes a namespace for it."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from nicbench.hosts import close_connections

from .sshd_server import SSHD, Server


@pytest.fixture(scope="session")
def sshd_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if SSHD is None:
        pytest.skip("sshd is not installed: apt-get install openssh-server")
    folder = tmp_path_factory.mktemp("sshd")
    for name in ("user", "stranger", "host", "other_host"):
        subprocess.run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", folder / name), check=True)
    (folder / "authorized_keys").write_text((folder / "user.pub").read_text())
    (folder / "known_hosts").write_text(f"* {(folder / 'host.pub').read_text()}")
    (folder / "sshd_config").write_text(
        f"HostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized_keys\nStrictModes no\nUsePAM no\n"
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\nPidFile none\n"
        f"SetEnv HOME={folder}\n"  # not the startup files of whoever runs the tests
    )
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # where it keeps its unprivileged half
    return folder


@pytest_asyncio.fixture
async def sshd(sshd_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Server]:
    """Every connection is closed afterwards."""
    monkeypatch.setenv("HOME", str(tmp_path))  # the developer's own ~/.ssh has no say
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    yield Server(sshd_folder)
    await close_connections()
    await asyncio.sleep(0)
