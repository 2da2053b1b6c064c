"""A host by ssh over a network of two namespaces: jump hosts, no route, and a wire that swallows everything."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.commands import run_captured, run_checked
from tests.hosts.ending import wait_until

from nicbench.hosts import host_from_spec
from nicbench.hosts.owner import start_ticks
from nicbench.tuning.guards import folder_of

from .sshd_server import Server

# It waits for what a wire of namespaces does within seconds: a machine that is held up meanwhile fails it.
pytestmark = [pytest.mark.lab, pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")]

_THERE, _PORT = "198.18.0.2", 2222
_RUN = """
import asyncio, json, sys
from nicbench.core.errors import NicbenchError
from nicbench.hosts import close_connections, host_from_spec
async def main():
    host = host_from_spec(json.loads(sys.argv[1]), "client1")
    try:
        print((await host.run(json.loads(sys.argv[2]))).stdout, end="")
    except NicbenchError as error:
        print(error)
    await close_connections()
asyncio.run(main())
"""
_UNTIL_SILENCE = """
import asyncio, json, sys
from pathlib import Path
from nicbench.core.errors import NicbenchError
from nicbench.hosts import close_connections, host_from_spec
from nicbench.tuning.stack import UndoStack
async def main():
    host = host_from_spec(json.loads(sys.argv[1]), "client1")
    changes = UndoStack("run", None, Path(sys.argv[2]) / "run")
    await changes.set_file(host, f"{sys.argv[2]}/value", "new")
    process = await host.start(("sh", "-c", "sleep 600 & echo $$ $!; wait"))
    print(await process.read_line(), flush=True)
    try:
        await process.read_line()
    except NicbenchError as error:
        print(str(error).replace(chr(10), " "), flush=True)
    for sentence in await changes.undo_all():
        print(sentence.replace(chr(10), " "), flush=True)
    await close_connections()
asyncio.run(main())
"""


@dataclass
class Network:
    """``near`` is where the controller runs, ``far`` where sshd listens."""

    near: str
    far: str
    server: Server
    home: Path
    controllers: list[subprocess.Popen[str]] = field(default_factory=list)

    def spec(self, **changed: Any) -> dict[str, Any]:
        given = {"address": _THERE, "port": _PORT, "proxy_command": None, "connect_timeout": 3.0, **changed}
        return self.server.host(**given).spec()

    def controller(self, script: str, *words: str) -> subprocess.Popen[str]:
        command = ("ip", "netns", "exec", self.near, sys.executable, "-c", script, *words)
        environment = {**os.environ, "HOME": str(self.home)}
        self.controllers.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True))
        return self.controllers[-1]

    def said(self, command: Sequence[str], **changed: Any) -> str:
        """What a controller says that runs one command."""
        process = self.controller(_RUN, json.dumps(self.spec(**changed)), json.dumps(command))
        return process.communicate(timeout=60)[0]


@pytest.fixture
def network(sshd_folder: Path, tmp_path: Path) -> Iterator[Network]:
    near, far = (f"nb-ssh-{side}-{os.getpid()}" for side in ("near", "far"))
    for name in (near, far):
        _do(f"ip netns add {name}")
        _do(f"ip -n {name} link set lo up")
    daemon, made = None, Network(near, far, Server(sshd_folder), tmp_path)
    try:
        _do(f"ip -n {near} link add wire type veth peer name wire netns {far}")
        for name, address in ((near, "198.18.0.1"), (far, _THERE)):
            _do(f"ip -n {name} address add {address}/24 dev wire")
            _do(f"ip -n {name} link set wire up")
        options = ("-D", "-f", str(made.server.config), "-E", str(sshd_folder / "log"), "-o", f"Port={_PORT}")
        daemon = subprocess.Popen(("ip", "netns", "exec", far, made.server.command()[0], *options))
        wait_until(lambda: "LISTEN" in _do(f"ip netns exec {far} ss -Htln sport = :{_PORT}"))
        yield made
    finally:
        for controller in made.controllers:
            controller.kill()
            controller.communicate()
        if daemon is not None:
            daemon.terminate()
            daemon.wait()
        for name in (near, far):
            _do(f"ip netns delete {name}")


def test_a_host_behind_a_jump_host_is_reached(network: Network) -> None:
    user = network.server.options().user
    # Its address is one that only the jump host can have meant.
    said = network.said(
        ("sh", "-c", "echo $SSH_CONNECTION"), address="127.0.0.1", jump=f"{user}@{_THERE}:{_PORT}", connect_timeout=10.0
    )

    assert said.split()[::2] == ["127.0.0.1", "127.0.0.1"]


def test_a_host_that_cannot_be_reached_is_told_as_that(network: Network) -> None:
    assert "there is no route to it" in network.said(("true",), address="203.0.113.1")
    assert "nothing listens there" in network.said(("true",), port=1)


def test_a_wire_that_swallows_everything_ends_the_engine_there_and_puts_its_settings_back(
    network: Network, tmp_path: Path
) -> None:
    (tmp_path / "value").write_text("old\n")
    spec = network.spec(lease=3.0)
    controller = network.controller(_UNTIL_SILENCE, json.dumps(spec), str(tmp_path))
    pids = [int(pid) for pid in controller.stdout.readline().split()]
    assert (tmp_path / "value").read_text() == "new"
    rules = "table ip swallow { chain arriving { type filter hook prerouting priority raw; policy drop; }; }"
    run_checked(("ip", "netns", "exec", network.far, "nft", "-f", "-"), input=rules, text=True)

    wait_until(lambda: all(start_ticks(pid) is None for pid in pids))
    folder = Path(folder_of(str(tmp_path / "run"), "run", host_from_spec(spec)))
    wait_until((folder / "undo.sh.done").exists)
    assert (tmp_path / "value").read_text() == "old"
    said = controller.communicate(timeout=60)[0]
    assert controller.returncode == 0
    assert "nicbench restore RUN" in said
    assert "client1 cannot be reached, to undo what was changed there" in said
    assert "could not undo (restore_file" in said


def _do(command: str) -> str:
    return run_captured(command.split()).stdout
