"""What is mounted where: /proc/self/mountinfo, as proc_pid_mountinfo(5) describes it. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ESCAPED = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """A file system at a place; ``options`` are those of the place and of the file system, each once."""

    point: str
    device: str
    """Major and minor number: ``254:0``."""
    filesystem: str
    options: tuple[str, ...]


def mounts_of(text: str) -> dict[str, Mount]:
    """By mount point; where several lie on each other, the one that is seen. What is no such line is left out."""
    found: dict[str, Mount] = {}
    for line in text.splitlines():
        fields = line.split()
        if "-" not in fields[6:] or len(fields) < fields.index("-", 6) + 4:
            continue
        separator = fields.index("-", 6)
        point = _ESCAPED.sub(lambda match: chr(int(match[1], 8)), fields[4])
        options = dict.fromkeys([*fields[5].split(","), *fields[separator + 3].split(",")])
        found[point] = Mount(point, fields[2], fields[separator + 1], tuple(options))
    return found
