"""Puts what was built into the wheel: the engine's binaries and XDP programs, as ``nicbench/bin``, with a platform tag.

``scripts/package`` names their folder and the tag. Where it did not, as in an editable install, nothing is added.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BuiltHook(BuildHookInterface):  # type: ignore[type-arg]
    """Hatchling finds it by its base class (`tool.hatch.build.targets.wheel.hooks.custom`)."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds each file of $NICBENCH_WHEEL_BIN, and the tag of $NICBENCH_WHEEL_PLATFORM."""
        folder = os.environ.get("NICBENCH_WHEEL_BIN")
        if version == "editable" or folder is None:
            return
        for path in sorted(Path(folder).iterdir()):
            build_data["force_include"][str(path)] = f"nicbench/bin/{path.name}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{os.environ['NICBENCH_WHEEL_PLATFORM']}"
