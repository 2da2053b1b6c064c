"""The folder of this user in which nicbench keeps what can be made or fetched again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """``$XDG_CACHE_HOME/nicbench``, ordinarily ``~/.cache/nicbench``; it may not be there yet."""
    base = environment.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "nicbench"
