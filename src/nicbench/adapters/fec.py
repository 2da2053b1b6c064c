"""``ethtool --show-fec``: forward error correction, as JSON (5.13 and newer) or as text."""

from __future__ import annotations

import json

from nicbench.adapters._rows import rows_of


def parse_fec(text: str) -> dict[str, list[str]]:
    """``configured`` and ``active`` encodings (None, Auto, Off, RS, BaseR, LLRS) in ethtool's words.

    ``None`` active is what drivers say of a link that is down as well.
    """
    if text.lstrip().startswith("["):
        answer = json.loads(text)[0]
        return {"configured": _words(answer.get("config")), "active": _words(answer.get("active"))}
    rows = dict(rows_of(text))
    # Up to 5.18 it said "Configured", then "Supported/Configured"; up to 5.12 "FEC encodings" and "FEC encoding".
    configured = rows.get("Supported/Configured FEC encodings", rows.get("Configured FEC encodings"))
    active = rows.get("Active FEC encodings", rows.get("Active FEC encoding"))
    if configured is None or active is None:
        raise ValueError("no FEC encodings in it")
    return {"configured": configured.split(), "active": active.split()}


def _words(value: object) -> list[str]:
    return [str(word) for word in value] if isinstance(value, list) else []
