"""``ethtool --show-priv-flags``: switches that only this driver has."""

from __future__ import annotations

import json

from nicbench.adapters._rows import rows_of, switch_of


def parse_private_flags(text: str) -> dict[str, bool]:
    """By the driver's names, as text or JSON."""
    if text.lstrip().startswith("["):
        answer = json.loads(text)[0]
        flags = answer.get("private-flags", answer)
        return {str(name): value for name, value in flags.items() if isinstance(value, bool)}
    switches = ((name, switch_of(value)) for name, value in rows_of(text))
    return {name: on for name, on in switches if on is not None}
