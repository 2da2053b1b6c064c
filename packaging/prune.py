"""Removes what packaging/unused lists from a folder of Python's modules, as lib/python3.11: ``prune.py FOLDER``."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

UNUSED = Path(__file__).with_name("unused")


def patterns(text: str) -> Iterator[tuple[str, str]]:
    """Yields each pattern with its reason. Raises ValueError for a line without a reason."""
    for number, line in enumerate(text.splitlines(), start=1):
        pattern, _, why = (part.strip() for part in line.partition("# "))
        if pattern and not why:
            raise ValueError(f"{UNUSED.name}, line {number}: add the reason behind `# `")
        if pattern and pattern != "#":
            yield pattern, why


def prune(folder: Path, below: str = "") -> int:
    """Removes all that is below ``below``, a folder in ``folder``, and returns how many bytes that was.

    Raises FileNotFoundError for a pattern that finds nothing: what it was for has a new name, or is no longer there.
    """
    removed = 0
    for pattern, why in patterns(UNUSED.read_text(encoding="utf-8")):
        if not pattern.startswith(below):
            continue
        found = sorted(folder.glob(pattern))
        if not found:
            raise FileNotFoundError(f"{UNUSED.name}: nothing is `{pattern}` ({why}); correct the line or remove it")
        for path in found:
            if path.is_dir() and not path.is_symlink():
                removed += sum(file.lstat().st_size for file in path.rglob("*") if not file.is_dir())
                shutil.rmtree(path)
            elif path.is_symlink() or path.exists():  # a folder of an earlier match took it along
                removed += path.lstat().st_size
                path.unlink()
    return removed


if __name__ == "__main__":
    sys.stderr.write(f"    {prune(Path(sys.argv[1])) / 1e6:.0f} MB that nothing loads are left out\n")
