"""The run folder's ``raw``: what every process of a round was told and wrote, bounded and harmless to look at."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from nicbench.store.files import storage_error
from nicbench.workloads.base import MEBIBYTE, Output, clean

LARGEST_FILE_BYTES = 4 * MEBIBYTE
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST_NAME = 60


class RawFolder:
    """Where one round keeps what its processes wrote: ``raw/ROUND/1-iperf3-c1-client.out`` and the like.

    Control characters are written as escapes, so that a terminal shows a file and does not obey it. ``redact`` takes
    out what identifies a machine.
    """

    def __init__(self, run_folder: Path, round_name: str, redact: Callable[[str], str] | None = None) -> None:
        self._redact = redact or _as_it_is
        self._run_folder = run_folder
        self._folder = Path("raw") / safe_name(round_name)

    def keep(self, name: str, text: str) -> str:
        """Writes one file, cut at 4 MiB with a line that says so; gives its path in the run folder."""
        path = self._folder / safe_name(name)
        content = clean(self._redact(text)).encode(errors="replace")
        if len(content) > LARGEST_FILE_BYTES:
            said = f"\n[cut by nicbench: {len(content)} bytes, of which these are the first {LARGEST_FILE_BYTES}]\n"
            content = content[:LARGEST_FILE_BYTES] + said.encode()
        try:
            (self._run_folder / self._folder).mkdir(parents=True, exist_ok=True)
            (self._run_folder / path).write_bytes(content)
        except OSError as error:
            raise storage_error(error, self._run_folder / path) from error
        return str(path)

    def keep_process(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], output: Output
    ) -> tuple[str, ...]:
        """The command with its variables and exit status, stdout, and stderr where there is some."""
        variables = "".join(f"{key}={shlex.quote(value)} " for key, value in environment.items())
        status = "had to be ended" if output.status is None else str(output.status)
        files = [self.keep(f"{name}.command", f"{variables}{shlex.join(command)}\nexit status: {status}\n")]
        files.append(self.keep(f"{name}.out", output.stdout))
        if output.stderr:
            files.append(self.keep(f"{name}.err", output.stderr))
        return tuple(files)


def _as_it_is(text: str) -> str:
    return text


def safe_name(text: str) -> str:
    """A file name of plain characters, that leads nowhere else and is no option of a tool."""
    return _UNSAFE.sub("-", text).strip(".-")[:_LONGEST_NAME] or "unnamed"
