"""Where text goes: results to stdout, everything else to stderr, so that stdout can be read by a program."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from nicbench.visible import visible_in_json

if TYPE_CHECKING:  # a list of runs needs neither before it has something to say
    from pydantic import BaseModel
    from rich.console import Console

FORMAT = "1.0"
WIDTH_OF_A_FILE = 160
"""Columns where stdout is a file or a pipe: rich would cut tables to 80."""


def results() -> Console:
    """The console for tables."""
    from nicbench.cli.console import VisibleConsole

    return VisibleConsole(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else WIDTH_OF_A_FILE)


def messages() -> Console:
    """The console for progress, notes and errors."""
    from nicbench.cli.console import VisibleConsole

    return VisibleConsole(file=sys.stderr, highlight=False, soft_wrap=True)


def say(text: str) -> None:
    """One message, as it is: brackets in it are no markup."""
    messages().print(text, markup=False)


def print_json(content: BaseModel | dict[str, Any]) -> None:
    """One JSON document on stdout."""
    plain = content if isinstance(content, dict) else content.model_dump(mode="json")
    sys.stdout.write(visible_in_json(json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False)) + "\n")
    sys.stdout.flush()


def write_bytes(content: bytes) -> None:
    """A file's content on stdout, as it is; errors are those of ``streams``."""
    to = getattr(sys.stdout, "write_bytes", None) or sys.stdout.buffer.write
    to(content)
    sys.stdout.flush()
