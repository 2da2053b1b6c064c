"""Output of dmidecode. Pure: text in, structures out."""

from __future__ import annotations

import re

_HANDLE = re.compile(r"Handle 0x[0-9A-Fa-f]+, DMI type (\d+),")
Structure = dict[str, str]


def parse_structures(text: str) -> list[tuple[int, Structure]]:
    """Type and fields of each structure; the lines of a list below a field are left out (dmidecode(8))."""
    found: list[tuple[int, Structure]] = []
    for line in text.splitlines():
        handle = _HANDLE.match(line)
        if handle:
            found.append((int(handle[1]), {}))
        elif found and line.startswith("\t") and not line.startswith("\t\t"):
            name, colon, value = line.strip().partition(":")
            if colon:
                found[-1][1][name] = value.strip()
    return found
