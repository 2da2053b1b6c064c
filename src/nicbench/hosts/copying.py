"""Copies files to and from hosts, whole or not at all."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from nicbench.core.errors import HostError

if TYPE_CHECKING:
    from nicbench.hosts.base import Host

CHUNK_BYTES = 256 * 1024
MOST_BYTES = 2 * 1024 * 1024 * 1024
COPY_TIMEOUT_S = 600.0
# Length of a line of base64: fits whole into the smallest pipe.
_LINE_CHARACTERS = 4000

_RECEIVE = """
new=$(mktemp "$1.XXXXXX") || exit 1
if ${4:-cat} >"$new" && [ "$(stat -c %s "$new")" = "$3" ] && chmod "$2" "$new" && mv -f -- "$new" "$1"; then exit 0; fi
[ -s "$new" ] && echo "$1: not all of it arrived" >&2
rm -f -- "$new"
exit 1
"""


def receiving_script() -> str:
    """Returns a shell script that stores its stdin in a file.

    ``$1`` is the path, ``$2`` the mode in octal, ``$3`` the expected size, ``$4`` a filter for stdin (``cat``).
    """
    return _RECEIVE


def whole_file(path: Path) -> bytes:
    """Reads a file of this machine. OSError; ValueError where it is larger than MOST_BYTES."""
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"{path} is larger than {MOST_BYTES} bytes")
    return path.read_bytes()


@contextlib.contextmanager
def storing_at(path: Path) -> Iterator[BinaryIO]:
    """Opens a temporary file for writing and renames it to ``path`` once it is complete."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as stream:
            yield stream
        temporary.rename(path)
    finally:
        temporary.unlink(missing_ok=True)


async def put_as_text(host: Host, local: Path, remote: str, mode: int) -> None:
    """Copies a file to a host as base64 in the input of a command, for hosts that have no better way."""
    text = base64.encodebytes(await asyncio.to_thread(whole_file, local)).decode()
    size = str((await asyncio.to_thread(local.stat)).st_size)
    command = ("sh", "-c", receiving_script(), "put", remote, f"{mode:o}", size, "base64 -d")
    done = await host.run(command, input_text=text, timeout_s=COPY_TIMEOUT_S, check=False)
    if done.status != 0:
        raise HostError(f"cannot copy {local} to {remote}: {done.stderr.strip()}", place=host.name)


async def get_as_text(host: Host, remote: str, local: Path) -> None:
    """Copies a file from a host as base64, line by line."""
    process = await host.start(("base64", "-w", str(_LINE_CHARACTERS), "--", remote))
    with storing_at(local) as stream:
        while (line := await process.read_line(COPY_TIMEOUT_S)) is not None:
            stream.write(base64.b64decode(line))
        if await process.wait(COPY_TIMEOUT_S) != 0:
            raise HostError(f"cannot copy {remote}: {process.stderr_tail()}", place=host.name)
