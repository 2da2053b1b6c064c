"""XDP programs of tests: sources that a test writes, compiled as scripts/setup compiles those of the program."""

from __future__ import annotations

import platform
from pathlib import Path

from tests.commands import run_checked

_HEADERS = f"/usr/include/{platform.machine()}-linux-gnu"  # asm/types.h; clang does not search there for this target


def compile_xdp(text: str, folder: Path) -> Path:
    """The object of the program whose C source is ``text``, in ``folder``."""
    source, program = folder / "program.bpf.c", folder / "program.bpf.o"
    source.write_text(text)
    command = ("clang", "-O2", "-g", "-Wall", "-Werror", "-target", "bpf", "-idirafter", _HEADERS, "-c", source)
    run_checked((*command, "-o", program))
    return program
