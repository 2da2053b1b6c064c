"""What is on a block device or an image file, and who uses it: what wipefs, lsblk and losetup print. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any


def signatures_of(text: str) -> tuple[str, ...]:
    """Types of the signatures that ``wipefs --parsable`` lists, each once: file systems, partition tables, RAID, LVM.

    Its lines are ``offset,uuid,label,type``, of which the label is free text (util-linux, wipefs(8)). ValueError.
    """
    found: dict[str, None] = {}
    for line in text.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        offset, *others = line.split(",")
        if not offset.startswith("0x") or len(others) < 3:
            raise ValueError(f"no line of wipefs: {line!r}")
        found[others[-1].strip()] = None
    return tuple(found)


def users_of(text: str) -> tuple[str, ...]:
    """Who uses a device, in words, by ``lsblk --json --paths --output NAME,TYPE,MOUNTPOINT DEVICE``. ValueError.

    What stands on it counts, mounted or not: partitions, RAID, LVM, encryption.
    """
    devices = json.loads(text)["blockdevices"]
    return tuple(word for device in devices for word in _users(device, is_itself=True))


def _users(device: dict[str, Any], *, is_itself: bool) -> Iterator[str]:
    if not is_itself:
        yield f"{device['name']} ({device['type']}) is on it"
    if device.get("mountpoint"):
        use = "swapped to" if device["mountpoint"] == "[SWAP]" else f"mounted at {device['mountpoint']}"
        yield f"{'it' if is_itself else device['name']} is {use}"
    for child in device.get("children", ()):
        yield from _users(child, is_itself=False)


def loop_devices_of(text: str) -> tuple[str, ...]:
    """Loop devices of an image, by ``losetup --json --associated IMAGE --output NAME``, which may say nothing."""
    return tuple(str(one["name"]) for one in json.loads(text)["loopdevices"]) if text.strip() else ()
