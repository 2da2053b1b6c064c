"""Commands that tests run: with or without a look at their output, and those that may fail."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Any


def run_checked(words: Sequence[Any], **more: Any) -> subprocess.CompletedProcess[Any]:
    """Runs a command that has to succeed; what it says is shown where a test fails."""
    return subprocess.run(words, check=True, **more)


def run_captured(words: Sequence[Any], **more: Any) -> subprocess.CompletedProcess[str]:
    """Runs a command that has to succeed, and keeps what it says."""
    return subprocess.run(words, check=True, capture_output=True, text=True, **more)


def run_tried(words: Sequence[Any], **more: Any) -> subprocess.CompletedProcess[str]:
    """Runs a command that may fail, and keeps what it says."""
    return subprocess.run(words, check=False, capture_output=True, text=True, **more)
