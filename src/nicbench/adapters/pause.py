"""``ethtool -a``: flow control (IEEE 802.3 annex 31B), as JSON (5.9 and newer) or as text."""

from __future__ import annotations

import json

from nicbench.adapters._rows import rows_of, switch_of


def parse_pause(text: str) -> dict[str, bool | None]:
    """What is set (``autonegotiate``, ``rx``, ``tx``) and, where it was negotiated, what came of it."""
    if text.lstrip().startswith("["):
        answer = json.loads(text)[0]
        negotiated = answer.get("negotiated") or {}
        found = {"autonegotiate": answer.get("autonegotiate"), "rx": answer.get("rx"), "tx": answer.get("tx")}
        found |= {"rx_negotiated": negotiated.get("rx"), "tx_negotiated": negotiated.get("tx")}
    else:
        rows = dict(rows_of(text))
        found = {"autonegotiate": switch_of(rows.get("Autonegotiate"))}
        found |= {side.lower(): switch_of(rows.get(side)) for side in ("RX", "TX")}
        found |= {f"{side.lower()}_negotiated": switch_of(rows.get(f"{side} negotiated")) for side in ("RX", "TX")}
    known = {name: value for name, value in found.items() if isinstance(value, bool)}
    if not known:
        raise ValueError("no flow control in it")
    return {name: known.get(name) for name in found if name in known or not name.endswith("negotiated")}
