"""Asks a running QEMU by its monitor's socket (QEMU Machine Protocol)."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

from nicbench.errors import HostError

_ANSWER_S: Final = 30.0
_LONGEST_LINE: Final = 1 << 20


async def ask(path: str, command: str) -> Any:
    """What it returns. HostError where it does not answer, or refuses."""
    try:
        async with asyncio.timeout(_ANSWER_S):
            return await _ask(path, command)
    except (OSError, TimeoutError, ValueError) as error:
        reason = f"no answer within {_ANSWER_S:g} s" if isinstance(error, TimeoutError) else str(error)
        raise HostError(f"QEMU does not answer `{command}`: {reason}", place=path) from error


async def _ask(path: str, command: str) -> Any:
    reader, writer = await asyncio.open_unix_connection(path, limit=_LONGEST_LINE)
    try:
        for word in ("qmp_capabilities", command):
            writer.write(json.dumps({"execute": word}).encode() + b"\n")
        answers: list[Any] = []
        while len(answers) < 2:
            line = await reader.readline()
            if not line:
                raise ValueError("it closed the connection")
            said = json.loads(line)
            if "error" in said:
                raise ValueError(str(said["error"].get("desc", said["error"])))
            if "return" in said:  # the greeting and events are none
                answers.append(said["return"])
        return answers[1]
    finally:
        writer.close()
