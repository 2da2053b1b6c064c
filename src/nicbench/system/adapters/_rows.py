"""Rows of ``name: value`` as ethtool and lspci print them."""

from __future__ import annotations

from collections.abc import Iterator


def rows_of(text: str) -> Iterator[tuple[str, str]]:
    """Name and value of each row that has a colon, without the space around them, in order."""
    for row in text.splitlines():
        name, colon, value = row.partition(":")
        if colon:
            yield name.strip(), value.strip()


def known_value(value: str | None) -> str | None:
    """The value, null where the tool says that it does not know."""
    if value is None or value in ("", "n/a", "N/A") or value.lower().startswith(("unknown", "not reported")):
        return None
    return value


def number_of(value: str | None) -> int | None:
    """A whole number, null where there is none."""
    return int(value) if value is not None and value.isascii() and value.isdecimal() else None


def switch_of(value: str | None) -> bool | None:
    """``on`` or ``off`` (whatever stands behind it), null for anything else."""
    return {"on": True, "off": False}.get((value or "").partition(" ")[0])


def key_of(name: str) -> str:
    """A printed name as a key: ``RX Mini`` is ``rx_mini``."""
    return "_".join(name.lower().replace("-", " ").split())
