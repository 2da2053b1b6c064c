"""Where the engine's binaries are: an explicit folder, beside the package, or a build tree."""

from __future__ import annotations

import os
from pathlib import Path

from nicbench.errors import NotReadyError


def find_binary(name: str, folder: str | None = None) -> Path:
    """The binary ``name``: in ``folder``, else $NICBENCH_ENGINE_DIR, else beside the package or in a build tree."""
    package = Path(__file__).resolve().parents[1]
    asked = folder or os.environ.get("NICBENCH_ENGINE_DIR")
    # A folder that was asked for is the only one: falling back to another would measure with the wrong engine.
    built = [package / "bin", package.parents[1] / "engine" / "target" / "release"]
    candidates = [Path(asked)] if asked else built
    for candidate in candidates:
        if os.access(candidate / name, os.X_OK):
            return candidate / name
    raise NotReadyError(
        f"the engine {name} is not built; looked in {', '.join(str(candidate) for candidate in candidates)}",
        place=name,
        next_step="run `make install`, or set NICBENCH_ENGINE_DIR to the folder that holds it",
    )
