"""Hosts of a lab that was made to stay (``lab up``): written down beside it, and worked on by hand (``lab shell``)."""

from __future__ import annotations

import asyncio
import json
import os
import select
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from nicbench.core.errors import HostError, UsageError
from nicbench.hosts import host_from_spec
from nicbench.hosts.base import Host, Process
from nicbench.hosts.kinds.local import LocalHost
from nicbench.testbed.labs.base import EndpointTestbed, Testbed
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.files import RemovePath

_FOLDER: Final = Path("/run/nicbench-labs")
# A terminal on the host, for a shell that is typed into asks for one; what is typed is echoed by the terminal here.
_TERMINAL: Final = ("script", "--quiet", "--flush", "--return", "--echo", "never", "--command")
# Of commands that come from a file or a pipe; errors stand where they occur.
_SHELL: Final = ("sh", "-c", "exec bash -s 2>&1")
_PIECE_BYTES: Final = 4096


async def write_hosts(changes: Changes, name: str, testbed: Testbed | EndpointTestbed) -> None:
    """Each by its name, the machines that they are on too; gone when the lab is."""
    hosts = {each.name: each.host for each in testbed.test_hosts}
    machines = [host.machine for host in hosts.values()]
    hosts |= {machine.name: machine for machine in machines if not isinstance(machine, LocalHost)}
    path = _path(name)
    text = json.dumps({name: host.spec() for name, host in hosts.items()}, indent=1)

    async def write() -> None:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.write_text(f"{text}\n", encoding="utf-8")

    await changes.make(LocalHost("local"), RemovePath(path=str(path)), write)


def host_of_lab(lab: str, name: str | None) -> Host:
    """The host of this name; without one the machine of a lab that has one of its own, or the only host. UsageError."""
    known = _known_hosts(lab)
    if known is None:
        step = f"remove it and create it again: nicbench lab down {lab}"
        raise UsageError(f"the hosts of the lab are unknown: {lab}", next_step=step)
    if name is None:
        guests = [each for each, spec in known.items() if spec.get("kind") == "vm"]
        choice = guests if guests else list(known)
        name = choice[0] if len(choice) == 1 else None
    if name is None or name not in known:
        step = f"write --host and one of {', '.join(known)}"
        raise UsageError(f"there is no host {name}" if name else "on which host?", place=lab, next_step=step)
    return host_from_spec(known[name], name)


def hosts_of_lab(lab: str) -> tuple[str, ...]:
    """Their names, as ``--host`` takes them; none where nobody knows them."""
    return tuple(_known_hosts(lab) or ())


async def run_in_lab(host: Host, command: Sequence[str], show: Callable[[bytes], None]) -> int:
    """A command to its end, or a shell with what is typed here; gives its exit status, a signal as shells tell it."""
    process = await host.start(tuple(command) or _shell(host.name), environment={"TERM": _terminal()})
    typing = asyncio.create_task(_type(process))
    try:
        while piece := await process.read_some():
            show(piece)
        status = await process.wait()
    finally:
        typing.cancel()
        await asyncio.wait((typing,))
    if command and (said := process.stderr_tail()):
        print(said, file=sys.stderr)
    return status if status >= 0 else 128 - status


async def _type(process: Process) -> None:
    """Lines from here, as long as there are any."""
    try:
        descriptor = sys.stdin.fileno()
    except (OSError, ValueError):  # nobody types here
        await process.close_stdin()
        return
    loop, came = asyncio.get_running_loop(), asyncio.Event()
    try:
        loop.add_reader(descriptor, came.set)
    except (OSError, ValueError):  # a file, which can always be read
        came.set()
    rest = b""
    try:
        while True:
            await came.wait()
            came.clear() if _can_wait(descriptor) else None
            if not select.select((descriptor,), (), (), 0)[0]:  # told twice of one line; reading would wait for more
                continue
            piece = os.read(descriptor, _PIECE_BYTES)
            if not piece:
                break
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                await process.write_line(line.decode(errors="replace"))
        await process.close_stdin()
    except HostError:  # it has ended, and its status tells how
        return
    finally:
        loop.remove_reader(descriptor)


def _shell(host: str) -> tuple[str, ...]:
    """Interactive where somebody types, as wide and high as the terminal here."""
    if not sys.stdin.isatty():
        return _SHELL
    columns, rows = shutil.get_terminal_size()
    prompt = shlex.quote(f"{host}:\\w# ")  # a shell between would not hand on the variable itself
    return (*_TERMINAL, f"stty cols {columns} rows {rows}; exec env PS1={prompt} bash --norc -i", "/dev/null")


def _terminal() -> str:
    return os.environ.get("TERM", "dumb") if sys.stdout.isatty() else "dumb"


def _can_wait(descriptor: int) -> bool:
    return not Path(f"/proc/self/fd/{descriptor}").resolve().is_file()


def _known_hosts(lab: str) -> Mapping[str, Any] | None:
    try:
        known: Mapping[str, Any] = json.loads(_path(lab).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return known


def _path(lab: str) -> Path:
    return _FOLDER / f"{lab}.json"
