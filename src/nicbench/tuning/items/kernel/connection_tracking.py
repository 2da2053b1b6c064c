"""Whether the packet filter keeps a record of every connection of the test's interfaces, which costs time and memory.

Rules of others are never flushed or changed: putting a firewall back exactly is not possible (counters, sets, what
manages it), and a machine without one is not what its owner lent. Off is a table of ours, which marks what arrives at
the interface as not to be tracked (nft(8), notrack); the undo deletes that table. How many rules others have is told.
"""

from __future__ import annotations

import json
from typing import Any

from nicbench.core.plan import Values
from nicbench.tuning.items.base import DeviceOptions, Item, Phase, Place
from nicbench.tuning.setting import CannotSetError

_FAMILY = "inet"
_PREFIX = "nicbench_notrack_"


class ConnectionTrackingOptions(DeviceOptions):
    """``connection_tracking: false``."""

    on: bool


class ConnectionTracking(Item):
    """``on`` is whether our table is absent, not whether anything tracks; ``rules_of_others`` counts theirs."""

    kind = "connection_tracking"
    Options = ConnectionTrackingOptions
    options: ConnectionTrackingOptions
    scope = "device"
    phase = Phase.TRAFFIC
    alone = "on"

    async def read(self, place: Place) -> Values:
        done = await place.host.run(("nft", "-j", "list", "ruleset"), check=False)
        if done.status != 0:
            reason = (done.stderr.strip().splitlines() or ["no reason"])[-1]
            raise CannotSetError(f"the packet filter cannot be listed: {reason}")
        return values_of_ruleset(done.stdout, table_of(place.device or ""))

    def target_values(self, now: Values) -> Values:
        return {"on": self.options.on}

    async def write(self, place: Place, values: Values) -> None:
        device = place.device or ""
        table = table_of(device)
        if values["on"]:
            await place.host.run(("nft", "delete", "table", _FAMILY, table))
            return
        text = (
            f"table {_FAMILY} {table} {{ chain arriving {{ type filter hook prerouting priority raw; "
            f'iifname "{device}" notrack\n}}\n}}\n'
        )
        await place.host.run(("nft", "-f", "-"), input_text=text)


def table_of(device: str) -> str:
    """The name of our table for an interface, in nft's letters."""
    letters = "".join(letter if letter.isalnum() and letter.isascii() else f"_{ord(letter):x}_" for letter in device)
    return f"{_PREFIX}{letters}"


def values_of_ruleset(text: str, table: str) -> Values:
    """Of the output of ``nft -j list ruleset`` (libnftables-json(5)); CannotSetError where it is none."""
    try:
        objects: list[dict[str, Any]] = json.loads(text or "{}").get("nftables", [])
        ours = any(one.get("table", {}).get("name") == table for one in objects)
        rules = [one["rule"] for one in objects if "rule" in one]
        others = sum(not str(rule.get("table")).startswith(_PREFIX) for rule in rules)
    except (ValueError, AttributeError, TypeError) as error:
        raise CannotSetError(f"the output of nft is not understood: {error}") from error
    return {"on": not ours, "rules_of_others": others}
