"""``/proc/meminfo`` (proc_meminfo(5)), which several facts read.

Pure: text in, numbers out.
"""

from __future__ import annotations


def parse_meminfo(text: str) -> dict[str, int]:
    """Names and values: bytes where the kernel prints kB, plain counts elsewhere."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        name, colon, rest = line.partition(":")
        words = rest.split()
        if colon and words and words[0].isdigit():
            found[name] = int(words[0]) * (1024 if words[1:] == ["kB"] else 1)
    return found
