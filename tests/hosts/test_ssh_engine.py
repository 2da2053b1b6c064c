"""The engine's own binaries on a host by ssh: copied over, talked to, and ended with the connection."""

from __future__ import annotations

from pathlib import Path

import pytest

from nicbench.core.errors import NotReadyError
from nicbench.engine.binaries import deploy_file, find_binary
from nicbench.monitor.running import NAME, MonitorClient

from .sshd_server import Server


async def test_the_monitor_runs_on_a_host_by_ssh(sshd: Server, tmp_path: Path) -> None:
    try:
        binary = find_binary(NAME)
    except NotReadyError as error:
        pytest.skip(str(error))
    host = sshd.host()
    path = await deploy_file(host, binary, str(tmp_path / "cache"))
    client = MonitorClient(await host.start([path]), lambda _event: None, "monitor")

    assert (await client.greet())["engine"] == NAME
    await client.close()
