"""Completes a result with what no method knows: rates over all ports, each port by itself, the tester's own limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from nicbench.core.pattern import Ways
from nicbench.core.result import Bounded, NearLimit, Result, Spread
from nicbench.core.trial import Trial
from nicbench.stats.ports import port_figures, telling

NEAR_CEILING: Final = 0.95
NEAR_LATENCY: Final = 2.0

_CEILING: Final = "ceiling_frames_per_s"
_OWN_LATENCY: Final = "tester_latency_p50_ns"
_LATENCY: Final = "latency_p50_ns"
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


def with_near_limits(result: Result) -> Result:
    """The result with what is to be said of it; it says "none" where nothing is."""
    return result.model_copy(update={"near_tester_limit": tuple(_near_limits(result))})


def _near_limits(result: Result) -> Iterator[NearLimit]:
    ceiling, own = _number(result, _CEILING), _number(result, _OWN_LATENCY)
    for name, rate in result.values.items():
        known = rate.value if isinstance(rate, Bounded) and name.endswith("_frames_per_s") else None
        if ceiling and known is not None and known >= NEAR_CEILING * ceiling:
            share = f"{100.0 * known / ceiling:.0f} % of what the tester sends without a DUT ({ceiling / 1e6:.4g} Mpps)"
            text = f"{known / 1e6:.4g} Mpps are {share}; the DUT may do more"
            yield NearLimit(value=name, limit=_CEILING, text=text)
    median = _number(result, _LATENCY)
    if own and median is not None and median < NEAR_LATENCY * own:
        less = f"less than twice the tester's own ({own / 1e3:.3g} us)"
        text = f"the median of {median / 1e3:.3g} us is {less}; most of it is not the DUT's"
        yield NearLimit(value=_LATENCY, limit=_OWN_LATENCY, text=text)


def _number(result: Result, name: str) -> float | None:
    value = result.values.get(name)
    return value if isinstance(value, int | float) else None
