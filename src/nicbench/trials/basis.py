"""What several ports add to a result: what its rates are of, the sum of all ports, and each port and way by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nicbench.model.pattern import Ways
from nicbench.model.rate import Bounded
from nicbench.model.result import Result
from nicbench.model.spread import Spread
from nicbench.model.trial import Trial
from nicbench.stats.ports import port_figures, telling

PER_PORT: Final = "per port"
_RATE: Final = "_frames_per_s"
# Of the port and not of what goes through the DUT.
_OF_A_PORT: Final = frozenset({"line_rate_frames_per_s", "ceiling_frames_per_s"})


def with_basis(result: Result, ways: Ways) -> Result:
    """A result of one port's rate says which port that is, and gives the sum of all ports beside each rate.

    A method that has summed over the ports by itself said so in ``scope``, and is left as it is.
    """
    if result.scope != PER_PORT:
        return result
    values = dict(result.values)
    if ways.times_load != 1.0:
        for name, value in result.values.items():
            if not name.endswith(_RATE) or name in _OF_A_PORT or isinstance(value, str | Spread):
                continue
            rate = value.value if isinstance(value, Bounded) else value
            values[f"{name}_sum_of_ports"] = None if rate is None else rate * ways.times_load
    return result.model_copy(update={"scope": ways.basis, "values": values})


def with_ports(result: Result, ways: Ways, trials: Sequence[Trial]) -> Result:
    """With the figures of each port and way of the trial that tells most; nothing where one way alone is loaded."""
    trial = telling(trials) if len(ways.loaded) > 1 else None
    return result if trial is None else result.model_copy(update={"by_port": port_figures(trial)})
