"""``ethtool -n DEVICE rx-flow-hash TYPE``: which fields of a flow its hash is made of."""

from __future__ import annotations

_FIELDS = {
    "L2DA": "m",
    "VLAN tag": "v",
    "L3 proto": "t",
    "IP SA": "s",
    "IP DA": "d",
    "L4 bytes 0 & 1 [TCP/UDP src port]": "f",
    "L4 bytes 2 & 3 [TCP/UDP dst port]": "n",
}
"""ethtool's words, and the letters that set them (ethtool(8), rx-flow-hash)."""
FLOW_TYPES = ("tcp4", "udp4", "ah4", "esp4", "sctp4", "tcp6", "udp6", "ah6", "esp6", "sctp6")


def parse_hash_fields(text: str) -> str:
    """The letters in ethtool's order: ``sdfn``; ``r`` where such frames are dropped. ValueError for neither."""
    rows = [row.strip() for row in text.splitlines()]
    if any("All matching flows discarded on RX" in row for row in rows):
        return "r"
    if not any("use these fields for computing Hash flow key" in row for row in rows):
        raise ValueError("no fields of a hash in it")
    return "".join(letter for words, letter in _FIELDS.items() if words in rows)
