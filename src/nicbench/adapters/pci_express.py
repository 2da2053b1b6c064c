"""``lspci -D -vv`` and ``setpci``: how a PCI Express function was set by firmware and kernel."""

from __future__ import annotations

import re
from typing import Any

_HEAD = re.compile(r"^(?P<address>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (?P<rest>.*)$")
_NETWORK = re.compile(r"^(Ethernet|Network|Infiniband) controller|\[02[0-9a-f]{2}\]", re.IGNORECASE)
_SIZES = re.compile(r"MaxPayload (\d+) bytes, MaxReadReq (\d+) bytes")
_CAPABLE = re.compile(r"DevCap:\s+MaxPayload (\d+) bytes")
_LINK = re.compile(r"Lnk(?P<which>Cap|Sta):.*?Speed (?P<speed>[\d.]+)GT/s[^,]*, Width x(?P<width>\d+)(?P<rest>[^\n]*)")
_ASPM = re.compile(r"LnkCtl:\s+ASPM ([^;]+);")
_FLAGS = {"relaxed_ordering": "RlxdOrd", "extended_tags": "ExtTag", "no_snoop": "NoSnoop"}
_VPD = {"product": re.compile(r"Product Name: (.+)"), "part": re.compile(r"\[PN\] Part number: (.+)")}


def parse_pci_express(text: str) -> dict[str, dict[str, Any]]:
    """Each network function that has a PCI Express capability, by address; null for rows that lspci may not read.

    Without root lspci prints ``<access denied>`` for capabilities: then there is no entry.
    """
    found: dict[str, dict[str, Any]] = {}
    for head, body in _blocks(text):
        if not _NETWORK.search(head["rest"]) or "Express" not in body:
            continue
        sizes, capable = _SIZES.search(body), _CAPABLE.search(body)
        control = body.partition("DevCtl:")[2].partition("DevSta:")[0]
        aspm = _ASPM.search(body)
        found[head["address"]] = {
            "payload_bytes": int(sizes[1]) if sizes else None,
            "payload_possible_bytes": int(capable[1]) if capable else None,
            "read_request_bytes": int(sizes[2]) if sizes else None,
            "aspm": aspm[1].strip() if aspm else None,
            **{name: _flag(control, word) for name, word in _FLAGS.items()},
            "link_degraded": _degraded(body),
            **{name: value[1].strip() if (value := pattern.search(body)) else None for name, pattern in _VPD.items()},
        }
    return found


def read_request_bytes(register: int) -> int:
    """MaxReadReq of a Device Control register: bits 14:12, 128 bytes at 0, doubling (PCIe 5.0, 7.5.3.4).

    ValueError for the two values that are reserved.
    """
    field = register >> 12 & 0b111
    if field > 5:
        raise ValueError(f"{field} in bits 14:12 of Device Control is reserved")
    return 128 << field


def with_read_request(register: int, size_bytes: int) -> int:
    """The register with bits 14:12 for this size and every other bit as it was.

    ValueError for a size that PCI Express does not have.
    """
    sizes = {128 << field: field for field in range(6)}
    if size_bytes not in sizes:
        raise ValueError(f"MaxReadReq is one of {', '.join(map(str, sizes))} bytes, not {size_bytes}")
    return register & 0x8FFF | sizes[size_bytes] << 12


def parse_register(text: str) -> int:
    """What ``setpci`` prints of a word: four hex digits. ValueError for anything else."""
    word = text.strip()
    if not re.fullmatch(r"[0-9a-fA-F]{4}", word):
        raise ValueError(f"{word[:80]!r} is no word of configuration space")
    value = int(word, 16)
    if value == 0xFFFF:
        raise ValueError("the adapter does not answer: every bit of the register reads as 1")
    return value


def _blocks(text: str) -> list[tuple[re.Match[str], str]]:
    blocks: list[tuple[re.Match[str], list[str]]] = []
    for row in text.splitlines():
        if head := _HEAD.match(row):
            blocks.append((head, []))
        elif blocks:
            blocks[-1][1].append(row)
    return [(head, "\n".join(rows)) for head, rows in blocks]


def _flag(control: str, word: str) -> bool | None:
    found = re.search(rf"\b{word}([+-])", control)
    return None if found is None else found[1] == "+"


def _degraded(body: str) -> bool | None:
    """Whether the link runs below what the function could; lspci says so itself from 3.6 on, older ones do not."""
    links = {link["which"]: (float(link["speed"]), int(link["width"])) for link in _LINK.finditer(body)}
    if set(links) != {"Cap", "Sta"}:
        return None
    return links["Sta"][0] < links["Cap"][0] or links["Sta"][1] < links["Cap"][1]
