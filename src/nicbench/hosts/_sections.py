"""Many small readings of a host in one command: each one's output after a line with its name."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

_MARK = "=== nicbench section "


def in_sections(scripts: Mapping[str, str]) -> str:
    """One script of all. What a host lacks prints nothing, and stops nothing."""
    return "; ".join(
        f"echo; echo {shlex.quote(_MARK + name)}; {{ {one}; }} 2>/dev/null" for name, one in scripts.items()
    )


def sections(text: str) -> dict[str, str]:
    """The inverse: outputs by name, without what stands before the first."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith(_MARK):
            lines = found.setdefault(line.removeprefix(_MARK), [])
        else:
            lines.append(line)
    return {name: "\n".join(lines) for name, lines in found.items()}
