"""A machine by ssh for the table of faults: a real sshd, for each connection one, and what becomes of it."""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from pathlib import Path

from tests.hosts.sshd_server import Server, make_server_folder

from .places import Inject, Scene

LEASE = "6 s"
"""Twice the least: a controller on a busy machine is held up for seconds, and must still be heard in time."""
CONNECT_TIMEOUT = "1 min"
"""No case waits for it: sshd begins anew for each connection, which a busy machine may take ten seconds for."""


def prepare(scene: Scene) -> None:
    """Keys, and a host of the bench file that is reached with them."""
    server = Server(make_server_folder(scene.folder / "sshd"))
    scene.words["RACK"] = _described(server)
    scene.environment["HOME"] = str(scene.folder)


def _described(server: Server) -> str:
    given = server.options().model_dump(mode="json", exclude_defaults=True)
    return json.dumps({"kind": "ssh", **given, "lease": LEASE, "connect_timeout": CONNECT_TIMEOUT})


def signal_sshd(number: int) -> Inject:
    """Every sshd that the run speaks to gets the signal."""

    def inject(scene: Scene) -> None:
        pids = _sshds(scene.controller)
        assert pids, "there is no sshd"
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        if number == signal.SIGSTOP:  # it would stay: nothing else knows of it
            scene.mending.append(lambda: [_kill(pid) for pid in pids])

    return inject


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def halt_sshd(scene: Scene) -> None:
    """The network stands still for less than the lease."""
    pids = _sshds(scene.controller)
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        if number == signal.SIGSTOP:
            scene.wait_s(0.1, 0.4)


def close_door(scene: Scene) -> None:
    """Nothing answers at the other machine."""
    rack = json.loads(scene.words["RACK"])
    scene.words["RACK"] = json.dumps({**rack, "proxy_command": ["false"]})


def change_key(scene: Scene) -> None:
    """Another machine answers, or somebody in between."""
    folder = scene.folder / "sshd"
    config = folder / "sshd_config"
    config.write_text(config.read_text().replace(f"HostKey {folder}/host\n", f"HostKey {folder}/other_host\n"))


def _sshds(controller: int) -> list[int]:
    """Those below a process: an sshd overwrites the environment by which others are found."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")
            parents[int(folder.name)] = (int(rest.split()[1]), name)
    return [
        pid for pid, (_, name) in parents.items() if name.startswith("sshd") and _is_below(pid, controller, parents)
    ]


def _is_below(pid: int, ancestor: int, parents: dict[int, tuple[int, str]]) -> bool:
    while pid in parents and pid != ancestor:
        pid = parents[pid][0]
    return pid == ancestor
