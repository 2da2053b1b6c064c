"""What rates are of, by their scope: one port, each of several ports that send at once, or the sum of these.

Pure functions. A sum of ports is a rate of ports that sent at once; so its share is comparable with a rate per port of
as many that send at once, and not with that of one port that sends alone. A rate that others published as per port is
that of one port in one direction, and leaves open how many sent at once: it has one meaning beside either, and the
reader is told what is not known.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from nicbench.core.pattern import per_port_of

_SUM: Final = re.compile(r"sum of (\d+) ports")
_OF_SEVERAL: Final = re.compile(r"per port of (\d+) that send at once")


def ports_of_sum(scope: str) -> int | None:
    """Returns of how many ports a rate is the sum; None where it is none."""
    match = _SUM.fullmatch(scope)
    return int(match[1]) if match else None


def divide_scope(scope: str) -> str:
    """Returns the scope of a rate that was divided by its ports; of one that is no sum its own."""
    ports = ports_of_sum(scope)
    return scope if ports is None else per_port_of(ports)


def ports_at_once(scopes: Collection[str]) -> int | None:
    """Returns how many ports send at once where all rates are per port of as many; else None."""
    match = _OF_SEVERAL.fullmatch(next(iter(scopes))) if len(scopes) == 1 else None
    return int(match[1]) if match else None


def how_to_agree(every: Collection[str]) -> str | None:
    """Returns what brings rates of different scopes to one, or None where nothing does: dividing those that are sums,
    another run where a port sent alone, or both.
    """
    divided = {divide_scope(scope) for scope in every}
    has_sum = divided != set(every)
    if len(divided) == 1:
        return "--per-port divides what is a sum of ports by their number"
    alone = per_port_of(1)
    ports = ports_at_once(divided - {alone})
    if alone not in divided or ports is None:
        return None
    run = f"compare with a run whose {ports} ports send at once: `bidirectional: true` in `traffic`"
    return f"{run}; --per-port then divides the sum by their number" if has_sum else run
