"""Where the engine's binaries are: an explicit folder, beside the package, or a build tree."""

from __future__ import annotations

import os
from pathlib import Path

from nicbench.errors import NotReadyError


def find_binary(name: str, folder: str | None = None) -> Path:
    """The binary ``name``: in ``folder``, $NICBENCH_ENGINE_DIR, beside the package, or in engine/target/release."""
    package = Path(__file__).resolve().parents[1]
    candidates = [
        *([Path(folder)] if folder else []),
        *([Path(os.environ["NICBENCH_ENGINE_DIR"])] if os.environ.get("NICBENCH_ENGINE_DIR") else []),
        package / "bin",
        package.parents[1] / "engine" / "target" / "release",
    ]
    for candidate in candidates:
        if os.access(candidate / name, os.X_OK):
            return candidate / name
    raise NotReadyError(
        f"the engine {name} is not built; looked in {', '.join(str(candidate) for candidate in candidates)}",
        place=name,
        next_step="run `make install`, or set NICBENCH_ENGINE_DIR to the folder that holds it",
    )
