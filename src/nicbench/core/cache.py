"""The user's cache folder: the kernel and emulator of virtual machines.

Everything in it can be made or fetched again, and may be removed at any time.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Returns ``$XDG_CACHE_HOME/nicbench``, by default ``~/.cache/nicbench``; it may not exist yet."""
    base = environment.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "nicbench"
