"""Asks a host for text: one command, or many small files at once."""

from __future__ import annotations

from collections.abc import Iterable

from nicbench.errors import NicbenchError
from nicbench.hosts.base import Host
from nicbench.hosts.netns import outermost
from nicbench.inventory.base import UnknownFactError

__all__ = ["outermost", "output_of", "paths_and_values", "text_of", "values_of"]


async def output_of(host: Host, *command: str) -> str:
    """Its output; UnknownFactError where it is not there, fails, or says nothing."""
    try:
        done = await host.run(command, check=False)
    except NicbenchError as error:
        raise UnknownFactError(error.message) from error
    if done.status != 0 or not done.stdout.strip():
        reason = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise UnknownFactError(f"{' '.join(command)}: {reason}")
    return done.stdout


async def text_of(host: Host, path: str) -> str:
    """The text of a file; UnknownFactError where it does not exist or cannot be read."""
    try:
        text = await host.read_file(path)
    except NicbenchError as error:
        raise UnknownFactError(error.message) from error
    if text is None:
        raise UnknownFactError(f"{path} does not exist")
    return text


async def values_of(host: Host, paths: Iterable[str]) -> dict[str, str]:
    """Path and value of small files under /proc and /sys; patterns are allowed, what cannot be read is left out."""
    patterns = tuple(paths)
    try:
        # The shell expands the patterns on that host, in its namespace; the names in them come quoted.
        done = await host.run(("sh", "-c", f'grep -sH "" {" ".join(patterns)}'), check=False)
    except NicbenchError as error:
        raise UnknownFactError(error.message) from error
    found = paths_and_values(done.stdout)
    if not found:
        others = f" (nor any of {len(patterns) - 1} beside it)" if len(patterns) > 1 else ""
        raise UnknownFactError(f"{patterns[0]} cannot be read{others}")
    return found


def paths_and_values(text: str) -> dict[str, str]:
    """Output of ``grep -H ""`` over files of one line: ``path:value``."""
    pairs = (line.partition(":") for line in text.splitlines())
    return {path: value.strip() for path, colon, value in pairs if colon}
